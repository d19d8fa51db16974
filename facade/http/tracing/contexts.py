"""Contexts between the service and OpenTelemetry: of requests, by their headers; of messages."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context

from schemas.records.trace_context import TRACEPARENT, TRACESTATE, XRAY_HEADER, TraceContext, of_w3c, of_xray

ROOT = Context()  # of a span without a parent, whatever runs


def of_headers(headers: Mapping[bytes, bytes]) -> TraceContext | None:
    """The context that a request carries: W3C's, else X-Ray's; None = it carries none that can be
    read.
    """
    parent = headers.get(TRACEPARENT.encode())
    if parent is not None:
        found = of_w3c(parent.decode("latin-1"), headers.get(TRACESTATE.encode(), b"").decode("latin-1"))
        if found is not None:
            return found
    xray = headers.get(XRAY_HEADER.encode())
    return None if xray is None else of_xray(xray.decode("latin-1"))


def span_context(context: TraceContext) -> SpanContext:
    """The same for OpenTelemetry."""
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(int(context.trace_id, 16), int(context.span_id, 16), True, TraceFlags(context.flags), state)


def child_of(context: TraceContext) -> Context:
    """What a span is begun with whose parent is elsewhere."""
    return set_span_in_context(NonRecordingSpan(span_context(context)), ROOT)


def link_to(context: TraceContext, message_id: str = "") -> Link:
    """A link to the context of a message."""
    return Link(span_context(context), {"messaging.message.id": message_id} if message_id else None)
