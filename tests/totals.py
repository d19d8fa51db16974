"""What the journal entries of a unit say, folded: what scripts count in Redis must be the same."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.journal.fold import UnitState
from schemas.records import JournalEntry, JournalRecord
from state.keys import Unit
from state.store import Store


async def journaled(store: Store, unit: Unit) -> UnitState:
    """Returns the outbox of a unit, folded; nothing may have been drained from it."""
    state = UnitState("q")
    rows = await store.units.scripts.ask("LRANGE", store.units.of(unit).outbox, 0, -1)
    entries = []
    for row in rows:
        seq, at_ms, kind, tag, offsets, times, reason = msgspec.msgpack.decode(row)
        entries.append(JournalEntry(seq, at_ms, kind, tag, offsets, times or [], reason))
    state.apply(JournalRecord("q", unit.incarnation, unit.partition, entries))
    return state


async def check_totals(store: Store, unit: Unit, generation: int, tags: Iterable[int], now_ms: int) -> None:
    """Fails when the totals in Redis are not those of the journal."""
    state, tags = await journaled(store, unit), [*tags]
    for tag, counts in zip(tags, await store.upkeep.info(unit, generation, tags, now_ms=now_ms), strict=True):
        assert counts.totals == state.tag(tag).totals(), f"tag {tag}"
