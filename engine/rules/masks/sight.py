"""What a caller is shown of the messages of a queue without receiving them: all that the right to
unmask them opens, else what the masks leave.
"""

from __future__ import annotations

from engine.errors import NotAuthorised
from engine.rules.masks.mask import Mask
from engine.rules.queue import Queue
from engine.rules.rights import Records
from engine.shapes import Principal
from schemas.filters import matches
from schemas.identity import incarnation_in
from schemas.records import Message, TagRecord


class Sight:
    """What who may look at messages of a queue, and may not unmask them, sees of them. A message
    that died or was moved is hidden as its queue and those that it came from say, as far as they
    are there. `open_tag`: they may unmask what this tag wants.
    """

    def __init__(self, records: Records, queue: Queue, open_tag: TagRecord | None = None) -> None:
        self._records = records
        self._queue = queue
        self._open_tag = open_tag

    def of(self, message: Message) -> Message | None:
        """The message as it is shown; None = as it is, for no mask is about it."""
        masks = self.masks(message)
        for mask in masks:
            message = mask.hide(message)
        return message if masks else None

    def masks(self, message: Message) -> list[Mask]:
        """What is about a message."""
        if self._open_tag is not None and matches(self._open_tag.filter, message.attributes):
            return []
        queues = {self._queue.incarnation: self._queue}
        if message.origin is not None:
            for incarnation in map(incarnation_in, (message.origin.original_id, message.origin.from_id)):
                if (queue := self._records.by_life.get(incarnation)) is not None:
                    queues[queue.incarnation] = queue
        return [queue.hides for queue in queues.values() if queue.hides is not None]


def masked(by: Principal, queue: Queue, what: str) -> NotAuthorised:
    """Who may not unmask messages of a queue has asked for what would show, or change, what a mask
    hides.
    """
    detail = f"principal {by.id!r} may not unmask messages of queue {queue.name!r}, and so not {what}"
    return NotAuthorised(detail, field="principal", given=by.id)
