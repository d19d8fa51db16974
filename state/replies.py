"""What the scripts take and answer, as frozen structs. Times are epoch milliseconds by Redis'
clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from schemas.records import OpenDelivery, Totals

# Messages a tag may have open in a unit beside those that are leased: ready and delayed, with
# bodies or without.
MAX_OPEN = 200_000


class Window(Struct, frozen=True):
    """Bounds of a unit's window. `near_ms`: a message due later than this is kept without its
    body.
    """

    messages: int
    bytes: int
    max_open: int = MAX_OPEN
    near_ms: int = 60_000


class AtOnce(NamedTuple):
    """How much is leased at once. FIFO: of a group `per_group` messages (0 = all), and a group
    whose first message was received `park_count` times is parked (0 = never). Of a tag
    `max_in_flight` messages in all its `partitions` (0 = any number).
    """

    per_group: int
    park_count: int
    max_in_flight: int = 0
    partitions: int = 0


ANY_NUMBER: Final = AtOnce(0, 0)


class Prime(NamedTuple):
    """FIFO: how the order of a unit is found again. The first message of an id before `sure_at_ms`
    may repeat one from before the scan, and so may those after it, each within five minutes of the
    last: they are delivered. From the offset `sure_from` on the next of that id is delivered too,
    and counts as the one that others repeat.
    """

    sure_at_ms: int
    sure_from: int


class LoadEntry(Struct, frozen=True):
    """A record for the window. `packed` by `packed.pack_body`, empty = skipped for `reason`; `mask`
    has a 1 per tag that wants it.

    `count`: so many records from `offset` on are alike in all of this, and without bodies (FIFO:
    1). `group` are 8 bytes that stand for the message's group, empty = none; FIFO: `dedup` those of
    its deduplication id.
    """

    offset: int
    packed: bytes
    mask: str
    move_key: str = ""
    reason: str = ""
    group: bytes = b""
    dedup: bytes = b""
    count: int = 1


class Loaded(Struct, frozen=True):
    """After a load: cursor and fullness per tag, in the order of the call, and how many were taken.

    FIFO: `seen` is the next offset in the order of the log, -1 = not known; `repeats` names the
    earlier message that one repeats. `head_ms`: when the first of what was taken is visible, no
    later than now but for a delay; 0 = none is.
    """

    cursors: list[int]
    full: list[bool]
    taken: int
    seen: int
    repeats: dict[int, int]
    head_ms: int


class Leased(Struct, frozen=True):
    """A leased message. `packed` is empty when the window no longer had the body: read it from
    Kafka. `since_ms`: from when on it was visible, so its place in the line; 0 = not told.
    """

    offset: int
    count: int
    first_received_at_ms: int
    deadline_ms: int
    packed: bytes
    since_ms: int = 0


class Dying(Struct, frozen=True):
    """A message to be moved to the dead-letter queue by who got this. `again_ms`: a lost mover had
    it until then, 0 = none. `note`: what the consumer said who killed it; a script never knows it.
    """

    offset: int
    count: int
    first_received_at_ms: int
    nonce: int
    again_ms: int
    reason: str
    packed: bytes
    note: str = ""


class Received(Struct, frozen=True):
    """Answer of a receive; all of `leased` share `nonce`. `head_ms`: since when the next message of
    this unit is visible, or from when on; `wait_ms` until then; None = there is none.

    `in_flight`: how many of `open` are; of a few it is not counted (include/head.lua). `hungry`:
    nothing more is free now, so the window takes more than bodies for, if the log has more.
    `parked`: messages that have parked their groups now. `full`: something is due that nobody
    gets, for as much of the tag is in flight as may be.
    """

    now_ms: int
    nonce: int
    wait_ms: int | None
    head_ms: int | None
    cursor: int
    open: int
    in_flight: int
    hungry: bool
    leased: list[Leased]
    dying: list[Dying]
    parked: Sequence[int] = ()
    full: bool = False


class Probed(Struct, frozen=True):
    """A look at a unit under a tag: when its next message is due, cursor, what it holds, seen
    (FIFO), since when the first are visible.

    `wait_ms`, `head_ms`, `in_flight` and `hungry` as in `Received`.
    """

    wait_ms: int | None
    head_ms: int | None
    cursor: int
    open: int
    in_flight: int
    bodies: int
    bytes: int
    seen: int
    hungry: bool
    times: list[int]


class Next(Struct, frozen=True):
    """A message that may be leased, `since_ms` when; `first_received_at_ms` 0 = never was. `later`:
    it goes behind those of quiet groups.
    """

    offset: int
    count: int
    first_received_at_ms: int
    since_ms: int
    later: bool


class Acked(Struct, frozen=True):
    """ok or a StaleReason word per handle, and the seq of the journal entry that tells of it, 0 =
    nothing was settled.
    """

    words: list[str]
    seq: int


class Extended(Struct, frozen=True):
    """ok or a StaleReason word, and when the message is receivable next (0 when it is not ok)."""

    status: str
    time_ms: int


class Killed(Struct, frozen=True):
    """ok or a StaleReason word, and what to move when it is ok."""

    status: str
    dying: Dying


class Parked(Struct, frozen=True):
    """The first message of a parked group, when its retention ends, and how many of the group are
    held back behind it in the window.
    """

    offset: int
    count: int
    first_received_at_ms: int
    until_ms: int
    held: int


class Claimed(Struct, frozen=True):
    """Nonce of a claim; per offset a word (ok, busy, held, settled) and until when a lost claim
    before held it (ms, 0 = none).
    """

    nonce: int
    words: list[tuple[str, int]]


class State(Struct, frozen=True):
    """Where a message stands: MessageState word, receive count, first receive, next visible
    time.
    """

    state: str
    count: int
    first_received_at_ms: int | None
    next_visible_at_ms: int | None


class TagCounts(Struct, frozen=True):
    """Exact counts of one tag's window in one unit; `ahead` is how many at or above the cursor were
    taken already, open or settled; `deferred` are not in it. `lowest` is the lowest open offset,
    which may be below the floor when it was deferred; the floor with many open messages. Of a fair
    unit: how many ready messages are `set_back`, and the digests of the groups that are `noisy`; of
    that and of a FIFO unit how many `groups_in_flight` there are.
    `totals`: what was ever done under the tag here.
    """

    ready: int
    delayed: int
    leased: int
    parked: int
    cursor: int
    floor: int
    ahead: int
    deferred: int
    lowest: int
    set_back: int = 0
    groups_in_flight: int = 0
    noisy: Sequence[bytes] = ()
    totals: Totals = Totals()

    @property
    def later(self) -> int:
        """How many are receivable later, those with far delays too."""
        return self.delayed + self.deferred

    def behind(self, end: int) -> int:
        """How many lie behind the window in a log that ends there, in whatever state."""
        return max(0, end - self.cursor - self.ahead)


class TagDump(Struct, frozen=True):
    """One tag of a unit at one moment. `cursor` -1 = the unit does not know the tag; `open` is
    offset -> next visible ms; `mark`, `slots` and `excepted` are of deferred messages
    (`deferred.py`).
    """

    cursor: int
    floor: int
    open: dict[int, int]
    deliveries: dict[int, OpenDelivery]
    ahead: set[int]
    mark: str
    slots: dict[int, int]
    excepted: set[tuple[int, int]]
    totals: Totals = Totals()


class Dump(Struct, frozen=True):
    """A unit after journal entry `seq`; its outbox held entries up to `waiting`, 0 = none. Tags in
    the order of the call.
    """

    seq: int
    waiting: int
    tags: list[TagDump]


class Owned(Struct, frozen=True):
    """Whether the lease is ours: then `number` is the epoch, else ms until the other's ends.
    `generation` None = not serving.
    """

    ours: bool
    number: int
    generation: int | None


class Entry(Struct, frozen=True):
    """A journal entry as a script wrote it."""

    seq: int
    at_ms: int
    kind: str
    tag: int
    offsets: list[int]
    times: list[int]
    reason: str


def received_of(reply: list[Any], parked: Sequence[int] = ()) -> Received:
    """What a script that receives has answered; `parked`: the groups that it has parked."""
    _, now, nonce, head_ms, cursor, open_count, leased_count, hungry, rows, dying, *first = reply
    leased = [Leased(*rows[i : i + 5]) for i in range(0, len(rows), 5)] if rows else []
    if first and first[2]:
        deadline_ms, fresh, since = first
        times = map(int, since.split())
        leased = [one if one.packed else replace(one, since_ms=next(times)) for one in leased]
        leased += [
            Leased(offset, 1, now, deadline_ms, b"", since_ms) for offset, since_ms in zip(fresh, times, strict=True)
        ]
        if rows:
            leased.sort(key=lambda one: one.offset)
    return Received(
        now_ms=now,
        nonce=nonce,
        wait_ms=None if head_ms < 0 else head_ms - now if head_ms > now else 0,
        head_ms=None if head_ms < 0 else head_ms,
        cursor=cursor,
        open=open_count,
        in_flight=leased_count,
        hungry=hungry == 1,
        full=hungry == 2,
        leased=leased,
        dying=[_dying(dying[i : i + 7]) for i in range(0, len(dying), 7)] if dying else [],
        parked=parked,
    )


def _dying(row: list[Any]) -> Dying:
    offset, count, first, nonce, again, reason, body = row
    return Dying(offset, count, first, nonce, again, reason.decode(), body)
