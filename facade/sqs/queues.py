"""Actions on queues: create, find, list, attributes, delete, purge.

Each reads its parameters, asks the engine and renders. Neighbours: `settings` for attributes, `names` for URLs. This module must not
know HTTP.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING

from msgspec import structs

from engine.errors import EngineError, NotAllowedOnQueue, QueueExists, QueueNotFound, TagNotFound
from engine.verbs import QueueInfo
from facade.sqs import settings
from facade.sqs.call import Call
from facade.sqs.errors import QUEUE_NAME_EXISTS, SqsError, invalid, missing
from facade.sqs.limits import LIST_RESULTS, NEW_QUEUE_MESSAGE_BYTES
from facade.sqs.names import Address, address, new_name, of_url, queue_url, whole
from facade.sqs.replies import AttributesReply, ListReply, Output, UrlReply

if TYPE_CHECKING:
    from engine.engine import Engine

DONE = Output()


async def create_queue(engine: Engine, call: Call) -> UrlReply:
    """Make a queue; the URL of an existing one when nothing that is named differs from it."""
    given = call.body
    attributes = given.attributes or {}
    wanted = settings.changes(attributes)
    name = new_name(given.queue_name)
    tags = settings.tags_of(given.tags)
    try:
        _same(await engine.get_queue(call.by, name), wanted)
    except QueueNotFound:
        await _create(engine, call, name, wanted, tags)
    return UrlReply(queue_url=queue_url(call.base, name))


async def _create(engine: Engine, call: Call, name: str, wanted: settings.Changes, tags: dict[str, str]) -> None:
    named = wanted.settings
    size = NEW_QUEUE_MESSAGE_BYTES if named.max_message_bytes is None else named.max_message_bytes
    kept = settings.user_attributes(tags, wanted.stored)
    try:
        await engine.create_queue(call.by, name, structs.replace(named, max_message_bytes=size, user_attributes=kept))
    except QueueExists:
        # Made meanwhile by somebody else; or it isn't there, and the name is too like another's.
        try:
            existing = await engine.get_queue(call.by, name)
        except QueueNotFound:
            existing = None
        if existing is None:
            raise
        _same(existing, wanted)
    except (QueueNotFound, NotAllowedOnQueue) as error:
        raise _bad_policy(error) from error


def _same(existing: QueueInfo, wanted: settings.Changes) -> None:
    differs = settings.differing(existing, wanted)
    if differs is not None:
        raise SqsError(QUEUE_NAME_EXISTS, f"A queue already exists with the same name and a different value for attribute {differs}")


def _bad_policy(error: EngineError) -> SqsError:
    """What the engine refuses about a dead-letter queue is a bad value of RedrivePolicy here."""
    return invalid(settings.REDRIVE_POLICY, error.given, error.detail)


async def get_queue_url(engine: Engine, call: Call) -> UrlReply:
    """The URL of a queue that exists, or of a tag of it."""
    if not call.body.queue_name:
        raise missing("QueueName")
    at = address(call.body.queue_name)
    await _info(engine, call, at)
    return UrlReply(queue_url=queue_url(call.base, at.name))


async def _info(engine: Engine, call: Call, at: Address) -> QueueInfo:
    found = await engine.get_queue(call.by, at.queue)
    if at.tag is not None and all(tag.name != at.tag for tag in found.tags):
        raise TagNotFound(f"queue {at.queue!r} has no tag {at.tag!r}", field="tag", given=at.tag)
    return found


async def list_queues(engine: Engine, call: Call) -> ListReply:
    """Queues in the order of their names. There is a next page only for who has asked for a size of pages."""
    given = call.body
    low, high = LIST_RESULTS
    size = high if given.max_results is None else given.max_results
    if not low <= size <= high:
        raise invalid("MaxResults", size, f"Must be between {low} and {high}.")
    after = _after(given.next_token)
    names, next_after = await engine.list_queues(call.by, given.queue_name_prefix or "", size, after)
    token = None
    if next_after is not None and given.max_results is not None:
        token = urlsafe_b64encode(next_after.encode()).decode()
    return ListReply(queue_urls=[queue_url(call.base, name) for name in names] or None, next_token=token)


def _after(token: str | None) -> str | None:
    if not token:
        return None
    try:
        return b64decode(token.encode(), b"-_", validate=True).decode()
    except (UnicodeError, Base64Error):
        raise invalid("NextToken", token, "It is not a token of ListQueues.") from None


async def get_queue_attributes(engine: Engine, call: Call) -> AttributesReply:
    """The attributes asked for; none when none is."""
    at, names = of_url(call.body.queue_url), call.body.attribute_names or ()
    settings.check_names(names)
    found = await _info(engine, call, at)
    return AttributesReply(attributes=settings.shown(found, at, names) or None)


async def set_queue_attributes(engine: Engine, call: Call) -> Output:
    """Change what is named; the rest stays."""
    name = whole(call.body.queue_url, "SetQueueAttributes")
    if not call.body.attributes:
        raise missing("Attributes")
    wanted = settings.changes(call.body.attributes)
    named = wanted.settings
    if wanted.stored:
        now = (await engine.get_queue(call.by, name)).user_attributes
        named = structs.replace(named, user_attributes=settings.user_attributes(now, wanted.stored))
    try:
        await engine.set_queue(call.by, name, named)
    except (QueueNotFound, NotAllowedOnQueue) as error:
        if isinstance(error, QueueNotFound) and error.field != "dead_letter_queue":
            raise
        raise _bad_policy(error) from error
    if wanted.no_policy:
        await engine.set_redrive_policy(call.by, name, None)
    return DONE


async def delete_queue(engine: Engine, call: Call) -> Output:
    """Delete a queue and all that is in it."""
    await engine.delete_queue(call.by, whole(call.body.queue_url, "DeleteQueue"))
    return DONE


async def purge_queue(engine: Engine, call: Call) -> Output:
    """Drop every message that was sent before, under all tags."""
    await engine.purge(call.by, whole(call.body.queue_url, "PurgeQueue"))
    return DONE
