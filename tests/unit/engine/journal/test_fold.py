"""The journal folded: repeats change nothing, a snapshot is the state, settled stays settled."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.journal.fold import TagState, UnitState
from schemas.records import JournalEntry, JournalRecord, OpenDelivery, Totals
from schemas.vocabulary import SETTLES, SLOT_MS, EventKind, Reason

OFFSETS = st.integers(0, 12)
NOT_DRAWN = (EventKind.COPIED, EventKind.FLOOR, EventKind.PURGED, EventKind.DEFERRED, EventKind.BROUGHT)
KINDS = [kind for kind in EventKind if kind not in NOT_DRAWN]


@st.composite
def entries(draw: st.DrawFn) -> list[JournalEntry]:
    """A journal as scripts write it: what is settled under a tag is never spoken of again, and no
    floor passes what is open.
    """
    found = []
    touched: dict[int, set[int]] = {0: set(), 1: set()}
    over: dict[int, set[int]] = {0: set(), 1: set()}
    for seq in range(1, draw(st.integers(1, 25))):
        tag = draw(st.integers(0, 1))
        left = sorted(set(range(13)) - over[tag])
        kind = draw(st.sampled_from([*KINDS, EventKind.FLOOR]))
        if kind == EventKind.FLOOR:
            below = min([draw(OFFSETS), *(touched[tag] - over[tag])])
            over[tag].update(range(below))
            found.append(JournalEntry(seq, 1_000 + seq, kind.value, tag, [below], [], ""))
            continue
        if not left:
            continue
        offsets = sorted(draw(st.sets(st.sampled_from(left), min_size=1, max_size=4)))
        touched[tag].update(offsets)
        if kind in SETTLES:
            over[tag].update(offsets)
        reason = Reason.KILLED.value if kind == EventKind.DYING else ""
        found.append(JournalEntry(seq, 1_000 + seq, kind.value, tag, offsets, [5_000 + seq] * len(offsets), reason))
    return found


def folded(rows: list[JournalEntry], sizes: list[int]) -> UnitState:
    """Folds rows in records of these sizes, the last size again and again."""
    state, at = UnitState("q"), 0
    while at < len(rows):
        size = sizes.pop(0) if len(sizes) > 1 else max(1, sizes[0])
        state.apply(JournalRecord("q", "0123456789ab", 0, rows[at : at + max(1, size)]))
        at += max(1, size)
    return state


def plain(state: UnitState) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(state.snapshot("0123456789ab", 0, 7)))


@given(entries(), st.lists(st.integers(1, 5), min_size=1))
@settings(max_examples=200, deadline=None)
def test_the_state_does_not_depend_on_how_entries_lie_in_records_nor_on_repeats(
    rows: list[JournalEntry], sizes: list[int]
) -> None:
    whole = folded(rows, [len(rows) or 1])
    parts = folded(rows, list(sizes))
    parts.apply(JournalRecord("q", "0123456789ab", 0, rows))
    assert plain(parts) == plain(whole)


@given(entries(), st.integers(0, 25))
@settings(max_examples=200, deadline=None)
def test_a_snapshot_and_the_rest_give_what_all_entries_give(rows: list[JournalEntry], cut: int) -> None:
    first = folded(rows[:cut], [1]) if rows[:cut] else UnitState("q")
    again = UnitState.from_snapshot(first.snapshot("0123456789ab", 0, 7))
    again.apply(JournalRecord("q", "0123456789ab", 0, rows))
    assert plain(again) == plain(folded(rows, [3]) if rows else again)


@given(entries())
@settings(max_examples=200, deadline=None)
def test_nothing_below_the_floor_is_open_and_nothing_settled_is_forgotten(rows: list[JournalEntry]) -> None:
    over: dict[int, set[int]] = {0: set(), 1: set()}
    state = UnitState()
    for row in rows:
        state.apply(JournalRecord("q", "0123456789ab", 0, [row]))
        over[row.tag].update(
            range(row.offsets[0]) if row.kind == EventKind.FLOOR else row.offsets if row.kind in SETTLES else ()
        )
        tag = state.tag(row.tag)
        tag.raise_floor(0)
        assert {offset for offset in range(13) if offset < tag.floor or offset in tag.settled} == over[row.tag]
        assert not over[row.tag] & tag.deliveries.keys()


def test_a_delivery_that_was_given_back_is_uncounted() -> None:
    tag = TagState()
    for seq, kind in enumerate(
        (EventKind.LEASED, EventKind.RETURNED, EventKind.LEASED, EventKind.LEASED, EventKind.RETURNED), 1
    ):
        tag.apply(JournalEntry(seq, 100 + seq, kind.value, 0, [4], [900 + seq], ""))
    assert tag.deliveries == {4: OpenDelivery(4, 0, 1, 103, 0, 905)}
    assert tag.totals() == Totals(leased=3, leased_again=1, returned=2, returned_again=1)


def test_totals_are_of_all_entries_and_of_each_offset() -> None:
    tag = TagState()
    for seq, (kind, offsets) in enumerate(
        [
            (EventKind.LEASED, [0, 1, 2, 3]),
            (EventKind.EXTENDED, [0]),
            (EventKind.RELEASED, [0, 1]),
            (EventKind.LEASED, [0, 1, 5]),
            (EventKind.ACKED, [0, 5]),
            (EventKind.DYING, [2]),
            (EventKind.DEAD, [2]),
            (EventKind.EXPIRED, [3]),
            (EventKind.MOVED, [7]),
            (EventKind.PURGED, [9]),
        ],
        1,
    ):
        tag.apply(JournalEntry(seq, 100, kind.value, 0, offsets, [900] * len(offsets), ""))
    expected = Totals(leased=7, leased_again=2, acked=2, released=2, dead=1)
    assert tag.totals() == TagState.from_snapshot(tag.snapshot(0)).totals() == expected


def entry(seq: int, kind: EventKind, offsets: list[int], times: list[int], reason: str = "") -> JournalEntry:
    return JournalEntry(seq, 100 + seq, kind.value, 0, offsets, times, reason)


def test_what_is_deferred_is_named_above_the_floor_and_counted_below_until_it_is_brought() -> None:
    state, hour = UnitState("q"), SLOT_MS
    told = [
        entry(1, EventKind.DEFERRED, [0, 1, 2, 3], [5 * hour, 5 * hour + 1, 6 * hour, 7 * hour]),
        entry(2, EventKind.FLOOR, [3], []),
        entry(3, EventKind.CANCELLED, [2], [6 * hour]),
        entry(4, EventKind.BROUGHT, [0], [5 * hour], f"{5 * hour}:0"),
        entry(5, EventKind.DELETED, [9], [8 * hour], Reason.NOT_LOADED.value),
    ]
    for row in told:
        state.apply(JournalRecord("q", "0123456789ab", 0, [row]))
        state = UnitState.from_snapshot(state.snapshot("0123456789ab", 0, 7))
    tag = state.tag(0)
    known = tag.deferred
    assert (known.mark, known.above, dict(known.slots)) == ((5 * hour, 0), {3: 7 * hour}, {5: 1})
    assert known.excepted == {(2, 6), (9, 8)}
    assert tag.deliveries == {0: OpenDelivery(0, 0, 0, 0, 0, 5 * hour)} and tag.settled == {9}
    state.apply(
        JournalRecord("q", "0123456789ab", 0, [entry(6, EventKind.BROUGHT, [1], [5 * hour + 1], f"{7 * hour}:-1")])
    )
    assert (known.excepted, dict(known.slots), known.waiting()) == ({(9, 8)}, {}, {3: 7 * hour})
    state.apply(JournalRecord("q", "0123456789ab", 0, [entry(7, EventKind.PURGED, [10], [])]))
    assert (known.bound, known.waiting(), known.excepted, tag.deliveries) == (10, {}, set(), {})


def test_a_parked_message_stays_so_until_it_is_unparked_and_then_has_never_been_received() -> None:
    def entry(seq: int, kind: EventKind, offsets: list[int], times: list[int]) -> JournalEntry:
        return JournalEntry(seq, 1_000 + seq, kind.value, 0, offsets, times, "")

    rows = [
        entry(1, EventKind.LEASED, [0, 1], [2_000, 2_000]),
        entry(2, EventKind.PARKED, [0], [9_000]),
        entry(3, EventKind.LAPSED, [0], []),
    ]
    state = folded(rows, [3])
    assert state.tag(0).deliveries[0] == OpenDelivery(0, 2, 1, 1_001, 4, 9_000)
    again = UnitState.from_snapshot(state.snapshot("0123456789ab", 0, 7))
    again.apply(JournalRecord("q", "0123456789ab", 0, [entry(4, EventKind.UNPARKED, [0, 1], [3_000, 3_000])]))
    assert [again.tag(0).deliveries[n] for n in (0, 1)] == [OpenDelivery(n, 0, 0, 1_001, 0, 3_000) for n in (0, 1)]


@given(entries(), st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.booleans()), max_size=40))
def test_it_does_not_matter_who_appends_how_often_when_entries_are_confirmed_in_the_journal(
    rows: list[JournalEntry], steps: list[tuple[int, int, bool]]
) -> None:
    """Three drain one outbox, of which two may be stale or have no answer: each appends what it was
    shown at any time, and only what is in the journal leaves the outbox.
    """
    journal: list[list[JournalEntry]] = []
    shown: dict[int, list[JournalEntry]] = {}
    confirmed = 0
    for who, most, is_look in steps:
        if is_look:
            shown[who] = [row for row in rows if row.seq > confirmed][:most]
        elif shown.get(who):
            journal.append(shown[who])
            confirmed = max(confirmed, shown[who][-1].seq) if who == 0 else confirmed
    left = [row for row in rows if row.seq > confirmed]
    state = UnitState("q")
    for some in [*journal, left]:
        state.apply(JournalRecord("q", "0123456789ab", 0, some))
    assert plain(state) == plain(folded(rows, [1]))
