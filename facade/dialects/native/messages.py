"""Operations on messages: the hot verbs (send, receive, ack, extend, release, kill) and looking at
messages.

Each reads its parameters, asks the engine, and renders.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from engine.shapes import ExtendEntry
from facade.dialect import Carried
from facade.dialects.native.reference import examples
from facade.dialects.native.wire.letters.replies import CopyReply, EventsReply, copy_reply, events_reply
from facade.dialects.native.wire.letters.shapes import CopyMessageBody, EventsQuery
from facade.dialects.native.wire.render import delivery_reply, peeked_reply, results_reply, sent_reply
from facade.dialects.native.wire.replies import PageReply, PeekedReply, ReceiveReply, ResultsReply, SendReply
from facade.dialects.native.wire.shapes import (
    ExtendBody,
    HandlesBody,
    KillBody,
    PeekQuery,
    QueryMessages,
    ReceiveBody,
    ReleaseBody,
    RescheduleBody,
    SendBody,
)
from facade.dialects.native.wire.translate import distinct, edit_of, entries_of, filter_of, filter_of_query
from facade.dialects.native.wire.units import MESSAGE_RULE, QUEUE_RULE, to_ms
from facade.http.operation import Answer, Call, Operation
from facade.http.problem import ProblemError
from schemas.filters import Text

if TYPE_CHECKING:
    from engine.engine import Engine

_HANDLES = "handles[{}]"
_QUEUE = {"queue": QUEUE_RULE}
_MESSAGE = {"queue": QUEUE_RULE, "message": MESSAGE_RULE}


async def send(engine: Engine, call: Call) -> Answer:
    """Send one message, or several as an atomic batch."""
    sent = await engine.messages.send(call.by, call.path["queue"], entries_of(call.body.messages))
    return Answer(SendReply(messages=[sent_reply(one) for one in sent]))


async def receive(engine: Engine, call: Call) -> Answer | Carried:
    """Receive messages, waiting for them if asked to."""
    body: ReceiveBody = call.body
    wait_ms, lease_ms = to_ms(body.wait_seconds), to_ms(body.lease_seconds)
    deliveries = await engine.messages.receive(
        call.by, call.path["queue"], body.tag, body.max, wait_ms, lease_ms, filter=filter_of(body.filter)
    )
    if not deliveries:
        return Answer(ReceiveReply(messages=[]))
    unsent = partial(engine.messages.undelivered, deliveries)
    try:
        return Carried(Answer(ReceiveReply(messages=[delivery_reply(delivery) for delivery in deliveries])), unsent)
    except Exception:
        unsent()
        raise


async def ack(engine: Engine, call: Call) -> Answer:
    """Settle messages."""
    return Answer(
        results_reply(
            await engine.messages.ack(
                call.by, call.path["queue"], distinct(call.body.handles, _HANDLES), all_or_none=True
            )
        )
    )


async def extend(engine: Engine, call: Call) -> Answer:
    """Give leases a new length from now."""
    entries = [ExtendEntry(entry.handle, to_ms(entry.lease_seconds) or 0) for entry in call.body.entries]
    distinct([entry.handle for entry in entries], "entries[{}].handle")
    return Answer(results_reply(await engine.messages.extend(call.by, call.path["queue"], entries, all_or_none=True)))


async def release(engine: Engine, call: Call) -> Answer:
    """Give messages back."""
    handles = distinct(call.body.handles, _HANDLES)
    delay_ms = to_ms(call.body.delay_seconds) or 0
    return Answer(
        results_reply(await engine.messages.release(call.by, call.path["queue"], handles, delay_ms, all_or_none=True))
    )


async def kill(engine: Engine, call: Call) -> Answer:
    """Send messages to the dead-letter queue now."""
    body: KillBody = call.body
    handles = distinct(body.handles, _HANDLES)
    if body.reason and body.reasons is not None:
        raise ProblemError("duplicate_value", "A kill has reason or reasons, not both.", field="reasons")
    reasons = ([body.reason] * len(handles) if body.reason else []) if body.reasons is None else body.reasons
    return Answer(
        results_reply(await engine.messages.kill(call.by, call.path["queue"], handles, reasons, all_or_none=True))
    )


async def peek(engine: Engine, call: Call) -> Answer:
    """Look at one message; nothing is counted."""
    tag = None if call.query.tag is UNSET else call.query.tag
    return Answer(peeked_reply(await engine.messages.peek(call.by, call.path["queue"], call.path["message"], tag)))


async def events(engine: Engine, call: Call) -> Answer:
    """What happened to one message."""
    asked: EventsQuery = call.query
    tag, after = (None if value is UNSET else value for value in (asked.tag, asked.next))
    return Answer(
        events_reply(
            await engine.messages.message_events(call.by, call.path["queue"], call.path["message"], tag, after)
        )
    )


async def query(engine: Engine, call: Call) -> Answer:
    """Look for messages; nothing is counted."""
    asked: QueryMessages = call.query

    def given(value: Any) -> Any:
        return None if value is UNSET else value

    page = await engine.messages.query(
        call.by,
        call.path["queue"],
        given(asked.tag),
        given(asked.from_),
        given(asked.to),
        given(asked.state),
        filter_of_query(asked.attribute),
        asked.limit,
        given(asked.next),
        given(asked.partition),
        text=None if asked.text is UNSET else Text(asked.text, any_case=asked.ignore_case),
    )
    messages = [peeked_reply(peeked) for peeked in page.messages]
    return Answer(PageReply(messages=messages, next=page.next, scanned=page.scanned, cut=page.cut or None))


async def delete(engine: Engine, call: Call) -> Answer:
    """Delete one message under all tags."""
    await engine.messages.delete_message(call.by, call.path["queue"], call.path["message"])
    return Answer(status=204)


async def cancel(engine: Engine, call: Call) -> Answer:
    """Cancel one delayed message under all tags."""
    await engine.messages.cancel(call.by, call.path["queue"], call.path["message"])
    return Answer(status=204)


async def reschedule(engine: Engine, call: Call) -> Answer:
    """Give one delayed message another due time."""
    await engine.messages.reschedule(call.by, call.path["queue"], call.path["message"], call.body.deliver_at_ms)
    return Answer(status=204)


async def copy(engine: Engine, call: Call) -> Answer:
    """Send a copy of one message, edited."""
    body: CopyMessageBody = call.body
    message = call.path["message"]
    is_edited = not (body.body is None and body.body_base64 is None and body.attributes is None)
    copied = await engine.messages.copy_message(
        call.by, call.path["queue"], message, body.destination, edit_of(body), edited=is_edited, remove=body.remove
    )
    return Answer(copy_reply(message, copied))


def _verb(name: str, path: str, summary: str, run: Any, body: Any, reply: Any, **more: Any) -> Operation:
    return Operation(
        name=name,
        method="POST",
        path="/v1/queues/{queue}/" + path,
        group="Messages",
        summary=summary,
        run=run,
        replies={200: reply},
        example=examples.HOT[name],
        rules=_QUEUE,
        body=body,
        hot=True,
        codes=("queue_not_found", "not_allowed_on_queue", *more.pop("codes", ())),
        **more,
    )


def _inspecting(
    name: str, method: str, path: str, summary: str, run: Any, replies: dict[int, Any], **more: Any
) -> Operation:
    return Operation(
        name=name,
        method=method,
        path="/v1/queues/{queue}/messages" + path,
        group="Messages",
        summary=summary,
        run=run,
        replies=replies,
        example=examples.LOOK[name],
        codes=("queue_not_found", *more.pop("codes", ())),
        **more,
    )


OPERATIONS = (
    _verb(
        "send",
        "messages",
        "Send a message, or up to 100 as an atomic batch",
        send,
        SendBody,
        SendReply,
        bulky=True,
        codes=("message_too_large", "too_many_delayed"),
    ),
    _verb(
        "receive",
        "receive",
        "Receive messages, each leased to the caller; waits if asked to",
        receive,
        ReceiveBody,
        ReceiveReply,
        codes=("tag_not_found", "too_many_in_flight"),
        body_optional=True,
        long_poll=True,
    ),
    _verb("ack", "ack", "Settle messages: they are not received again under their tag", ack, HandlesBody, ResultsReply),
    _verb("extend", "extend", "Give leases a new length, counted from now", extend, ExtendBody, ResultsReply),
    _verb(
        "release",
        "release",
        "Give messages back, to be received again after a delay",
        release,
        ReleaseBody,
        ResultsReply,
    ),
    _verb("kill", "kill", "Send messages to the dead-letter queue now", kill, KillBody, ResultsReply),
    _inspecting(
        "query",
        "GET",
        "",
        "Look for messages by time, state, attribute and text; nothing is counted",
        query,
        {200: PageReply},
        rules=_QUEUE,
        query=QueryMessages,
        codes=("tag_not_found",),
    ),
    _inspecting(
        "peek",
        "GET",
        "/{message}",
        "Look at a message by id or handle; nothing is counted",
        peek,
        {200: PeekedReply},
        rules=_MESSAGE,
        query=PeekQuery,
        codes=("message_not_found", "tag_not_found", "invalid_handle"),
    ),
    _inspecting(
        "message_events",
        "GET",
        "/{message}/events",
        "What happened to a message, as the journal has it",
        events,
        {200: EventsReply},
        rules=_MESSAGE,
        query=EventsQuery,
        codes=("message_not_found", "tag_not_found", "invalid_handle"),
    ),
    _inspecting(
        "copy_message",
        "POST",
        "/{message}/copy",
        "Send a copy of a message, edited, to where it came from or elsewhere",
        copy,
        {200: CopyReply},
        rules=_MESSAGE,
        body=CopyMessageBody,
        body_optional=True,
        bulky=True,
        codes=("message_not_found", "message_too_large", "not_allowed_on_queue", "too_many_delayed", "invalid_handle"),
    ),
    _inspecting(
        "delete_message",
        "DELETE",
        "/{message}",
        "Delete a message that is not leased, under all tags",
        delete,
        {204: None},
        rules=_MESSAGE,
        codes=("message_not_found", "message_leased"),
    ),
    _inspecting(
        "cancel",
        "POST",
        "/{message}/cancel",
        "Cancel a delayed message under all tags: nobody receives it",
        cancel,
        {204: None},
        rules=_MESSAGE,
        codes=("message_not_found", "message_due"),
    ),
    _inspecting(
        "reschedule",
        "POST",
        "/{message}/reschedule",
        "Give a delayed message another due time",
        reschedule,
        {204: None},
        rules=_MESSAGE,
        body=RescheduleBody,
        codes=("message_not_found", "message_due", "not_allowed_on_queue", "too_many_delayed"),
    ),
)
