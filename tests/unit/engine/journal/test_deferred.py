"""Deferred messages of a tag, as the journal's entries tell of them."""

from __future__ import annotations

from engine.journal.deferred import NO_MARK, DeferredState
from schemas.records import JournalEntry, TagSnapshot
from schemas.vocabulary import SLOT_MS, EventKind

DUE = 10 * SLOT_MS


def entry(kind: EventKind, offsets: list[int], times: list[int] | None = None, reason: str = "") -> JournalEntry:
    return JournalEntry(1, 0, kind, 0, offsets, times or [], reason)


def deferred(*offsets: int) -> DeferredState:
    """One more millisecond of delay for each."""
    state = DeferredState()
    state.apply(entry(EventKind.DEFERRED, list(offsets), [DUE + offset for offset in offsets]))
    return state


def test_what_the_floor_passes_is_counted_and_named_no_longer() -> None:
    state = deferred(1, 2, 3)
    state.raise_floor(3)
    assert state.waiting() == {3: DUE + 3}
    assert dict(state.slots) == {10: 2}


def test_what_is_brought_is_gone_and_the_mark_stands_there() -> None:
    state = deferred(1, 2, 3)
    state.raise_floor(2)
    state.apply(entry(EventKind.BROUGHT, [1, 2], [DUE + 1, DUE + 2], f"{DUE + 2}:2"))
    assert state.mark == (DUE + 2, 2)
    assert state.waiting() == {3: DUE + 3}
    assert dict(state.slots) == {}


def test_a_cancelled_one_is_an_exception_until_the_mark_has_passed_its_slot() -> None:
    state = deferred(1, 2)
    state.apply(entry(EventKind.CANCELLED, [1], [DUE + 1]))
    assert (state.waiting(), state.excepted) == ({2: DUE + 2}, {(1, 10)})
    state.apply(entry(EventKind.BROUGHT, [2], [DUE + 2], f"{DUE + SLOT_MS}:0"))
    assert (state.waiting(), state.excepted) == ({}, set())


def test_a_purge_takes_what_is_below_it() -> None:
    state = deferred(1, 2, 7)
    state.apply(entry(EventKind.PURGED, [5]))
    assert (state.bound, state.waiting(), state.size()) == (5, {7: DUE + 7}, 1)


def test_a_snapshot_gives_the_state_back() -> None:
    state = deferred(1, 2, 3)
    assert DeferredState().mark == NO_MARK
    state.raise_floor(2)
    state.apply(entry(EventKind.CANCELLED, [3], [DUE + 3]))
    state.apply(entry(EventKind.BROUGHT, [2], [DUE + 2], f"{DUE + 2}:2"))
    again = DeferredState.from_snapshot(TagSnapshot(0, 0, [], [], [], *state.in_snapshot()))
    assert again.in_snapshot() == state.in_snapshot()
