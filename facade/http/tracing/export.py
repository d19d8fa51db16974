"""Sends spans to a collector by OTLP over HTTP, as OpenTelemetry's own variables (OTEL_*) say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from engine.settings import BadSetting

if TYPE_CHECKING:
    from facade.http.tracing.tracing import Tracing

NAME: Final = "leaseway"
NEEDED: Final = "LEASEWAY_TRACES=otlp needs OpenTelemetry: install the extra otel, or requirements/otel.lock"


def opened() -> Tracing:
    """What makes spans and sends them: it never waits for the collector, and drops what that does
    not take. Raises BadSetting without the packages.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from facade.http.tracing.tracing import Tracing
    except ImportError as error:
        raise BadSetting(f"{NEEDED} ({error})") from None
    provider = TracerProvider(resource=Resource.create(_about()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider.get_tracer(NAME), provider.shutdown)


def _about() -> dict[str, str | int]:
    """What tells this worker from other processes. What is given here goes before the
    environment.
    """
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return {"process.pid": os.getpid(), **({} if named else {"service.name": NAME})}
