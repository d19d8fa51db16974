"""One step of a redrive task: some dead letters of one partition go where the task sends them."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from engine.move.copies import Held
from engine.move.mover import Mover, Outcome
from engine.move.tasks.outcomes import Ledger, Row
from engine.move.tasks.selection import Destinations, beyond_key, letters_of, next_chosen
from engine.rules.queue import Queue
from engine.window.batches.message_log import MessageLog
from engine.window.window import MOVER_LEASE_MS, Window
from runtime.failpoints import reached
from schemas.records import Message, TaskRecord
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import TaskStatus
from state.leases import LeaseScripts

logger = logging.getLogger(__name__)

# A window takes a message in seconds: one that it has not taken for so long lies behind too many.
# And a broker knows the end of a log in seconds.
WAIT_S = 60.0


class Worked(msgspec.Struct):
    """What came of dead letters of one partition, by offset: `moved` has the copies, `failed` why.
    `settled` were settled before and are neither moved nor failed.

    `waits`: the first that must wait, None = none; it is held by a lost claim or mover, or
    (`stored`) only a load can tell whether it repeats another.
    """

    moved: dict[int, str]
    failed: dict[int, LetterOutcome]
    settled: set[int]
    waits: int | None = None
    stored: bool = False


class RedriveStep:
    """Any number of tasks may be stepped at once, each by one at a time."""

    def __init__(
        self, messages: MessageLog, leases: LeaseScripts, window: Window, destinations: Destinations, mover: Mover
    ) -> None:
        self._messages = messages
        self._leases = leases
        self._window = window
        self._destinations = destinations
        self._mover = mover
        # By task: for which partition and offset it waits, and since when.
        self._waits: dict[str, tuple[int, int, float]] = {}

    def forget(self, id: str) -> None:
        """A task does not wait any more."""
        self._waits.pop(id, None)

    async def step(self, task: TaskRecord, queue: Queue, partition: int, budget: int, ledger: Ledger) -> TaskRecord:
        """Moves up to `budget` dead letters of one partition; counts what lies before its new
        position, of its own work before too, and adds the outcomes to the ledger.
        """
        end = task.end_offsets[partition]
        chunk = await self._messages.fetch(queue.topic, partition, task.next_offsets[partition], budget, 4_000_000)
        worked = await self._move(task, queue, partition, letters_of(task, queue, partition, chunk.records))
        moved = (ledger.moved or [])[partition]
        moved |= worked.moved
        nexts = list(task.next_offsets)
        is_short = chunk.at_end and not chunk.records and chunk.next_offset < end
        if worked.waits is not None:
            nexts[partition] = worked.waits
        elif not is_short:
            nexts[partition] = next_chosen(task.chosen, partition, chunk.next_offset, end)
        elif self._waited_s(task, partition, chunk.next_offset) > WAIT_S:
            # A broker that is not up to date knows better by now.
            logger.error(
                "action=redrive task=%s topic=%s partition=%d outcome=log is short", task.id, queue.topic, partition
            )
            nexts[partition] = end
        rows = _passed(partition, nexts[partition], moved, worked)
        ledger.doubtful[partition] |= {offset for offset in worked.settled if offset < nexts[partition]} - {
            row.offset for row in rows
        }
        bad = sum(row.outcome != LetterOutcome.MOVED for row in rows)
        there = {record.offset for record in chunk.records}
        ledger.rows.extend(rows + _unread(task, partition, nexts[partition], there, worked, rows))
        task = msgspec.structs.replace(
            task,
            next_offsets=nexts,
            moved=task.moved + len(rows) - bad,
            failed=task.failed + bad,
            total=task.total + len(rows),
        )
        if worked.waits is not None or is_short:
            await asyncio.sleep(0.2)
        if worked.stored and worked.waits is not None and self._waited_s(task, partition, worked.waits) > WAIT_S:
            return _stuck(task, queue, f"{queue.incarnation}/{partition}/{worked.waits}")
        return task

    def _waited_s(self, task: TaskRecord, partition: int, offset: int) -> float:
        """For how long it has waited there, 0 = it has just begun to."""
        now = asyncio.get_running_loop().time()
        found = self._waits.get(task.id)
        if found is None or found[:2] != (partition, offset):
            self._waits[task.id] = found = (partition, offset, now)
        return now - found[2]

    async def _move(
        self, task: TaskRecord, queue: Queue, partition: int, dead_letters: dict[int, tuple[Message, int]]
    ) -> Worked:
        """Moves those that nobody holds to where they go."""
        leases, tag, unit = self._leases, queue.tag(None), queue.units[partition]
        self._window.used(queue, partition)
        targets = {offset: self._destinations.of(task, message) for offset, (message, _) in dead_letters.items()}
        ready = [offset for offset, target in targets.items() if target is not None]
        worked = Worked({}, dict.fromkeys(targets.keys() - set(ready), LetterOutcome.NO_DESTINATION), set())
        if not ready:
            return worked
        states = await self._window.call(queue, lambda g: leases.states(unit, g, tag.id, ready))
        wanted = [(offset, b"", beyond_key(queue, dead_letters[offset][0])) for offset in ready]
        until_ms = leases.units.now_ms() + MOVER_LEASE_MS
        claimed = await self._window.call(
            queue, lambda g: leases.claim(unit, g, tag.id, wanted, claim_ms=2 * MOVER_LEASE_MS, early_ms=MOVER_LEASE_MS)
        )
        reached("redrive.claimed")
        ours, waits = list[tuple[Held, Queue]](), dict[int, str]()
        for offset, state, (word, again_ms) in zip(ready, states, claimed.words, strict=True):
            target = targets[offset]
            if word == "ok" and target is not None:
                message, sent_at_ms = dead_letters[offset]
                first_ms = state.first_received_at_ms or 0
                held = Held(offset, claimed.nonce, message, sent_at_ms, state.count, first_ms, "", again_ms, until_ms)
                ours.append((held, target))
            elif word in ("held", "stored"):
                waits[offset] = word
            elif word == "busy":
                worked.failed[offset] = LetterOutcome.LEASED
            elif word == "settled":
                worked.settled.add(offset)
        outcomes = await self._mover.move(queue, tag, partition, ours, task.id)
        worked.moved = {offset: came.copy for offset, came in outcomes.items() if came.outcome is Outcome.MOVED}
        worked.failed |= {
            offset: LetterOutcome.REFUSED for offset, came in outcomes.items() if came.outcome is Outcome.FAILED
        }
        waits |= {offset: "later" for offset, came in outcomes.items() if came.outcome is Outcome.LATER}
        worked.waits = min(waits, default=None)
        worked.stored = worked.waits is not None and waits[worked.waits] == "stored"
        return worked


def _passed(partition: int, end: int, moved: dict[int, str], worked: Worked) -> list[Row]:
    """The outcomes of what lies before a new position and was moved or has failed; takes the former
    from `moved`.
    """
    rows = [Row(partition, offset, LetterOutcome.MOVED, moved.pop(offset)) for offset in sorted(moved) if offset < end]
    done = {row.offset for row in rows}  # before: its destination may have gone since
    return rows + [
        Row(partition, offset, why)
        for offset, why in sorted(worked.failed.items())
        if offset < end and offset not in done
    ]


def _unread(task: TaskRecord, partition: int, end: int, there: set[int], worked: Worked, rows: list[Row]) -> list[Row]:
    """The outcomes of what was chosen and passed, but for those `rows`: Kafka has it no more, or it
    is none that the task moves. (What was settled has its outcome when the journal is read.)
    """
    if task.chosen is None:
        return []
    known = worked.settled | {row.offset for row in rows}
    offsets = [o for o in task.chosen[partition] if task.next_offsets[partition] <= o < end and o not in known]
    return [Row(partition, o, LetterOutcome.SKIPPED if o in there else LetterOutcome.GONE) for o in offsets]


def failed(task: TaskRecord, failure: str) -> TaskRecord:
    return msgspec.structs.replace(task, status=TaskStatus.FAILED, failure=failure)


def _stuck(task: TaskRecord, queue: Queue, place: str) -> TaskRecord:
    """The task, which has failed: no window takes a message so far behind others."""
    return failed(
        task,
        f"the message {place} lies behind more messages of queue {queue.name!r} than its window takes: "
        "move or receive those first",
    )
