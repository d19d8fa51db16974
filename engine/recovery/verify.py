"""Compares the state in Redis with what a rebuild from Kafka alone would give, while traffic runs.
Changes nothing.

A unit is cut at one moment (dump.lua), which names the last journal entry in it. The journal is
then folded up to exactly that entry, so there is no slack: nonce, count, deadline, first receive
and flag of each open delivery must be equal, also of live leases. What can't be compared, because a
rebuild does not need it: bodies in the window and their bytes (they come from Kafka), the count of
delayed messages, remembered move keys, the floor as far as it may lag behind, and when a message of
a Kafka-native producer is due (the queue's delay at its load holds). A message whose record
retention has removed since is left out. An entry that Redis has and Kafka not yet is waited for; if
nobody owns the unit, its outbox is drained here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field

from engine.catalog.catalog import Catalog
from engine.journal.fold import TagState, UnitState
from engine.journal.outbox import LEASE_MS, Journal, Outbox
from engine.journal.reader import FoldedJournal, JournalReader
from engine.log import Chunk, Log, Record
from engine.recovery.compare import NOT_OPEN, NOT_SETTLED, Difference, Findings, compare
from engine.rules.queue import Queue
from engine.window.batches.atomic_batches import CHUNK_BYTES, CHUNK_RECORDS, assemble
from engine.window.batches.message_log import MessageLog, Unfinished
from engine.window.entry import load_entry
from schemas.records import JournalRecord, Message
from schemas.wire import AnyRecord, UndecodableRecord, decode_message
from state.errors import StateLost
from state.keys import Unit
from state.replies import Dump
from state.upkeep import UpkeepScripts

# An owner drains every 0.15 s (0.5 s when quiet); later than this there is none, or it is stuck.
OWNER_S = 1.5
PATIENCE_S = 20.0
SLICE = 200
# How much the time of the service and Kafka's may have differed more than they do now.
SKEW_MS = 1_000


@dataclass
class Cut:
    """A unit at one moment, with the ends of its log asked before and after."""

    queue: Queue
    partition: int
    dump: Dump
    log_start: int
    log_end: int

    @property
    def unit(self) -> Unit:
        return self.queue.units[self.partition]


@dataclass
class Report:
    """`left_out`: what could not be compared, and why. Counts are of what was compared."""

    differences: list[Difference] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    queues: int = 0
    units: int = 0
    tags: int = 0
    open: int = 0
    settled_above_floor: int = 0


class Verifier:
    """Verifies queues of a running service. `worker` is the name under which it drains units that
    nobody owns.
    """

    def __init__(
        self, worker: str, log: Log, upkeep: UpkeepScripts, catalog: Catalog, journal: Journal, reader: JournalReader
    ) -> None:
        self._worker = worker
        self._log = log
        self._messages = MessageLog(log)
        self._upkeep = upkeep
        self._catalog = catalog
        self._journal = journal
        self._reader = reader

    async def run(self, queues: Sequence[Queue]) -> Report:
        """Compares all units of `queues`. Raises LogUnavailable, StateUnavailable."""
        report = Report(queues=len(queues))
        partitions = sorted({self._journal.partition_of(unit) for queue in queues for unit in queue.units})
        # The journal first: what is folded before the cut is never beyond it.

        folded = {partition: await self._reader.read(partition) for partition in partitions}
        cuts = [cut for queue in queues for cut in await self._cut(queue, report)]
        histories = await self._catch_up(folded, {cut.unit: cut for cut in cuts}, report)
        for cut in cuts:
            if cut.unit in histories:
                await self._compare(cut, histories[cut.unit], report)
        return report

    async def _cut(self, queue: Queue, report: Report) -> list[Cut]:
        queue = self._catalog.by_incarnation.get(queue.incarnation, queue)
        parts = [(queue.topic, partition) for partition in range(len(queue.units))]
        starts = await self._log.start_offsets(parts)
        dumps: dict[int, Dump] = {}
        for partition, unit in enumerate(queue.units):
            try:
                dumps[partition] = await self._upkeep.dump(unit, self._catalog.generation, queue.tag_ids)
            except StateLost:
                await self._catalog.sync()
                if queue.incarnation in self._catalog.by_incarnation:
                    report.left_out.append(
                        f"queue {queue.name} partition {partition}: Redis has no state of it; "
                        "its next use rebuilds it from Kafka"
                    )
        ends = await self._log.end_offsets(parts)
        return [Cut(queue, p, dump, starts.get(parts[p], 0), ends.get(parts[p], 0)) for p, dump in dumps.items()]

    async def _catch_up(
        self, folded: dict[int, FoldedJournal], cuts: dict[Unit, Cut], report: Report
    ) -> dict[Unit, UnitState]:
        """The history of each unit up to exactly its cut. A unit whose entries do not come to Kafka
        is left out.
        """

        def apply(record: Record, value: AnyRecord | None) -> None:
            if (
                isinstance(value, JournalRecord)
                and (cut := cuts.get(Unit(value.incarnation, value.partition))) is not None
            ):
                folded[record.partition].units.setdefault(cut.unit, UnitState()).apply(value, cut.dump.seq)

        def history(unit: Unit) -> UnitState:
            partition = self._journal.partition_of(unit)
            return folded[partition].units.get(unit) or UnitState()

        loop = asyncio.get_running_loop()
        began = loop.time()
        offsets = {partition: fold.offset for partition, fold in folded.items()}
        while True:
            for partition, offset in offsets.items():
                offsets[partition] = await self._reader.scan(self._catalog.journal_topic, partition, offset, apply)
            behind = [unit for unit, cut in cuts.items() if history(unit).last_seq < cut.dump.waiting]
            if not behind or loop.time() - began > PATIENCE_S:
                break
            if loop.time() - began > OWNER_S:
                for unit in behind:
                    await self._drain(cuts[unit])
            await asyncio.sleep(0.1)
        for unit in behind:
            cut = cuts[unit]
            report.left_out.append(
                f"queue {cut.queue.name} partition {cut.partition}: its journal did not come to entry "
                f"{cut.dump.waiting}"
            )
        return {unit: history(unit) for unit in cuts if unit not in behind}

    async def _drain(self, cut: Cut) -> None:
        """Drains a unit that nobody owns."""
        owned = await self._upkeep.own(cut.unit, self._worker, lease_ms=LEASE_MS)
        if owned.ours:
            await Outbox(self._journal, cut.queue.name, cut.unit, owned.number).drain()
            await self._upkeep.own(cut.unit, self._worker, lease_ms=1)

    async def _compare(self, cut: Cut, history: UnitState, report: Report) -> None:
        queue = self._catalog.by_incarnation.get(cut.queue.incarnation)
        if queue is None:
            return
        findings: dict[int, Findings] = {}
        for tag, dump in zip(cut.queue.tags, cut.dump.tags, strict=True):
            if tag.id in queue.tag_ids:
                known = history.tags.get(tag.id) or TagState()
                findings[tag.id] = compare(dump, known, tag.start_offsets[cut.partition], cut.log_start, cut.log_end)
                report.tags += 1
                report.open += len(dump.open)
                report.settled_above_floor += len(known.settled)

        await self._compare_records(cut, findings)
        report.units += 1
        for tag in cut.queue.tags:
            for offset, redis, kafka in sorted(findings[tag.id].found, key=_order) if tag.id in findings else ():
                report.differences.append(Difference(queue.name, tag.name, cut.partition, offset, redis, kafka))

    async def _compare_records(self, cut: Cut, findings: dict[int, Findings]) -> None:
        """Settles by the records what the journal does not tell: whether a tag wants a message, and
        when it is due.
        """
        wanted = sorted({offset for f in findings.values() for offset in (*f.untouched, *f.over)})
        for at in range(0, len(wanted), SLICE):
            offsets = wanted[at : at + SLICE]
            records = await self._messages.read_at(cut.queue.topic, cut.partition, offsets)
            part = (cut.queue.topic, cut.partition)
            # Asked after the read: a record that retention or a purge has removed meanwhile is no
            # difference.
            start = (
                cut.log_start if len(records) == len(offsets) else (await self._log.start_offsets([part])).get(part, 0)
            )
            for offset in offsets:
                record = records.get(offset)
                if record is not None:
                    await self._judge(cut, record, findings)
                elif offset >= start:
                    _missing(offset, cut.log_end, findings.values())

    async def _judge(self, cut: Cut, record: Record, findings: dict[int, Findings]) -> None:
        offset = record.offset
        try:
            message: Message | None = decode_message(record.value, record.headers)
        except UndecodableRecord:
            message = None
        shown, sent_ms, due_ms = "0" * len(cut.queue.tags), 0, 0
        if message is not None:
            entry = load_entry(cut.queue, offset, record.timestamp_ms, message, b"")
            shown, sent_ms, due_ms = entry.mask, int.from_bytes(entry.packed[:8]), int.from_bytes(entry.packed[8:16])
        for tag, wants in zip(cut.queue.tags, shown, strict=True):
            found = findings.get(tag.id)
            if found is None:
                continue
            if (
                offset in found.over
                and wants == "1"
                and not (message and message.batch and await self._is_torn(cut, offset))
            ):
                found.add(offset, NOT_OPEN, NOT_SETTLED)
            at = found.untouched.get(offset)
            if at is not None and wants == "0":
                found.add(
                    offset,
                    "open (never delivered)",
                    "unreadable" if message is None else "not wanted by the filter of the tag",
                )
            elif at is not None and message is not None and message.sender and not self._is_due(at, sent_ms, due_ms):
                found.add(offset, f"visible at {at}", f"never delivered, due at {due_ms}")

    def _is_due(self, at_ms: int, sent_ms: int, due_ms: int) -> bool:
        """Whether a message that was never delivered is visible at the right time (ADR 0040):
        without a delay no later than it was sent, else when its delay is over by Kafka's clock,
        which may have differed from the time of the service when it was loaded.
        """
        if due_ms == sent_ms:
            return at_ms <= sent_ms
        return abs(at_ms - due_ms) <= abs(self._upkeep.units.early_ms) + SKEW_MS

    async def _is_torn(self, cut: Cut, offset: int) -> bool:
        """Whether the record is of an atomic batch that is not shown: judged as the loader does,
        with what is around it. One that this reader would wait for, its owner has waited for.
        """

        def fetch(start: int) -> Awaitable[Chunk]:
            return self._messages.fetch(cut.queue.topic, cut.partition, start, CHUNK_RECORDS, CHUNK_BYTES)

        found = await assemble(Unfinished(), cut.queue, await fetch(offset), fetch)
        return not any(entry.offset == offset and entry.packed for entry in (*found.ordered, *found.early))


def _missing(offset: int, log_end: int, findings: Iterable[Findings]) -> None:
    """An offset that Kafka has no record of, though it should still be there."""
    for found in findings:
        if offset in found.untouched:
            found.add(offset, "open (never delivered)", "has no such record")
        if offset in found.over and offset >= log_end:
            found.add(offset, NOT_OPEN, f"the log ends at {log_end}: a message to come would be passed over")


def _order(finding: tuple[int | None, str, str]) -> int:
    return -1 if finding[0] is None else finding[0]
