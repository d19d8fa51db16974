"""What ends a command of the API: a text for people, and an exit status for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

DONE: Final = 0
FAILED: Final = 1
WRONG_USE: Final = 2
NOT_FOUND: Final = 3
NOT_ALLOWED: Final = 4
UNREACHABLE: Final = 5
UNHEALTHY: Final = 10
INTERRUPTED: Final = 130

ABOUT: Final = {
    DONE: "done",
    FAILED: "failed; some of several things may be done",
    WRONG_USE: "wrong use: an option or a value that is not right",
    NOT_FOUND: "not found",
    NOT_ALLOWED: "not allowed: no key, a wrong one, or one without the right",
    UNREACHABLE: "the service can't be reached, or can't serve now",
    UNHEALTHY: "`leaseway doctor`: something is wrong with the service",
    INTERRUPTED: "interrupted",
}

_OF_STATUS: Final = {400: WRONG_USE, 413: WRONG_USE, 415: WRONG_USE, 422: WRONG_USE, 405: WRONG_USE}
_OF_STATUS.update({404: NOT_FOUND, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 421: NOT_ALLOWED})
_OF_STATUS.update({502: UNREACHABLE, 503: UNREACHABLE, 504: UNREACHABLE})


class Failure(Exception):
    """Ends a command with `code` as its exit status; the text is one line for people."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


class Unreachable(Failure):
    """No answer, or one that says to come later. `sent`: the request may have been done."""

    def __init__(self, text: str, *, sent: bool = False) -> None:
        super().__init__(text, UNREACHABLE)
        self.sent = sent


class Refused(Failure):
    """The service has answered with a problem; `problem` has its fields, `status` is that of
    HTTP.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(_text(status, problem), code_of(status))
        self.status = status
        self.problem = problem


def is_passing(failure: Failure) -> bool:
    """Whether the same request may be answered later: no answer, one that says so, too many
    requests, or a fault of the service.
    """
    return failure.code == UNREACHABLE or (isinstance(failure, Refused) and failure.status in (429, 500))


def code_of(status: int) -> int:
    """The exit status for an answer of HTTP that is no success."""
    return _OF_STATUS.get(status, FAILED)


def _text(status: int, problem: Mapping[str, Any]) -> str:
    """The detail of a problem, with the field, the limit and what was given where it lacks them."""
    said = str(problem.get("detail") or problem.get("title") or f"the service answered {status}").rstrip(".")
    named = {name: problem[name] for name in ("field", "limit", "given") if problem.get(name) is not None}
    missing = [f"{name} {_word(value)}" for name, value in named.items() if not _says(said, value)]
    return f"{said} ({', '.join(missing)})" if missing else said


def _says(text: str, value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(str(part) in text.replace("`", "") for part in parts)


def _word(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    is_range = len(value) == 2 and all(isinstance(part, int | float) for part in value)
    return (" to " if is_range else ", ").join(map(str, value))
