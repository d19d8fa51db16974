"""Actions on queues: create, find, list, attributes, delete, purge.

Each reads its parameters, asks the engine and renders.
"""

from __future__ import annotations

import time
from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING

from msgspec import structs

from engine.errors import DelayTooLong, EngineError, NotAllowedOnQueue, QueueExists, QueueNotFound, TagNotFound
from engine.shapes import QueueInfo
from facade.dialects.sqs.queues import fifo, settings, tags
from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.queues.filters import FILTER_POLICY, filter_of
from facade.dialects.sqs.queues.names import Address, named
from facade.dialects.sqs.queues.redrive import REDRIVE_POLICY, refusal_of
from facade.dialects.sqs.wire.errors import (
    INVALID_ATTRIBUTE_NAME,
    INVALID_ATTRIBUTE_VALUE,
    PURGE_IN_PROGRESS,
    QUEUE_DELETED_RECENTLY,
    QUEUE_NAME_EXISTS,
    SqsError,
    invalid,
    missing,
)
from facade.dialects.sqs.wire.limits import LIST_RESULTS
from facade.dialects.sqs.wire.replies import DONE, AttributesReply, ListReply, Output, SourcesReply, UrlReply
from schemas.records.settings import QueueSettings

if TYPE_CHECKING:
    from engine.engine import Engine
    from schemas.records import QueueRecord


async def create_queue(engine: Engine, call: Call) -> UrlReply:
    """Make a queue; the URL of an existing one when nothing that is named differs from it.
    `orders@billing` makes a tag.
    """
    given = call.body
    attributes = given.attributes or {}
    at = call.place.new(given.queue_name, fifo=fifo.asked_for(attributes))
    if at.tag is not None:
        await _create_tag(engine, call, at, at.tag, attributes)
        return UrlReply(queue_url=call.place.url(at.name))
    wanted = settings.changes(at.queue, attributes, call.limits, call.place)
    fifo.check(wanted.of_fifo, fifo=fifo.asked_for(attributes))
    labels = tags.checked(call.place.name(at.queue), given.tags or {})
    try:
        _same(await engine.queues.get_queue(call.by, at.queue), wanted)
    except QueueNotFound:
        await _create(engine, call, at.queue, wanted, labels)
    return UrlReply(queue_url=call.place.url(at.queue))


async def _create(engine: Engine, call: Call, name: str, wanted: settings.Changes, labels: dict[str, str]) -> None:
    if call.cool_down_s and _within(engine.queues.deleted_at_ms(call.by, name), call.cool_down_s):
        about = f"You must wait {call.cool_down_s} seconds after deleting a queue"
        raise SqsError(QUEUE_DELETED_RECENTLY, f"{about} before you can create another with the same name.")
    named = wanted.settings
    size = (
        call.limits.attributes["MaximumMessageSize"].default
        if named.max_message_bytes is None
        else named.max_message_bytes
    )
    kept = settings.user_attributes({}, wanted.stored)
    try:
        await engine.queues.create_queue(
            call.by, name, structs.replace(named, max_message_bytes=size, user_attributes=kept, labels=labels)
        )
    except QueueExists:
        # Made meanwhile by somebody else; or it isn't there, and the name is too like another's.
        try:
            existing = await engine.queues.get_queue(call.by, name)
        except QueueNotFound:
            existing = None
        if existing is None:
            raise
        _same(existing, wanted)
    except (QueueNotFound, NotAllowedOnQueue) as error:
        raise _bad_policy(error, call.body.attributes) from error


def _within(at_ms: int | None, seconds: int) -> bool:
    return at_ms is not None and time.time() * 1000 - at_ms < seconds * 1000


async def _create_tag(engine: Engine, call: Call, at: Address, tag: str, attributes: dict[str, str]) -> None:
    """A tag sees what is sent from now on, as a subscription of SNS does."""
    for name in attributes:
        if name != FILTER_POLICY:
            raise SqsError(
                INVALID_ATTRIBUTE_NAME, f"A tag has the attributes of its queue; {FILTER_POLICY} alone may be given."
            )
    if call.body.tags:
        raise invalid("Tags", at.name, "Tags are those of the queue.")
    asked = attributes.get(FILTER_POLICY)
    wants = filter_of(asked or "")
    existing = settings.tag_of(await engine.queues.get_queue(call.by, at.queue), at)
    if existing is None:
        await engine.queues.create_tag(call.by, at.queue, tag, -1, wants, settings.tag_attributes(asked or ""))
    elif asked is not None and asked != (settings.tag_filter(existing) or ""):
        raise _exists(FILTER_POLICY)


def _exists(attribute: str) -> SqsError:
    return SqsError(
        QUEUE_NAME_EXISTS, f"A queue already exists with the same name and a different value for attribute {attribute}"
    )


def _same(existing: QueueInfo, wanted: settings.Changes) -> None:
    differs = settings.differing(existing, wanted)
    if differs is not None:
        raise _exists(differs)


def _bad_policy(error: EngineError, attributes: dict[str, str] | None) -> SqsError:
    """What the engine refuses about a dead-letter queue is a bad value of RedrivePolicy here."""
    return invalid(REDRIVE_POLICY, (attributes or {}).get(REDRIVE_POLICY), refusal_of(error))


async def get_queue_url(engine: Engine, call: Call) -> UrlReply:
    """The URL of a queue that exists, or of a tag of it."""
    owner = call.body.queue_owner_aws_account_id
    at = call.place.address(named(call.body.queue_name), owner)
    await _info(engine, call, at)
    return UrlReply(queue_url=call.place.url(at.name))


async def _info(engine: Engine, call: Call, at: Address) -> QueueInfo:
    found = await engine.queues.get_queue(call.by, at.queue)
    if at.tag is not None and all(tag.name != at.tag for tag in found.tags):
        raise TagNotFound(field="tag", given=at.tag)
    return found


async def list_queues(engine: Engine, call: Call) -> ListReply:
    """Queues in the order of their names. There is a next page only for who has asked for a size of
    pages.
    """
    size, after = _page(call)
    prefix = call.place.queue(call.body.queue_name_prefix or "")
    names, next_after = await engine.queues.list_queues(call.by, prefix, size, after)
    return ListReply(queue_urls=[call.place.url(name) for name in names] or None, next_token=_token(call, next_after))


async def list_dead_letter_source_queues(engine: Engine, call: Call) -> SourcesReply:
    """The queues whose dead letters go to this one, in the order of their names."""
    size, after = _page(call)
    found = await engine.queues.get_queue(call.by, call.place.whole(call.body.queue_url, "ListDeadLetterSourceQueues"))
    names = [name for name in found.source_queues if after is None or name > after]
    urls = [call.place.url(name) for name in names[:size]]
    return SourcesReply(queue_urls=urls, next_token=_token(call, names[size - 1] if len(names) > size else None))


def _page(call: Call) -> tuple[int, str | None]:
    """How many names are asked for, and the last name of the page before. Raises SqsError."""
    low, high = LIST_RESULTS
    size = high if call.body.max_results is None else call.body.max_results
    if not low <= size <= high:
        raise invalid("MaxResults", size, f"Must be between {low} and {high}.")
    token = call.body.next_token
    try:
        return size, b64decode(token.encode(), b"-_", validate=True).decode() if token else None
    except (UnicodeError, Base64Error):
        raise invalid("NextToken", token, "It is not a token of this action.") from None


def _token(call: Call, last: str | None) -> str | None:
    return None if last is None or call.body.max_results is None else urlsafe_b64encode(last.encode()).decode()


async def get_queue_attributes(engine: Engine, call: Call) -> AttributesReply:
    """The attributes asked for; none when none is."""
    at, names = call.place.of_url(call.body.queue_url), call.body.attribute_names or ()
    settings.check_names(names)
    found = await _info(engine, call, at)
    return AttributesReply(attributes=settings.shown(found, at, names, call.place) or None)


async def set_queue_attributes(engine: Engine, call: Call) -> Output:
    """Change what is named; the rest stays."""
    name = call.place.whole(call.body.queue_url, "SetQueueAttributes")
    if not call.body.attributes:
        raise missing("Attributes")
    wanted = settings.changes(name, call.body.attributes, call.limits, call.place)

    def store(record: QueueRecord) -> QueueSettings:
        settings.check_fifo(record, wanted)
        return QueueSettings(user_attributes=settings.user_attributes(record.user_attributes, wanted.stored))

    try:
        await engine.queues.set_queue(
            call.by, name, wanted.settings, store if wanted.stored or wanted.of_fifo else None
        )
    except (QueueNotFound, NotAllowedOnQueue) as error:
        # Of the queue itself: that it is not there, or not empty while its DeduplicationScope is to
        # change.
        if error.field == "dedup_scope" or (isinstance(error, QueueNotFound) and error.field != "dead_letter_queue"):
            raise
        raise _bad_policy(error, call.body.attributes) from error
    except DelayTooLong:
        raise SqsError(INVALID_ATTRIBUTE_VALUE, "Invalid value for the parameter DelaySeconds.") from None
    if wanted.no_policy:
        await engine.queues.set_redrive_policy(call.by, name, None)
    return DONE


async def delete_queue(engine: Engine, call: Call) -> Output:
    """Delete a queue and all that is in it, or a tag of one."""
    at = call.place.of_url(call.body.queue_url)
    if at.tag is None:
        await engine.queues.delete_queue(call.by, at.queue)
    else:
        await engine.queues.delete_tag(call.by, at.queue, at.tag)
    return DONE


async def purge_queue(engine: Engine, call: Call) -> Output:
    """Drop every message that was sent before, under all tags."""
    name = call.place.whole(call.body.queue_url, "PurgeQueue")
    if call.cool_down_s and _within((await engine.queues.get_queue(call.by, name)).purged_at_ms, call.cool_down_s):
        at = call.place.name(name)
        raise SqsError(
            PURGE_IN_PROGRESS, f"Only one PurgeQueue operation on {at} is allowed every {call.cool_down_s} seconds."
        )
    await engine.queues.purge(call.by, name)
    return DONE
