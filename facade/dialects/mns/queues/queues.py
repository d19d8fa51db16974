"""CreateQueue, SetQueueAttributes, GetQueueAttributes, ListQueue, DeleteQueue.

A queue made again with other attributes is refused, and of those that a request does not name none
is compared (reference/mns.md 5, 18).
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Final

from engine.errors import QueueExists, QueueNotFound, TagNotFound
from engine.shapes import QueueInfo, TagInfo
from facade.dialects.mns.queues import settings
from facade.dialects.mns.queues.call import DONE, Answer, Call
from facade.dialects.mns.queues.names import Address, address, check_new
from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, QUEUE_EXISTS, MnsError
from facade.dialects.mns.wire.query import number
from facade.dialects.mns.wire.replies import Item
from schemas.records import QueueRecord
from schemas.records.settings import QueueSettings
from schemas.vocabulary import DEFAULT_TAG

if TYPE_CHECKING:
    from engine.engine import Engine

_PAGE: Final = (1, 1000)


async def create_queue(engine: Engine, call: Call) -> Answer:
    """Make a queue, or a tag of one that is there; 204 = an equal one is there."""
    at, wanted = address(call.name), settings.changes(call.body)
    if at.tag is not None:
        made = await _create_tag(engine, call, at, at.tag, wanted)
    else:
        made = await _create(engine, call, at.queue, wanted)
    return Answer(201 if made else 204, location=call.url(at.name))


async def _create(engine: Engine, call: Call, name: str, wanted: settings.Changes) -> bool:
    if engine.queues.known(name, call.by) is not None:
        return await _same(engine, call, name, wanted)
    check_new(name)
    try:
        _, made = await engine.queues.create_queue(
            call.by, name, settings.new_queue(wanted, priority=call.options.priority)
        )
        return made
    except QueueExists as error:
        # This worker had not heard of it; or it isn't there, and the name is too like another's.
        try:
            return await _same(engine, call, name, wanted)
        except QueueNotFound:
            raise error from None


async def _same(engine: Engine, call: Call, name: str, wanted: settings.Changes) -> bool:
    """False when the queue is as wanted. Raises MnsError."""
    differs = settings.differing(await engine.queues.get_queue(call.by, name), wanted)
    if differs is not None:
        raise MnsError(QUEUE_EXISTS, f"The queue {name!r} exists with another {differs}")
    return False


async def _create_tag(engine: Engine, call: Call, at: Address, tag: str, wanted: settings.Changes) -> bool:
    """A tag sees what is sent from now on."""
    found = await engine.queues.get_queue(call.by, at.queue)
    differs = settings.differing(found, wanted)
    if differs is not None:
        raise MnsError(
            INVALID_ARGUMENT, f"A tag has the attributes of its queue {at.queue!r}, which has another {differs}"
        )
    if any(one.name == tag for one in found.tags):
        return False
    _, made = await engine.queues.create_tag(call.by, at.queue, tag, -1, None, {})
    return made


async def set_queue_attributes(engine: Engine, call: Call) -> Answer:
    """Change what is named; the rest stays."""
    at, wanted = address(call.name), settings.changes(call.body)
    if at.tag is not None:
        raise MnsError(INVALID_ARGUMENT, f"A tag has the attributes of its queue: set those of {at.queue!r}")

    def edit(record: QueueRecord) -> QueueSettings:
        return wanted.settings(record.user_attributes)

    await engine.queues.set_queue(call.by, at.queue, QueueSettings(), edit)
    return DONE


async def get_queue_attributes(engine: Engine, call: Call) -> Answer:
    """All attributes and the counts, of a tag if one is named."""
    at = address(call.name)
    found = await engine.queues.get_queue(call.by, at.queue)
    return Answer(200, "Queue", settings.shown(found, at.name, _tag_of(found, at)))


def _tag_of(queue: QueueInfo, at: Address) -> TagInfo:
    """The tag that is spoken to. Raises TagNotFound."""
    name = at.tag or DEFAULT_TAG
    for tag in queue.tags:
        if tag.name == name or (queue.default_tag_name and name == queue.default_tag_name and tag.name == DEFAULT_TAG):
            return tag
    raise TagNotFound(f"queue {queue.name!r} has no tag {name[:100]!r}", field="tag", given=name)


async def list_queue(engine: Engine, call: Call) -> Answer:
    """Queues in the order of their names. The last page has no NextMarker."""
    prefix = _header(call, b"x-mns-prefix")
    size = _header(call, b"x-mns-ret-number")
    marker = _header(call, b"x-mns-marker")
    with_meta = _header(call, b"x-mns-with-meta").lower() == "true"
    most = number("x-mns-ret-number", size, *_PAGE) if size else _PAGE[1]
    names, after = await engine.queues.list_queues(call.by, prefix, most, _after(marker) if marker else None)
    queues: list[Item] = []
    for name in names:
        url: Item = ("QueueURL", call.url(name))
        if not with_meta:
            queues.append(("Queue", (url,)))
            continue
        try:
            found = await engine.queues.get_queue(call.by, name)
        except QueueNotFound:
            continue  # deleted meanwhile
        queues.append(("Queue", (url, *settings.shown(found, name, _tag_of(found, Address(name))))))
    last: Item = ("NextMarker", None if after is None else urlsafe_b64encode(after.encode()).decode())
    return Answer(200, "Queues", (*queues, last))


def _header(call: Call, name: bytes) -> str:
    try:
        return call.headers.get(name, b"").decode()
    except UnicodeDecodeError:
        raise MnsError(INVALID_ARGUMENT, f"The header {name.decode()} is not UTF-8") from None


def _after(marker: str) -> str:
    try:
        return b64decode(marker.encode(), b"-_", validate=True).decode()
    except (UnicodeError, Base64Error, ValueError):
        raise MnsError(INVALID_ARGUMENT, "The value of x-mns-marker is no NextMarker of a list") from None


async def delete_queue(engine: Engine, call: Call) -> Answer:
    """Delete a queue and its messages, or a tag."""
    at = address(call.name)
    try:
        if at.tag is None:
            await engine.queues.delete_queue(call.by, at.queue)
        else:
            await engine.queues.delete_tag(call.by, at.queue, at.tag)
    except (QueueNotFound, TagNotFound):
        if not call.options.missing_deleted:
            raise
    return DONE
