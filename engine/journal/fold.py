"""What the journal says, folded: the state of units as of an entry, to and from snapshots.

Pure data: entries in, state out; repeated entries (seq seen before) change nothing. Rebuild and
snapshots share it, so a snapshot is by construction what a scan from the beginning would give.
"""

from __future__ import annotations

from collections import Counter

from msgspec.structs import asdict

from engine.journal.deferred import DeferredState
from schemas.records import JournalEntry, JournalRecord, OpenDelivery, SnapshotRecord, TagSnapshot, Totals
from schemas.vocabulary import BOUNDS, REMEMBERED_MOVES, SETTLES, EventKind, Reason

_FLAGS = {Reason.KILLED.value: 1, Reason.EXHAUSTED.value: 2}
# Kinds whose offsets are added up; Totals has them by the same names.
_ADDED = frozenset((EventKind.LEASED, EventKind.RETURNED, EventKind.ACKED, EventKind.RELEASED, EventKind.DEAD))


class TagState:
    """One tag of one unit: all below `floor` is settled, deferred or was brought, `settled` are
    those above, `deliveries` the open ones that were touched or brought.
    """

    __slots__ = ("_added", "deferred", "deliveries", "floor", "settled")

    def __init__(self) -> None:
        self.settled: set[int] = set()
        self.floor = 0
        self.deliveries: dict[int, OpenDelivery] = {}
        self.deferred = DeferredState()
        self._added: Counter[str] = Counter()

    def totals(self) -> Totals:
        """Returns what was ever done under the tag, as the scripts count it in Redis."""
        return Totals(**self._added)

    def apply(self, entry: JournalEntry) -> None:
        """Applies one entry; entries come in seq order."""
        kind = entry.kind
        self.deferred.apply(entry)
        if kind in _ADDED:
            self._add(entry)
        if kind in BOUNDS:
            self.raise_floor(entry.offsets[0])
            if kind == EventKind.PURGED:
                self.deliveries = {offset: d for offset, d in self.deliveries.items() if offset >= entry.offsets[0]}
        elif kind in SETTLES:
            self.settled.update(offset for offset in entry.offsets if offset >= self.floor)
            for offset in entry.offsets:
                self.deliveries.pop(offset, None)
        elif kind not in (EventKind.LAPSED, EventKind.DEFERRED):
            for offset, time in zip(entry.offsets, entry.times, strict=True):
                self.deliveries[offset] = _next(self.deliveries.get(offset), offset, entry, time)

    def _add(self, entry: JournalEntry) -> None:
        self._added[entry.kind] += len(entry.offsets)
        if entry.kind in (EventKind.LEASED, EventKind.RETURNED):
            before = 1 if entry.kind == EventKind.RETURNED else 0
            known = map(self.deliveries.get, entry.offsets)
            self._added[f"{entry.kind}_again"] += sum(1 for d in known if d is not None and d.count > before)

    def raise_floor(self, floor: int) -> int:
        """Lifts the floor to `floor` at least, and over what is settled there; forgets what is
        settled below. Returns the floor. What is open below it was deferred, and then brought.
        """
        before, floor = self.floor, max(self.floor, floor)
        while floor in self.settled:
            floor += 1
        if floor > before:
            self.floor = floor
            self.settled = {offset for offset in self.settled if offset >= floor}
            self.deferred.raise_floor(floor)
        return floor

    def snapshot(self, tag: int) -> TagSnapshot:
        self.raise_floor(0)
        first: list[int] = []
        count: list[int] = []
        for offset in sorted(self.settled):
            if first and first[-1] + count[-1] == offset:
                count[-1] += 1
            else:
                first.append(offset)
                count.append(1)
        deliveries = list(self.deliveries.values())
        return TagSnapshot(tag, self.floor, first, count, deliveries, *self.deferred.in_snapshot(), self.totals())

    @classmethod
    def from_snapshot(cls, snapshot: TagSnapshot) -> TagState:
        history = cls()
        history.floor = snapshot.floor
        for first, count in zip(snapshot.settled_first, snapshot.settled_count, strict=True):
            history.settled.update(range(first, first + count))
        history.deliveries = {d.offset: d for d in snapshot.deliveries}
        history.deferred = DeferredState.from_snapshot(snapshot)
        history._added = Counter(asdict(snapshot.totals))
        return history


def _next(old: OpenDelivery | None, offset: int, entry: JournalEntry, time: int) -> OpenDelivery:
    """The delivery of a message after an entry of kind leased, returned, extended, released, dying,
    claimed, parked, unparked, brought or rescheduled.
    """
    before = old or OpenDelivery(offset, 0, 0, 0, 0, 0)
    if entry.kind == EventKind.RETURNED:
        count = max(0, before.count - 1)
        return OpenDelivery(offset, 0, count, before.first_received_at_ms if count else 0, 0, time)
    if entry.kind == EventKind.LEASED:
        return OpenDelivery(offset, entry.seq, before.count + 1, before.first_received_at_ms or entry.at_ms, 0, time)
    if entry.kind in (EventKind.BROUGHT, EventKind.RESCHEDULED):
        return OpenDelivery(offset, 0, before.count, before.first_received_at_ms, 0, time)
    if entry.kind == EventKind.UNPARKED:
        return OpenDelivery(offset, 0, 0, before.first_received_at_ms, 0, time)
    nonce = {EventKind.EXTENDED: before.nonce, EventKind.RELEASED: 0}.get(EventKind(entry.kind), entry.seq)
    flag = before.flag
    if entry.kind == EventKind.DYING:
        flag = _FLAGS.get(entry.reason, 2)
    elif entry.kind == EventKind.CLAIMED:
        flag = 3
    elif entry.kind == EventKind.PARKED:
        flag = 4
    elif entry.kind == EventKind.RELEASED:
        flag = 0
    return OpenDelivery(offset, nonce, before.count, before.first_received_at_ms, flag, time)


class UnitState:
    """One unit: its tags and the last seq that is in them."""

    __slots__ = ("last_seq", "moves", "queue", "tags")

    def __init__(self, queue: str = "") -> None:
        self.queue = queue
        self.tags: dict[int, TagState] = {}
        self.last_seq = 0
        self.moves: dict[str, int] = {}

    def tag(self, number: int) -> TagState:
        return self.tags.setdefault(number, TagState())

    def apply(self, record: JournalRecord, last: int | None = None) -> bool:
        """Applies the entries that are new, up to seq `last` (None: all); whether there were
        any.
        """
        self.queue = record.queue
        before = self.last_seq
        for entry in record.entries:
            if entry.seq > self.last_seq and (last is None or entry.seq <= last):
                self.last_seq = entry.seq
                if entry.kind == EventKind.COPIED:
                    self._copied(entry.reason, entry.offsets[0])
                else:
                    self.tag(entry.tag).apply(entry)
        return self.last_seq > before

    def _copied(self, move_key: str, offset: int) -> None:
        self.moves[move_key] = offset
        if len(self.moves) > 2 * REMEMBERED_MOVES:
            self.moves = dict(self.newest_moves())

    def newest_moves(self) -> list[tuple[str, int]]:
        """(key, offset of the first copy) of the newest moves, as many as Redis remembers."""
        return sorted(self.moves.items(), key=lambda move: move[1])[-REMEMBERED_MOVES:]

    def size(self) -> int:
        """How many messages a snapshot of it would name, a run of settled ones by each."""
        return len(self.moves) + sum(
            len(tag.deliveries) + len(tag.settled) + tag.deferred.size() for tag in self.tags.values()
        )

    def snapshot(self, incarnation: str, partition: int, at_ms: int) -> SnapshotRecord:
        tags = [history.snapshot(tag) for tag, history in sorted(self.tags.items())]
        moves = self.newest_moves()
        keys, offsets = [key for key, _ in moves], [offset for _, offset in moves]
        return SnapshotRecord(self.queue, incarnation, partition, self.last_seq, at_ms, tags, keys, offsets)

    @classmethod
    def from_snapshot(cls, record: SnapshotRecord) -> UnitState:
        history = cls(record.queue)
        history.last_seq = record.seq
        history.moves = dict(zip(record.move_keys, record.move_offsets, strict=True))
        history.tags = {tag.tag: TagState.from_snapshot(tag) for tag in record.tags}
        return history
