"""What goes wrong, as RFC 9457 problem details: one row per code, one table from engine errors to
codes' statuses.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from engine import errors
from facade.dialect import Response

MEDIA_TYPE = "application/problem+json"
GIVEN_CHARACTERS = 200
_INT64 = 2**63


class Row(NamedTuple):
    """The HTTP status of a code and the sentence that never changes."""

    status: int
    title: str


def _title(error: type[errors.EngineError]) -> str:
    return (error.__doc__ or "").strip()


# Engine error -> status. A class without a row gets that of its nearest base; the unit test wants a
# row for each code.
STATUSES: dict[type[errors.EngineError], int] = {
    errors.EngineError: 500,
    errors.NotFound: 404,
    errors.QueueNotFound: 404,
    errors.TagNotFound: 404,
    errors.MessageNotFound: 404,
    errors.TaskNotFound: 404,
    errors.KeyNotFound: 404,
    errors.TransactionNotFound: 404,
    errors.ProducerGroupNotFound: 404,
    errors.AlertNotFound: 404,
    errors.Conflict: 409,
    errors.QueueExists: 409,
    errors.TagExists: 409,
    errors.QueueInUse: 409,
    errors.TooManyDelayed: 409,
    errors.MessageLeased: 409,
    errors.MessageDue: 409,
    errors.TaskEnded: 409,
    errors.TransactionDecided: 409,
    errors.TransactionGone: 409,
    errors.TooManyTransactions: 409,
    errors.TooManyInFlight: 409,
    errors.Refused: 400,
    errors.InvalidValue: 400,
    errors.MessageTooLarge: 413,
    errors.DelayTooLong: 400,
    errors.InvalidHandle: 400,
    errors.NotAllowedOnQueue: 409,
    errors.Denied: 403,
    errors.NotAuthenticated: 401,
    errors.NotAuthorised: 403,
    errors.Unavailable: 503,
    errors.LogUnavailable: 503,
    errors.NotStored: 503,
    errors.StoreUnavailable: 503,
    errors.Rebuilding: 503,
    errors.QueueRenewed: 503,
    errors.Overloaded: 503,
    errors.QuotaExceeded: 429,
    errors.TooManyAttempts: 429,
}

# Codes of the facade itself: what is wrong with a request before the engine sees it.
FACADE_CODES: dict[str, Row] = {
    "malformed_json": Row(400, "The body is not JSON in UTF-8."),
    "too_deep": Row(400, "The JSON is nested too deeply."),
    "missing_body": Row(400, "The request needs a JSON body."),
    "malformed_query": Row(400, "The query string can't be read."),
    "unknown_field": Row(400, "There is no such field."),
    "missing_field": Row(400, "A field is missing."),
    "wrong_type": Row(400, "A value has the wrong type."),
    "duplicate_value": Row(400, "A value is given twice."),
    "cross_site": Row(403, "A page of another site may not change anything here."),
    "path_not_found": Row(404, "There is nothing at this path."),
    "no_redrive_policy": Row(404, "The queue has no redrive policy."),
    "subject_not_found": Row(404, "There is no subject of that name."),
    "version_not_found": Row(404, "The subject has no such version."),
    "schema_not_found": Row(404, "No schema has that id."),
    "method_not_allowed": Row(405, "The method is not allowed at this path."),
    "misdirected": Row(
        421, "In open mode the service answers to names of this machine only (LEASEWAY_HOSTS names more)."
    ),
    "body_too_large": Row(413, "The body is larger than a request may be."),
    "unsupported_media_type": Row(415, "The body must be application/json in UTF-8, not compressed."),
    "invalid_version": Row(422, "A version is a number from 1, or latest."),
    "internal": Row(500, "Something went wrong in the facade."),
}


def _codes() -> dict[str, Row]:
    rows = {error.code: Row(status, _title(error)) for error, status in STATUSES.items() if "code" in vars(error)}
    return {**rows, **FACADE_CODES}


CODES = _codes()


class Problem(Struct, frozen=True, kw_only=True):
    """Problem details. `field`, `limit` and `given` are there when the problem is one value of the
    request.
    """

    type: Annotated[str, Meta(description="The place in /docs that tells of the code.")]
    title: Annotated[str, Meta(description="The sentence of the code, which never changes.")]
    status: Annotated[int, Meta(description="The HTTP status.")]
    code: Annotated[str, Meta(description="What went wrong, for programs; stable.")]
    detail: Annotated[str, Meta(description="What went wrong, for people.")]
    field: Annotated[str, Meta(description="Which value of the request is wrong.")] | UnsetType = UNSET
    limit: Annotated[Any, Meta(description="What would be right.")] = UNSET
    given: Annotated[Any, Meta(description="What was given, at most 200 characters of it.")] = UNSET


class ProblemError(Exception):
    """A request that can't be passed on to the engine; `code` is a row of FACADE_CODES or
    `invalid_value`.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        field: str | None = None,
        limit: Any = None,
        given: Any = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(detail or CODES[code].title)
        self.code = code
        self.field = field
        self.limit = limit
        self.given = given
        self.headers = headers


def shortened(given: Any) -> Any:
    """`given` as it may be repeated to the client: a scalar as it is, all else as text of at most
    200 characters.
    """
    if given is None or isinstance(given, bool | float) or (isinstance(given, int) and -_INT64 <= given < _INT64):
        return given
    if isinstance(given, bytes):
        text = given[: 4 * GIVEN_CHARACTERS].decode("utf-8", "replace")
    elif isinstance(given, str):
        text = given[:GIVEN_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
    elif isinstance(given, int):
        text = hex(given)  # decimal text of a huge number is quadratic, and refused by Python above 4300 digits
    else:
        try:
            text = msgspec.json.encode(given).decode("utf-8")
        except (TypeError, ValueError, OverflowError, RecursionError):
            text = type(given).__name__
    return text[:GIVEN_CHARACTERS]


def _limit(limit: Any) -> Any:
    """A limit for the client: a list such as [0, 900] stays one."""
    return [shortened(part) for part in limit] if isinstance(limit, list | tuple) else shortened(limit)


def problem(
    code: str, detail: str, *, status: int = 0, field: str | None = None, limit: Any = None, given: Any = None
) -> Problem:
    """The problem of `code`; a value that is None is left out."""
    row = CODES[code]
    return Problem(
        type=f"/docs#{code}",
        title=row.title,
        status=status or row.status,
        code=code,
        detail=detail,
        field=UNSET if field is None else field,
        limit=UNSET if limit is None else _limit(limit),
        given=UNSET if given is None else shortened(given),
    )


def status_of(error: type[errors.EngineError]) -> int:
    """The status of an engine error: that of the most specific class that has a row."""
    return next(STATUSES[base] for base in error.__mro__ if base in STATUSES)


def problem_of(error: errors.EngineError | ProblemError) -> Problem:
    """The problem that tells of `error`."""
    detail = str(error.args[0]) if error.args else ""
    if isinstance(error, ProblemError):
        return problem(error.code, detail, field=error.field, limit=error.limit, given=error.given)
    status = status_of(type(error))
    if status >= 500 and not isinstance(error, errors.Unavailable):
        return problem("internal", CODES["internal"].title)  # an abstract error says nothing that a client may see
    code = error.code if error.code in CODES else "internal"
    return problem(code, detail, status=status, field=error.field, limit=error.limit, given=error.given)


def refusal(code: str) -> Response:
    """The whole reply to a request whose dialect is not looked at."""
    found = problem(code, CODES[code].title)
    body = msgspec.json.encode(found)
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    return Response(found.status, headers, body)


def headers_of(error: errors.EngineError | ProblemError) -> tuple[tuple[str, str], ...]:
    """The headers that go with a problem: when to repeat, how to authenticate, which methods there
    are.
    """
    if isinstance(error, errors.Unavailable):
        return (("retry-after", str(error.retry_after_s)),)
    if isinstance(error, errors.NotAuthenticated):
        return (("www-authenticate", 'Basic realm="leaseway", charset="UTF-8"'),)
    return error.headers if isinstance(error, ProblemError) else ()
