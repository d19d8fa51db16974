"""Makes the spans of one worker: of requests that carry a sampled context, and of moves of messages
that have one. The service begins no trace of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from threading import Thread
from typing import Any, Final

from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from starlette.types import Scope

from engine.move.shapes import Move
from engine.shapes import Delivery, SendEntry, Sent
from facade.http.tracing.contexts import ROOT, child_of, link_to, of_headers
from facade.http.tracing.request import SYSTEM, RequestSpan, began_ns
from runtime import asked
from runtime.deadline import WAITED_S
from schemas.records.trace_context import TraceContext, of_attributes

# Contexts of messages that were handed out are known until so many others were: who settles a
# message names its handle alone.
KNOWN: Final = 10_000
STOP_S: Final = 3.0
# What a move is called, by what it settles its message as.
_MOVES: Final[Mapping[str, str]] = {"dead": "dead_letter", "moved": "redrive"}

# The request that this task serves, if it has a span.
_current: ContextVar[RequestSpan | None] = ContextVar("request_span", default=None)


class Tracing:
    """For one event loop. `close` writes what is left, and may take seconds."""

    def __init__(self, tracer: Tracer, close: Callable[[], None]) -> None:
        self._tracer = tracer
        self._close = close
        self._known: OrderedDict[str, TraceContext] = OrderedDict()

    async def stop(self) -> None:
        """Returns when all spans are written, after STOP_S at most."""
        loop, closed = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self._close()
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(closed.set)

        # No thread of the loop's: that one would be waited for.
        Thread(target=close, name="traces", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await closed.wait()

    # Requests, see `facade.dialect.Spans`.

    def begin(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        """See `Spans`."""
        told = {"http.request.method": scope["method"], "url.path": scope["path"], "url.scheme": scope["scheme"]}
        self._begin(of_headers(headers), told, headers.get(b"host", b"").decode("latin-1"), is_rpc=False)

    def begin_call(self, path: str, metadata: Mapping[str, str]) -> None:
        """See `Spans`."""
        headers = {name.encode(): value.encode("latin-1", "replace") for name, value in metadata.items()}
        told = {"rpc.system.name": "grpc", "rpc.method": path.removeprefix("/")}
        self._begin(of_headers(headers), told, metadata.get(":authority", ""), is_rpc=True)

    def _begin(self, context: TraceContext | None, told: dict[str, Any], host: str, *, is_rpc: bool) -> None:
        if context is None or not context.is_sampled:
            _current.set(None)
            return
        address, port = _server(host)
        if address:
            told["server.address"] = address
        if port:
            told["server.port"] = port
        span = self._tracer.start_span(
            "request", child_of(context), SpanKind.SERVER, attributes=told, start_time=began_ns(WAITED_S.get())
        )
        _current.set(RequestSpan(span, is_rpc=is_rpc) if span.is_recording() else None)

    def failed(self, error: BaseException) -> None:
        """See `Spans`."""
        if (request := _here()) is not None:
            request.failed(error)

    def end(self, verb: str, status: int) -> None:
        """See `Spans`."""
        if (request := _here()) is not None:
            request.end(verb, status, asked.current.get())

    # Messages, see `engine.services.traces.messages.Traces`.

    def sending(self, entries: Sequence[SendEntry]) -> None:
        """See `Traces`."""
        if (request := _here()) is not None:
            for entry in entries:
                request.add(of_attributes(entry.attributes))

    def sent(self, sent: Sequence[Sent]) -> None:
        """See `Traces`."""
        if (request := _here()) is not None and len(sent) == 1:
            request.name(sent[0].id)

    def received(self, tag: str, deliveries: Sequence[Delivery]) -> None:
        """See `Traces`."""
        if (request := _here()) is None:
            return
        request.ask_tag(tag)
        for delivery in deliveries:
            context = of_attributes(delivery.message.attributes)
            request.add(context, delivery.id)
            if context is not None:
                self._known[delivery.id] = context
                if len(self._known) > KNOWN:
                    self._known.popitem(last=False)

    def settling(self, handles: Sequence[str], id_of: Callable[[str], str]) -> None:
        """See `Traces`."""
        if (request := _here()) is not None:
            for handle in handles:
                of = id_of(handle)
                request.add(self._known.get(of), of)

    def moved(self, move: Move) -> None:
        """See `Traces`. A message without a sampled context has no span."""
        context = of_attributes(move.message.attributes)
        if context is None or not context.is_sampled:
            return
        verb = _MOVES[move.kind]
        told: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": verb,
            "messaging.operation.type": "send",
            "messaging.destination.name": move.target,
            "messaging.message.id": move.id,
            "leaseway.source.queue": move.source,
            "leaseway.source.tag": move.tag,
        }
        perhaps = {"leaseway.reason": move.reason, "leaseway.task": move.task, "error.type": move.error}
        told |= {name: value for name, value in perhaps.items() if value}
        span = self._tracer.start_span(
            f"{verb} {move.target}",
            ROOT,
            SpanKind.INTERNAL,
            told,
            [link_to(context, move.id)],
            start_time=move.began_ns,
        )
        if move.error:
            span.set_status(Status(StatusCode.ERROR))
        span.end()


def _here() -> RequestSpan | None:
    """The request that is under way here, if it has a span."""
    request = _current.get()
    return None if request is None or request.is_over else request


def _server(host: str) -> tuple[str, int]:
    """The address and the port of a Host; 0 = it names none."""
    name, colon, port = host.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or len(port) > 5:
        return host.strip("[]"), 0
    return name.strip("[]"), int(port)
