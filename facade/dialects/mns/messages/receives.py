"""ReceiveMessage and BatchReceiveMessage, PeekMessage and BatchPeekMessage.

That there is nothing is an error here (reference/mns.md 5, 11).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from facade.dialect import Carried
from facade.dialects.mns.messages.render import peeked, received
from facade.dialects.mns.queues.call import Answer, Call
from facade.dialects.mns.queues.names import address
from facade.dialects.mns.wire.errors import NO_MESSAGE, MnsError
from facade.dialects.mns.wire.query import asked
from facade.dialects.mns.wire.replies import Items

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.shapes import Principal

_MOST: Final = (1, 16)
_WAIT_SECONDS: Final = (0, 30)


def _answer(messages: list[Items], *, batch: bool) -> Answer:
    if batch:
        return Answer(200, "Messages", [("Message", one) for one in messages])
    return Answer(200, "Message", messages[0])


async def receive_message(engine: Engine, call: Call) -> Carried:
    """Receive one message, or up to as many as are asked for, waiting for the first."""
    at = address(call.name)
    most = asked(call.query, "numOfMessages", *_MOST)
    wait_s = asked(call.query, "waitseconds", *_WAIT_SECONDS)
    wait_ms = _queue_wait_ms(engine, call.by, at.queue) if wait_s is None else wait_s * 1000
    deliveries = await engine.messages.receive(call.by, at.queue, at.tag, most or 1, wait_ms, None)
    if not deliveries:
        raise MnsError(NO_MESSAGE, "Message not exist.")
    unsent = partial(engine.messages.undelivered, deliveries)
    try:
        messages = [received(delivery, engine.messages.one_use(delivery)) for delivery in deliveries]
        return Carried(_answer(messages, batch=most is not None), unsent)
    except Exception:
        unsent()
        raise


def _queue_wait_ms(engine: Engine, by: Principal, queue: str) -> int | None:
    """What another dialect has set may be longer than SDKs wait for an answer. None = the queue's
    own.
    """
    record, longest = engine.queues.known(queue, by), _WAIT_SECONDS[1] * 1000
    return longest if record is not None and record.receive_wait_ms > longest else None


async def peek_message(engine: Engine, call: Call) -> Answer:
    """Look at the next message, or at some: none is received by it."""
    at = address(call.name)
    most = asked(call.query, "numOfMessages", *_MOST)
    found = await engine.messages.peek_next(call.by, at.queue, at.tag, most or 1)
    if not found:
        raise MnsError(NO_MESSAGE, "Message not exist.")
    return _answer([peeked(one) for one in found], batch=most is not None)
