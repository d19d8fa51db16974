"""The span of one request: its name and attributes, by the conventions of HTTP, gRPC and messaging
(1.43 and later).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import time_ns
from typing import Any, Final

from opentelemetry.trace import Span, Status, StatusCode

from facade.http.tracing.contexts import link_to
from runtime.asked import Asked
from schemas.records.trace_context import TraceContext
from schemas.vocabulary import Verb

SYSTEM: Final = "leaseway"
# What a verb does to messages, in the words of the conventions. `create` and `process` are done by
# clients; a new length of a lease is none of these.
TYPES: Final[Mapping[str, str]] = {
    Verb.SEND: "send",
    Verb.RECEIVE: "receive",
    Verb.ACK: "settle",
    Verb.RELEASE: "settle",
    Verb.KILL: "settle",
}
GONE: Final = 499  # nobody was there to get the answer
FAILED_HTTP: Final = 500  # from here on it is the service that has failed
FAILED_RPC: Final = 50_000
MOST_LINKS: Final = 128  # what OpenTelemetry keeps of a span


class RequestSpan:
    """A request under way. Belongs to the task that serves it."""

    def __init__(self, span: Span, *, is_rpc: bool) -> None:
        self._tag = ""
        self._span = span
        self._is_rpc = is_rpc
        self._error = ""
        self._messages = 0
        self._links = 0
        self._id = ""
        self.is_over = False

    def add(self, context: TraceContext | None, message_id: str = "") -> None:
        """A message of the request, and its context if it has one."""
        self._messages += 1
        self._id = message_id
        if context is not None and self._links < MOST_LINKS:
            self._links += 1
            link = link_to(context, message_id)
            self._span.add_link(link.context, link.attributes)

    def ask_tag(self, tag: str) -> None:
        """It receives under a tag; "" = it named none."""
        self._tag = tag

    def name(self, message_id: str) -> None:
        """The id of the message that was added."""
        self._id = message_id

    def failed(self, error: BaseException) -> None:
        """It is answered with an error."""
        self._error = kind_of(error)

    def end(self, verb: str, status: int, asked: Asked | None) -> None:
        """It is answered. `verb`: as in the metrics; `asked`: what the engine was asked for."""
        self.is_over = True
        span = self._span
        if asked is not None and asked.verb and asked.queue:
            self._describe(asked)
        else:
            span.update_name(verb)
        if status == GONE:
            self._error = "client_gone"
        elif self._is_rpc:
            span.set_attribute("leaseway.rocketmq.code", status)
        else:
            span.set_attribute("http.response.status_code", status)
        is_ours = status >= (FAILED_RPC if self._is_rpc else FAILED_HTTP)
        if self._error or is_ours:
            span.set_attribute("error.type", self._error or str(status))
        if is_ours:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def _describe(self, asked: Asked) -> None:
        span, kind = self._span, TYPES.get(asked.verb)
        span.update_name(f"{asked.verb} {asked.queue}")
        told: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.name": asked.verb,
            "messaging.destination.name": asked.queue,
        }
        if kind:
            told["messaging.operation.type"] = kind
        if tag := self._tag or asked.tag:
            told["messaging.destination.subscription.name"] = tag
        if self._messages == 1 and self._id:
            told["messaging.message.id"] = self._id
        elif kind and self._messages != 1:
            told["messaging.batch.message_count"] = self._messages
        span.set_attributes(told)


def began_ns(waited_s: float) -> int:
    """When a request began that has waited for so long already (ns since 1970)."""
    return time_ns() - int(waited_s * 1_000_000_000)


def kind_of(error: BaseException) -> str:
    """The word for an error, out of a small set: that of its dialect, else its class."""
    code = getattr(getattr(error, "shape", None), "code", None) or getattr(error, "code", None)
    word = getattr(code, "word", None) or getattr(code, "name", None) or code
    return str(word) if word and word != "internal" else type(error).__name__
