"""Spans that are kept in memory, by OpenTelemetry's own SDK."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import absent

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
W3C = f"00-{TRACE}-{SPAN}-01"
UNSAMPLED = f"00-{TRACE}-{SPAN}-00"
XRAY = f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=1"


class Traced:
    """A tracing, and the spans that it has ended."""

    def __init__(self) -> None:
        try:
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import SimpleSpanProcessor
            from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        except ImportError:
            absent("OpenTelemetry (requirements/otel.lock)")

        from facade.http.tracing.tracing import Tracing

        self.memory = InMemorySpanExporter()
        provider = TracerProvider(ALWAYS_ON, shutdown_on_exit=False)  # what is left out, we leave out
        provider.add_span_processor(SimpleSpanProcessor(self.memory))
        self.tracing = Tracing(provider.get_tracer("test"), provider.shutdown)

    @property
    def spans(self) -> list[Any]:
        return list(self.memory.get_finished_spans())

    def one(self) -> Any:
        (span,) = self.spans
        return span


@pytest.fixture
def traced() -> Traced:
    return Traced()


def links_of(span: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """The links of a span: trace, span, attributes."""
    return [
        (f"{one.context.trace_id:032x}", f"{one.context.span_id:016x}", dict(one.attributes or {}))
        for one in span.links
    ]
