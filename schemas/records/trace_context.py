"""The trace context of a message: in which attribute each dialect keeps it, and how one is told in
another's form.

A message has the context that its producer has put into it, and keeps it as it was given; a dialect
that has another place for contexts shows it there too. W3C Trace Context has `traceparent` and
`tracestate`, AWS X-Ray its trace header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from schemas.records import Attribute
from schemas.vocabulary import TRACE_ATTRIBUTE

# Of the native API, of EMQ, of users of SQS, and of producers of Kafka.
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
# System properties of MNS, and of RocketMQ.
MNS_TRACEPARENT: Final = "mns:traceparent"
MNS_TRACESTATE: Final = "mns:tracestate"
ROCKETMQ_CONTEXT: Final = "TRACE_CONTEXT"
# Where a context may be that not every dialect shows; native/src/plane is told these names.
OF_ONE_DIALECT: Final = (MNS_TRACEPARENT, ROCKETMQ_CONTEXT, TRACE_ATTRIBUTE)
XRAY_HEADER: Final = "x-amzn-trace-id"

SAMPLED: Final = 1
# native/src/dialects/sqs/traces.rs reads the same.
_W3C: Final = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_ROOT: Final = re.compile(r"1-(?P<time>[0-9a-f]{8})-(?P<rest>[0-9a-f]{24})")
_SPAN: Final = re.compile(r"[0-9a-f]{16}")
_MOST_CHARACTERS: Final = 512  # of what is read; W3C bounds a tracestate by that


class TraceContext(Struct, frozen=True, gc=False):
    """A span that is elsewhere: 32 and 16 lower-case hex digits, neither all zeros; of the `flags`
    the lowest bit says that the trace is sampled.
    """

    trace_id: str
    span_id: str
    flags: int
    state: str = ""

    @property
    def is_sampled(self) -> bool:
        """Whether its trace is recorded."""
        return bool(self.flags & SAMPLED)

    @property
    def traceparent(self) -> str:
        """The header of W3C."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    @property
    def xray(self) -> str:
        """The header of X-Ray, which has no state."""
        return f"Root=1-{self.trace_id[:8]}-{self.trace_id[8:]};Parent={self.span_id};Sampled={self.flags & SAMPLED}"


def of_w3c(traceparent: str, tracestate: str = "") -> TraceContext | None:
    """The context that headers of W3C tell; None = they tell none. A state that is too long is left
    out.
    """
    found = _W3C.fullmatch(traceparent) if len(traceparent) <= _MOST_CHARACTERS else None
    if found is None or (found["version"] == "00" and found["more"]):
        return None
    return _context(found["trace"], found["span"], int(found["flags"], 16), tracestate)


def of_xray(header: str) -> TraceContext | None:
    """The context that a header of X-Ray tells; None = it tells none, as one without a parent."""
    if len(header) > _MOST_CHARACTERS:
        return None
    fields = dict(part.strip().partition("=")[::2] for part in header.split(";"))
    root, span = _ROOT.fullmatch(fields.get("Root", "")), fields.get("Parent", "")
    if root is None or _SPAN.fullmatch(span) is None:
        return None
    return _context(root["time"] + root["rest"], span, SAMPLED if fields.get("Sampled") == "1" else 0, "")


def _context(trace_id: str, span_id: str, flags: int, state: str) -> TraceContext | None:
    if not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceContext(trace_id, span_id, flags, state if len(state) <= _MOST_CHARACTERS else "")


def of_attributes(attributes: Mapping[str, Attribute]) -> TraceContext | None:
    """The context of a message, in whichever form it has it; None = it has none. Of several the
    first counts that can be read: W3C's own names, then MNS, RocketMQ, SQS.
    """
    for parent, state in ((TRACEPARENT, TRACESTATE), (MNS_TRACEPARENT, MNS_TRACESTATE), (ROCKETMQ_CONTEXT, "")):
        if parent in attributes and (found := of_w3c(_text(attributes, parent), _text(attributes, state))) is not None:
            return found
    return of_xray(_text(attributes, TRACE_ATTRIBUTE)) if TRACE_ATTRIBUTE in attributes else None


def shown(attributes: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """The attributes of a message for a dialect that knows W3C's names: a context that the message
    has under another dialect's name alone is under these too.
    """
    if TRACEPARENT in attributes or not any(name in attributes for name in OF_ONE_DIALECT):
        return attributes
    context = of_attributes(attributes)
    if context is None:
        return attributes
    more = {TRACEPARENT: Attribute("string", context.traceparent.encode())}
    if context.state and TRACESTATE not in attributes:
        more[TRACESTATE] = Attribute("string", context.state.encode())
    return {**attributes, **more}


def _text(attributes: Mapping[str, Attribute], name: str) -> str:
    """The text of an attribute; empty of one that is not there, or is no text."""
    found = attributes.get(name)
    if found is None or found.type[:6].lower() != "string" or len(found.value) > _MOST_CHARACTERS:
        return ""
    return found.value.decode("ascii", "replace")
