"""RecallMessage: a timed message that is not due yet is taken back, by the handle that its send was
answered with.

A handle says no secret: the id of the service in it is what the message is found by, and who
recalls needs the right to cancel.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from msgspec import Struct

from engine.errors import MessageNotFound
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.names import record_of, topic_of
from facade.dialects.rocketmq.queues.routes import BROKER
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, ok
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from schemas.vocabulary import MessageState

_VERSION: Final = "v1"
_CHARACTERS: Final = 2048


class RecallHandle(Struct, frozen=True):
    """A timed message: its topic, when it is due, its id in the service, and that of its client."""

    topic: str
    due_ms: int
    id: str
    message_id: str

    def text(self) -> str:
        """As clients get it: like RocketMQ's own, with an id of the service behind."""
        words = (_VERSION, self.topic, BROKER, str(self.due_ms), self.message_id, self.id)
        return urlsafe_b64encode(" ".join(words).encode()).decode()

    @classmethod
    def parse(cls, text: str) -> RecallHandle:
        """Raises RocketError."""
        try:
            if len(text) > _CHARACTERS:
                raise ValueError
            version, topic, broker, due, message_id, name = urlsafe_b64decode(text.encode()).decode().split(" ")
            if (version, broker) != (_VERSION, BROKER) or not (due.isascii() and due.isdigit() and len(due) < 16):
                raise ValueError
        except ValueError:
            raise RocketError(Code.BAD_REQUEST, "that is no recall handle of this service") from None
        return cls(topic, int(due), name, message_id)


async def recall_message(call: Call, clients: Clients) -> pb.RecallMessageResponse:
    """Takes a message back before it is due; may be repeated."""
    given: pb.RecallMessageRequest = call.body
    topic, handle = topic_of(given.topic), RecallHandle.parse(given.recall_handle)
    if handle.topic != topic:
        raise RocketError(Code.BAD_REQUEST, f"the recall handle is not of topic {topic!r}")
    record = await record_of(call.engine, call.by, topic)
    try:
        await call.engine.messages.cancel(call.by, record.name, handle.id)
    except MessageNotFound:
        # Settled before it was due, so it was taken back already: nobody can have received it.
        found = await call.engine.messages.peek(call.by, record.name, handle.id, None)
        if found.state != MessageState.SETTLED or call.engine.queues.kafka_ms() >= handle.due_ms:
            raise
    return pb.RecallMessageResponse(status=ok(), message_id=handle.message_id)
