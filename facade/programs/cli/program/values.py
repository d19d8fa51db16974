"""Kinds of values that commands take: moments, pairs, conditions on attributes."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click

# As many as milliseconds from 2001 to 2286 have. Other numbers are dates without their hyphens,
# seconds, or mistakes.
DIGITS_OF_MS: Final = 13
DIGITS_OF_DATE: Final = 8


class _Moment(click.ParamType[int]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        is_number = value.isascii() and value.isdigit()
        if is_number and (len(value) == DIGITS_OF_MS or not value.strip("0")):
            return int(value)
        try:
            if is_number and len(value) != DIGITS_OF_DATE:
                raise ValueError
            at = datetime.datetime.fromisoformat(value)
        except ValueError:
            kinds = (
                "a time in ISO 8601 such as 2027-01-01T12:00 (UTC where it names no zone), "
                f"or epoch milliseconds of {DIGITS_OF_MS} digits"
            )
            self.fail(f"must be {kinds}, given {value!r}", param, ctx)
        at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
        return (at - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(milliseconds=1)


class _Number(click.ParamType[float]):
    """A number, of those that JSON has."""

    name = "number"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.fail(f"must be {self._what}, given {value!r}", param, ctx)
        return number


class _Pair(click.ParamType[tuple[str, str]]):
    name = "pair"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not name or not equals:
            self.fail(f"must be NAME=TEXT, given {value!r}", param, ctx)
        return name, text


class _Condition(click.ParamType[dict[str, str]]):
    name = "condition"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        if isinstance(value, dict):
            return value
        name, equals, text = value.partition("=")
        if not name:
            self.fail(f"must be NAME (it exists) or NAME=VALUE (it is that text), given {value!r}", param, ctx)
        return {"name": name, "value": text} if equals else {"name": name}


class _Place(click.ParamType[dict[str, Any]]):
    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        return {"to": value} if value in ("earliest", "latest") else {"to_ms": moment_ms.convert(value, param, ctx)}


moment_ms = _Moment()
place = _Place()
seconds = _Number("a number of seconds, such as 30 or 0.5")
threshold = _Number("a number of milliseconds, or a count")
pairs = _Pair()
condition = _Condition()


def words_of(words: Iterable[str]) -> click.Choice[str]:
    """The type of an option that is one of these words."""
    return click.Choice([str(word) for word in words])


def filter_of(conditions: Sequence[dict[str, str]], *, either: bool) -> dict[str, Any] | None:
    """A filter of the API; None without conditions."""
    return {"operator": "OR" if either else "AND", "conditions": list(conditions)} if conditions else None


def redrive_policy(queue: str | None, after: int | None) -> dict[str, Any] | None:
    """A redrive policy of the API; None without a queue."""
    if (queue is None) != (after is None):
        raise click.UsageError("--dead-letter-queue and --dead-letter-after go together: one of them is missing")
    return None if queue is None else {"dead_letter_queue": queue, "max_receive_count": after}


def reasoned(reason: str | None) -> dict[str, str] | None:
    """A body with a reason; None without one."""
    return None if reason is None else {"reason": reason}
