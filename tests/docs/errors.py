"""docs/reference/errors.md: every error of both dialects, from their own tables."""

from __future__ import annotations

from engine import errors
from facade.http import problem
from facade.sqs.wire import errors as sqs
from tests.docs.markdown import table, wrapped

HEAD = """# Errors

Written by `make docs` from the tables in `facade/http/problem.py` and
`facade/sqs/wire/errors.py`; a test keeps it fresh.

"""
NATIVE = """The native API answers with problem details (RFC 9457): `type`, `title`, `status`, `code`, `detail`,
and where one value is wrong `field`, `limit` and `given`. Programs should look at `code`, which is
stable. Repeat a request only after 503, when `Retry-After` seconds have passed. After `log_unavailable`
the outcome of a send is unknown, and after `store_unavailable` that of a change such as an ack; after
the others nothing was done."""
SQS = """The query protocol has the last column as `Code`; AWS JSON has the shape in `__type`, and the code
of the query protocol in the header `x-amzn-query-error`. SDKs repeat 5xx and `RequestThrottled`."""


def page() -> str:
    """The page."""
    native = [
        (f"`{code}`", str(row.status), row.title) for code, row in sorted(problem.CODES.items(), key=lambda item: (item[1].status, item[0]))
    ]
    engine = [
        (f"`{error.code}`", f"`{sqs.ERRORS[error].type.partition('#')[2]}`", str(sqs.ERRORS[error].status), f"`{sqs.ERRORS[error].code}`")
        for error in sqs.ERRORS
        if "code" in vars(error) and error is not errors.EngineError
    ]
    named = {name: shape for name, shape in vars(sqs).items() if isinstance(shape, sqs.Shape)}
    of_engine = set(sqs.ERRORS.values())
    others = [
        (f"`{shape.type.partition('#')[2]}`", str(shape.status), f"`{shape.code}`")
        for shape in sorted(named.values(), key=lambda shape: shape.type.partition("#")[2])
        if shape not in of_engine
    ]
    return (
        HEAD
        + "## Native API\n\n"
        + wrapped(NATIVE)
        + table(("code", "status", "meaning"), native)
        + "\n## Amazon SQS\n\n"
        + wrapped(SQS)
        + "Errors that both dialects know:\n\n"
        + table(("native code", "shape of SQS", "status", "code of the query protocol"), engine)
        + "\nErrors that only SQS knows:\n\n"
        + table(("shape", "status", "code of the query protocol"), others)
    )
