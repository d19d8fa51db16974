"""What a redrive task would do, if it was started now; nothing is held or counted."""

from __future__ import annotations

from collections import Counter

from engine.log import value_bytes
from engine.move.shapes import Letter, Preview
from engine.move.tasks.selection import Destinations, letters_of, next_chosen
from engine.rules.queue import Ids, Queue
from engine.window.batches.message_log import MessageLog
from engine.window.window import Window
from runtime.scan import Scan
from schemas.identity import MessageId
from schemas.records import Message, TaskRecord
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import MessageState
from state.leases import LeaseScripts
from state.replies import State

CHUNK = 500
CHUNK_BYTES = 4_000_000
# What one preview reads, of all queues together.
MOST_RECORDS = 20_000
MOST_BYTES = 64_000_000
MOST_S = 3.0
SHOWN = 100


def new_scan() -> Scan:
    """What a preview may read."""
    return Scan(most_records=MOST_RECORDS, most_bytes=MOST_BYTES, most_s=MOST_S)


class Previews:
    """Any number of tasks may ask."""

    def __init__(
        self, messages: MessageLog, leases: LeaseScripts, window: Window, destinations: Destinations, ids: Ids
    ) -> None:
        self._messages = messages
        self._leases = leases
        self._window = window
        self._destinations = destinations
        self._ids = ids

    async def preview(self, queue: Queue, task: TaskRecord, scan: Scan) -> Preview:
        """What a task that is placed but not begun would do with the letters that are there, as far
        as the scan goes. Raises Unavailable.
        """
        counts, shown, before, cut = Counter[str](), list[Letter](), scan.records, ""
        for partition, end in enumerate(task.end_offsets):
            offset = task.next_offsets[partition]
            while offset < end and not (cut := scan.cut()):
                chunk = await self._messages.fetch(queue.topic, partition, offset, CHUNK, CHUNK_BYTES)
                letters = letters_of(task, queue, partition, chunk.records)
                for (at, (message, _)), state in zip(
                    letters.items(), await self._states(queue, partition, list(letters)), strict=True
                ):
                    if state.state == MessageState.SETTLED:
                        continue
                    letter = self._letter(task, MessageId(queue.incarnation, partition, at), message, state)
                    counts[letter.outcome] += 1
                    shown += [letter] if len(shown) < SHOWN else []
                scan.add(len(chunk.records), value_bytes(chunk.records))
                offset = (
                    next_chosen(task.chosen, partition, chunk.next_offset, end)
                    if chunk.records or not chunk.at_end
                    else end
                )
        moved = counts.pop(LetterOutcome.MOVED, 0)
        return Preview(queue.name, moved, dict(counts), shown, scan.records - before, cut)

    async def _states(self, queue: Queue, partition: int, offsets: list[int]) -> list[State]:
        if not offsets:
            return []
        unit, tag = queue.units[partition], queue.tag(None).id
        return await self._window.call(queue, lambda g: self._leases.states(unit, g, tag, offsets))

    def _letter(self, task: TaskRecord, at: MessageId, message: Message, state: State) -> Letter:
        target = self._destinations.of(task, message)
        if target is None:
            return Letter(self._ids.id_of(at), LetterOutcome.NO_DESTINATION)
        outcome = LetterOutcome.LEASED if state.state == MessageState.LEASED else LetterOutcome.MOVED
        return Letter(self._ids.id_of(at), outcome, target.name)
