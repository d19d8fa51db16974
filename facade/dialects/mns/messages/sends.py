"""SendMessage and BatchSendMessage.

Of a batch each message that is wrong fails alone, and what is right is sent together.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from engine.errors import MessageTooLarge
from engine.rules.limits import message_bytes
from engine.shapes import SendEntry, Sent
from facade.dialects.mns.messages import delayed
from facade.dialects.mns.messages.properties import incoming
from facade.dialects.mns.queues.call import Answer, Call
from facade.dialects.mns.queues.names import address
from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, MALFORMED_XML, MnsError, mns_error
from facade.dialects.mns.wire.query import number
from facade.dialects.mns.wire.replies import Item, Items
from facade.dialects.mns.wire.xml import Element
from schemas.records import QueueRecord
from schemas.vocabulary import PRIORITIES

if TYPE_CHECKING:
    from engine.engine import Engine

BATCH: Final = 16
BATCH_BYTES: Final = 65_536  # of a queue whose messages may be larger: one of them
_DELAY_SECONDS: Final = (0, 604_800)
_PRIORITIES: Final = (1, PRIORITIES)
# Some of a batch was stored and some not. A status of success would hide what was not.
PARTIAL: Final = 500


def _entry(given: Element, record: QueueRecord) -> SendEntry:
    """What the engine gets: a message that has passed every check. Raises MnsError."""
    if given.name != "Message":
        raise MnsError(MALFORMED_XML, f"the body must have Message elements, given {given.name[:100]}")
    body, delay_s = given.value("MessageBody"), _number(given, "DelaySeconds", _DELAY_SECONDS)
    if not body:
        raise MnsError(INVALID_ARGUMENT, "The value of MessageBody should not be empty")
    # An SDK that has no group sends an empty one.
    group = given.value("MessageGroupId") or None
    entry = SendEntry(
        body.encode(),
        incoming(given),
        None if delay_s is None else delay_s * 1000,
        group=group,
        dedup_id=secrets.token_hex(8) if record.fifo and not record.content_dedup else None,
        priority=_number(given, "Priority", _PRIORITIES),
    )
    size, limit = message_bytes(entry), record.max_message_bytes
    if size > limit:
        about = f"The size of a message should between 1 and {limit}, given {size}"
        raise mns_error(MessageTooLarge(about, field="body", limit=limit, given=size))
    return entry


def _number(given: Element, name: str, allowed: tuple[int, int]) -> int | None:
    text = given.value(name)
    return None if text is None else number(name, text, *allowed)


def _sent(entry: SendEntry, sent: Sent) -> tuple[Item, Item]:
    return ("MessageId", sent.id), ("MessageBodyMD5", sent.body_md5.upper())


async def send_message(engine: Engine, call: Call) -> Answer:
    """Send one message. To a tag: the queue gets it, so every tag that wants it does."""
    assert call.body is not None  # what is sent chose this operation
    name = address(call.name).queue
    record = engine.queues.known(name, call.by) or await engine.queues.record(name, call.by)
    entry = _entry(call.body, record)
    (sent,) = await engine.messages.send(call.by, name, [entry])
    handle = delayed.handle_of(record, entry, sent)
    return Answer(201, "Message", (*_sent(entry, sent), ("ReceiptHandle", handle), ("MessageGroupId", entry.group)))


async def batch_send_message(engine: Engine, call: Call) -> Answer:
    """Send up to 16 messages."""
    assert call.body is not None
    name, given = address(call.name).queue, call.body.children
    record = engine.queues.known(name, call.by) or await engine.queues.record(name, call.by)
    if not 1 <= len(given) <= BATCH:
        raise MnsError(INVALID_ARGUMENT, f"The number of messages should between 1 and {BATCH}, given {len(given)}")
    entries: dict[int, SendEntry] = {}
    told: dict[int, Items] = {}
    for place, one in enumerate(given):
        try:
            entries[place] = _entry(one, record)
        except MnsError as error:
            if error.code is MALFORMED_XML:
                raise
            told[place] = (("ErrorCode", error.code.word), ("ErrorMessage", error.message))
    size, limit = sum(message_bytes(entry) for entry in entries.values()), max(BATCH_BYTES, record.max_message_bytes)
    if size > limit:
        raise MnsError(INVALID_ARGUMENT, f"The size of a batch should between 1 and {limit}, given {size}")
    is_whole = not told
    if entries:
        sent = await engine.messages.send(call.by, name, list(entries.values()))
        told |= {place: _sent(entry, one) for (place, entry), one in zip(entries.items(), sent, strict=True)}
    return Answer(201 if is_whole else PARTIAL, "Messages", [("Message", told[place]) for place in sorted(told)])
