"""TagQueue, UntagQueue, ListQueueTags. What SQS calls tags are labels of the queue here: a tag is
something else (see `names`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from facade.dialects.sqs.queues.call import Call
from facade.dialects.sqs.wire.errors import INVALID_PARAMETER, SqsError, invalid, missing
from facade.dialects.sqs.wire.limits import TAG_KEY_CHARACTERS, TAG_VALUE_CHARACTERS, TAGS
from facade.dialects.sqs.wire.replies import DONE, Output, TagsReply
from schemas.records.settings import QueueSettings

if TYPE_CHECKING:
    from engine.engine import Engine
    from schemas.records import QueueRecord

_LEGAL = re.compile(r"[\w\s.:/=+@-]*")


def checked(queue: str, given: Mapping[str, str]) -> dict[str, str]:
    """Tags that SQS takes for a queue. Raises SqsError for a key or value that it does not."""
    for key, value in given.items():
        if not 1 <= len(key) <= TAG_KEY_CHARACTERS or not _LEGAL.fullmatch(key) or key.lower().startswith("aws:"):
            raise invalid(
                "Tag.Key",
                key,
                f"It has 1 to {TAG_KEY_CHARACTERS} letters, digits, spaces or _.:/=+-@, not beginning with aws:.",
            )
        if len(value) > TAG_VALUE_CHARACTERS or not _LEGAL.fullmatch(value):
            raise invalid(
                "Tag.Value", value, f"It has up to {TAG_VALUE_CHARACTERS} letters, digits, spaces or _.:/=+-@."
            )
    if len(given) > TAGS:
        raise SqsError(INVALID_PARAMETER, f"Too many tags added for queue {queue}.")
    return dict(given)


async def tag_queue(engine: Engine, call: Call) -> Output:
    """Add tags to a queue; one with the same key is overwritten."""
    name = call.place.whole(call.body.queue_url, "TagQueue")
    queue = call.place.name(name)
    if not call.body.tags:
        raise missing("Tags")

    def edit(record: QueueRecord) -> QueueSettings:
        return QueueSettings(labels=checked(queue, {**record.labels, **call.body.tags}))

    await engine.queues.set_queue(call.by, name, QueueSettings(), edit)
    return DONE


async def untag_queue(engine: Engine, call: Call) -> Output:
    """Remove tags; a key that is not there is fine."""
    name = call.place.whole(call.body.queue_url, "UntagQueue")
    keys = call.body.tag_keys
    if not keys:
        raise SqsError(INVALID_PARAMETER, f"Tag keys must be between 1 and {TAG_KEY_CHARACTERS} characters in length.")

    def edit(record: QueueRecord) -> QueueSettings:
        return QueueSettings(labels={key: value for key, value in record.labels.items() if key not in keys})

    await engine.queues.set_queue(call.by, name, QueueSettings(), edit)
    return DONE


async def list_queue_tags(engine: Engine, call: Call) -> TagsReply:
    """The tags of a queue."""
    found = await engine.queues.get_queue(call.by, call.place.whole(call.body.queue_url, "ListQueueTags"))
    return TagsReply(tags=found.labels or None)
