"""Contexts of requests: which header says it, and what OpenTelemetry is told."""

from __future__ import annotations

import pytest

from schemas.records.trace_context import TraceContext
from tests.unit.facade.tracing.conftest import SPAN, TRACE, UNSAMPLED, W3C, XRAY, Traced


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({}, None),
        ({"traceparent": W3C, "tracestate": "a=b"}, TraceContext(TRACE, SPAN, 1, "a=b")),
        ({"traceparent": UNSAMPLED, "x-amzn-trace-id": XRAY}, TraceContext(TRACE, SPAN, 0)),
        ({"traceparent": "damaged", "x-amzn-trace-id": XRAY}, TraceContext(TRACE, SPAN, 1)),
        ({"x-amzn-trace-id": "Root=1"}, None),
        ({"traceparent": "\xe9"}, None),
    ],
)
def test_headers(traced: Traced, headers: dict[str, str], found: TraceContext | None) -> None:
    from facade.http.tracing.contexts import of_headers

    assert of_headers({name.encode(): text.encode("latin-1") for name, text in headers.items()}) == found


def test_the_same_for_opentelemetry(traced: Traced) -> None:
    from facade.http.tracing.contexts import link_to, span_context

    told = span_context(TraceContext(TRACE, SPAN, 1, "a=b"))
    link = link_to(TraceContext(TRACE, SPAN, 1), "id1")

    assert (f"{told.trace_id:032x}", f"{told.span_id:016x}", told.is_remote, told.is_valid) == (TRACE, SPAN, True, True)
    assert (int(told.trace_flags), told.trace_state.to_header()) == (1, "a=b")
    assert (link.context.span_id, dict(link.attributes)) == (told.span_id, {"messaging.message.id": "id1"})
