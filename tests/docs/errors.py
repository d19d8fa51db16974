"""docs/reference/errors.md: every error of both dialects, from their own tables."""

from __future__ import annotations

from engine import errors
from facade.dialects.sqs.wire import errors as sqs
from facade.http import problem
from tests.docs.markdown import item, wrapped

HEAD = """# Errors

Written by `make docs` from the code.

"""
NATIVE = """The native API answers with problem details (RFC 9457): `type`, `title`, `status`, `code`, `detail`,
and where one value is wrong `field`, `limit` and `given`. Programs should look at `code`, which is
stable. Repeat a request only after 503, when `Retry-After` seconds have passed. After `log_unavailable`
the outcome of a send is unknown, and after `store_unavailable` that of a change such as an ack; after
the others nothing was done."""
SQS = """AWS JSON has the shape in `__type`, and the code of the query protocol in the header
`x-amzn-query-error`; the query protocol has it as `Code`. It is given here where it differs. SDKs repeat
5xx and `RequestThrottled`. Shapes with the native codes of the same errors:"""


def page() -> str:
    """The page."""
    named = {name: shape for name, shape in vars(sqs).items() if isinstance(shape, sqs.Shape)}
    of_engine: dict[sqs.Shape, list[str]] = {}
    for error, shape in sqs.ERRORS.items():
        if "code" in vars(error) and error is not errors.EngineError:
            of_engine.setdefault(shape, []).append(f"`{error.code}`")
    others = sorted((shape for shape in named.values() if shape not in sqs.ERRORS.values()), key=_shape)
    return (
        HEAD
        + "## Native API\n\n"
        + wrapped(NATIVE).rstrip("\n")
        + "\n"
        + "".join(_native(status) for status in sorted({row.status for row in problem.CODES.values()}))
        + "\n## Amazon SQS\n\n"
        + wrapped(SQS)
        + "".join(item(f"{_line(shape)}: {', '.join(codes)}") for shape, codes in of_engine.items())
        + "\n"
        + wrapped("Errors that only SQS knows:")
        + "".join(item(_line(shape)) for shape in others)
    )


def _native(status: int) -> str:
    rows = sorted((code, row.title) for code, row in problem.CODES.items() if row.status == status)
    return f"\n### {status}\n\n" + "".join(item(f"`{code}`: {title}") for code, title in rows)


def _shape(shape: sqs.Shape) -> str:
    return shape.type.partition("#")[2]


def _line(shape: sqs.Shape) -> str:
    code = "" if shape.code == _shape(shape) else f", `{shape.code}`"
    return f"`{_shape(shape)}` {shape.status}{code}"
