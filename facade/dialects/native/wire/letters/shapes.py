"""Bodies of requests about dead letters: redrives, previews, copies."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from engine.rules.limits import MAX_ATTRIBUTES
from facade.dialects.native.wire.shapes import AttributeBody, Body, FilterBody, TagName
from facade.dialects.native.wire.units import (
    ATTRIBUTE_NAME_PATTERN,
    ID_PATTERN,
    Millis,
    QueueName,
    Whole,
    entries,
    length,
    like,
    listed,
    one_of,
    within,
)
from schemas.vocabulary import DEATHS, TaskStatus


class PreviewBody(Body, frozen=True, kw_only=True):
    """Which messages go where: without `destination` each to where it came from; of `filter`,
    `ids` and what follows all that is given must hold; without any of it all go.
    """

    destination: Annotated[QueueName, Meta(description="The queue to send them to.")] | None = None
    filter: Annotated[FilterBody, Meta(description="Only messages with these attributes.")] | None = None
    ids: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=64)]],
            listed("ids", "Message ids, or addresses incarnation/partition/offset: only these are moved."),
        ]
        | None
    ) = None
    from_: (
        Annotated[Millis, within("from", "Only what came to the dead-letter queue at or after, epoch ms.")] | None
    ) = field(name="from", default=None)
    to: Annotated[Millis, within("to", "Only what came there before, epoch ms.")] | None = None
    reason: Annotated[str, one_of(DEATHS, "Only what died of this.")] | None = None
    source: Annotated[QueueName, Meta(description="Only what died in this queue.")] | None = None
    text: Annotated[str, length("text", "Only text bodies that have this in them.")] | None = None
    ignore_case: Annotated[bool, Meta(description="With `text`: in capitals or not.")] = False


class RedriveBody(PreviewBody, frozen=True, kw_only=True):
    """As of a preview, and how fast."""

    rate: Annotated[Whole, within("rate", "Messages a second; 0 = no bound.")] = 0


class EventsQuery(Body, frozen=True, kw_only=True):
    """Under which tag, without one under all; `next` continues a page."""

    tag: TagName | UnsetType = UNSET
    next: Annotated[str, Meta(min_length=1, max_length=4096, description="From the page before.")] | UnsetType = UNSET


class TasksQuery(Body, frozen=True, kw_only=True):
    """Which tasks, newest first."""

    status: (
        Annotated[str, Meta(min_length=1, max_length=32), one_of(TaskStatus, "Only those that stand there.")]
        | UnsetType
    ) = UNSET
    limit: Annotated[Whole, within("limit", "Tasks of a page.")] = 100
    next: Annotated[str, Meta(min_length=1, max_length=256, description="From the page before.")] | UnsetType = UNSET


class OutcomesQuery(Body, frozen=True, kw_only=True):
    """A page of outcomes."""

    limit: Annotated[Whole, within("limit", "Letters of a page.")] = 100
    next: Annotated[str, Meta(min_length=1, max_length=256, description="From the page before.")] | UnsetType = UNSET


class CopyMessageBody(Body, frozen=True, kw_only=True):
    """What is changed of a copy; what is not given is as in the message."""

    destination: (
        Annotated[QueueName, Meta(description="The queue to send it to. Default: where it came from.")] | None
    ) = None
    body: Annotated[str, Meta(description="Another body, if it is text.")] | None = None
    body_base64: Annotated[bytes, Meta(description="Another body in base64, if it is not.")] | None = None
    attributes: (
        Annotated[
            dict[Annotated[str, Meta(pattern=ATTRIBUTE_NAME_PATTERN)], str | AttributeBody],
            entries(MAX_ATTRIBUTES, "Other attributes, in place of all."),
        ]
        | None
    ) = None
    group: Annotated[str, like(ID_PATTERN, "Another group.")] | None = None
    dedup_id: Annotated[str, like(ID_PATTERN, "FIFO: another id of deduplication.")] | None = None
    remove: Annotated[bool, Meta(description="Delete the message when the copy is stored.")] = False
