"""What a unit's owner does with its outbox, without Kafka: the journal is a folded state."""

from __future__ import annotations

from engine.journal.fold import UnitState
from schemas.records import JournalEntry, JournalRecord
from state.keys import Unit
from state.store import Store


async def drain_into(history: UnitState, store: Store, unit: Unit, epoch: int) -> None:
    """All entries of the outbox are applied to `history`, and dropped from the outbox."""
    entries = await store.upkeep.drain(unit, epoch, done_seq=0, max=100_000)
    if entries:
        rows = [JournalEntry(e.seq, e.at_ms, e.kind, e.tag, e.offsets, e.times, e.reason) for e in entries]
        history.apply(JournalRecord("q", unit.incarnation, 0, rows))
        await store.upkeep.drain(unit, epoch, done_seq=entries[-1].seq, max=1)
