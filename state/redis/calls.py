"""How the scripts are called that the plane calls too: keys and arguments in their order, once.

`Store` gives values, `templates` places in their stead: what each call fills in by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct

from state.keys import Unit, UnitKeys, wake_channel, wake_up
from state.redis.wire import Argument
from state.replies import Window


class Slot(Struct, frozen=True):
    """A place for what a call fills in; `kind` is that of native/src/plane/calls.rs, and a test
    compares them. `number` is added to it.
    """

    kind: int
    number: int | None = None


NOW: Final = Slot(1)
MOST: Final = Slot(2)
LEASE: Final = Slot(3)
UNTIL: Final = Slot(6)
ROWS: Final = Slot(7)
EARLY: Final = Slot(8)
DONE_SEQ: Final = Slot(9)


def plus_more(ms: int) -> Slot:
    """Returns the place for a time and what a lease ahead is longer by."""
    return Slot(4, ms)


def plus_keep(ms: int) -> Slot:
    """Returns the place for a time and what messages are kept longer by the service's clock."""
    return Slot(5, ms)


Word = TypeVar("Word", Argument, Argument | Slot)
# Keys and arguments of one call.
Call = tuple[tuple[str, ...], tuple[Word, ...]]


def receive_call(
    keys: UnitKeys,
    window: Window,
    generation: int,
    tag: int,
    *,
    now: Word,
    most: Word,
    lease: Word,
    queue_lease: Word,
    max_receive_count: int,
    retention: Word,
    move_ms: int,
    max_in_flight: int = 0,
) -> Call[Word]:
    """Returns the call of receive.lua but for its last argument; what receive_fifo.lua,
    receive_fair.lua and pick.lua take first.
    """
    t = keys.tag(tag)
    names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, keys.outbox, t.delayed)
    return names, (
        generation, now, tag, most, lease, queue_lease, max_receive_count, retention, move_ms,
        window.bytes, window.messages, max_in_flight,
    )  # fmt: skip


def load_call(
    keys: UnitKeys,
    window: Window,
    generation: int,
    tags: Sequence[int],
    *,
    epoch: int,
    now: Word,
    channel: str,
    payload: Word,
    scan: tuple[int, int],
    prime: tuple[int, int],
    early: Word,
) -> Call[Word]:
    """Returns the call of load.lua but for its entries."""
    names = [keys.meta, keys.body, keys.refs, keys.outbox, keys.origins, keys.dedup, keys.ids, keys.pending]
    names += (keys.far, keys.except_, keys.pointers)
    for tag in tags:
        names += keys.tag(tag).all()
    bounds: tuple[int, ...] = (window.messages, window.bytes, window.max_open, window.near_ms)
    return tuple(names), (generation, epoch, now, channel, payload, *bounds, *scan, *prime, len(tags), early, *tags)


def probe_call(keys: UnitKeys, generation: int, tag: int, *, now: Word, times: int) -> Call[Word]:
    """Returns the call of probe.lua."""
    t = keys.tag(tag)
    return (keys.meta, t.visible, t.delivery, keys.body, t.groups, t.delayed), (generation, now, tag, times)


def ack_call(
    keys: UnitKeys, prefix: str, unit: Unit, generation: int, tag: int, *, now: Word, late: bool, width: int
) -> Call[Word]:
    """Returns the call of ack.lua but for its handles, which have `width` values each."""
    t = keys.tag(tag)
    names = (keys.meta, t.visible, t.delivery, keys.body, keys.refs, keys.outbox, t.order, t.groups, t.ahead)
    return names, (generation, now, tag, int(late), wake_channel(prefix, unit.incarnation), unit.partition, width)


def extend_call(
    keys: UnitKeys, prefix: str, unit: Unit, generation: int, tag: int, *, now: Word, late: bool, width: int
) -> Call[Word]:
    """Returns the call of extend.lua but for its handles, which have `width` values each."""
    t = keys.tag(tag)
    names = (keys.meta, t.visible, t.delivery, keys.outbox, t.order, t.groups, t.ahead)
    return names, (generation, now, tag, int(late), wake_channel(prefix, unit.incarnation), unit.partition, width)


def release_call(
    keys: UnitKeys,
    prefix: str,
    unit: Unit,
    generation: int,
    tag: int,
    *,
    now: Word,
    late: bool,
    delay_ms: int,
    width: int,
) -> Call[Word]:
    """Returns the call of release.lua but for its handles, which have `width` values each."""
    t = keys.tag(tag)
    names = (keys.meta, t.visible, t.delivery, keys.outbox, t.delayed, t.order, t.groups, t.ahead)
    return names, (
        generation,
        now,
        tag,
        int(late),
        wake_channel(prefix, unit.incarnation),
        unit.partition,
        delay_ms,
        width,
    )


def give_back_call(
    keys: UnitKeys, prefix: str, unit: Unit, generation: int, tag: int, *, now: Word, rest_ms: int
) -> Call[Word]:
    """Returns the call of give_back.lua but for its rows."""
    t = keys.tag(tag)
    names = (keys.meta, t.visible, t.delivery, keys.outbox, t.delayed, t.order, t.groups)
    return names, (generation, now, tag, rest_ms, wake_channel(prefix, unit.incarnation), unit.partition)


def drain_call(keys: UnitKeys, *, epoch: int, done_seq: Word, most: int) -> Call[Word]:
    """Returns the call of drain.lua."""
    return (keys.meta, keys.outbox), (epoch, done_seq, most)


def drain_template(prefix: str, unit: Unit, epoch: int, most: int) -> list[tuple[int, bytes]]:
    """Returns the call of drain.lua as the plane reads it."""
    return template(drain_call(UnitKeys(prefix, unit), epoch=epoch, done_seq=DONE_SEQ, most=most))


def template(call: Call[Argument | Slot], *more: Slot) -> list[tuple[int, bytes]]:
    """Returns a call as the plane reads it, from the number of its keys on."""
    names, arguments = call
    return [_piece(word) for word in (len(names), *names, *arguments, *more)]


def _piece(word: Argument | Slot) -> tuple[int, bytes]:
    if isinstance(word, Slot):
        return word.kind, b"" if word.number is None else b"%d" % word.number
    return 0, word if isinstance(word, bytes) else str(word).encode()


# The scripts that the plane calls, in the order in which it knows them.
SCRIPTS: Final = ("receive", "probe", "ack", "give_back", "extend", "release", "load", "drain")


class Templates:
    """The calls of units as the plane reads them."""

    def __init__(self, prefix: str, window: Window) -> None:
        self._prefix = prefix
        self._window = window

    def of(
        self,
        unit: Unit,
        generation: int,
        tag: int,
        *,
        queue_lease_ms: int,
        max_receive_count: int,
        retention_ms: int,
        move_ms: int,
        rest_ms: int,
    ) -> list[list[tuple[int, bytes]]]:
        """Returns the first six calls of SCRIPTS for one unit and tag."""
        keys, prefix = UnitKeys(self._prefix, unit), self._prefix
        of = keys, prefix, unit, generation, tag
        receive = receive_call(
            keys, self._window, generation, tag, now=NOW, most=MOST, lease=LEASE, queue_lease=plus_more(queue_lease_ms),
            max_receive_count=max_receive_count, retention=plus_keep(retention_ms), move_ms=move_ms,
        )  # fmt: skip
        return [
            template(receive, UNTIL),
            template(probe_call(keys, generation, tag, now=NOW, times=0)),
            template(ack_call(*of, now=NOW, late=True, width=2), ROWS),
            template(give_back_call(*of, now=NOW, rest_ms=rest_ms), ROWS),
            template(extend_call(*of, now=NOW, late=True, width=3), ROWS),
            template(release_call(*of, now=NOW, late=True, delay_ms=0, width=2), ROWS),
        ]

    def load(self, unit: Unit, generation: int, tags: Sequence[int], name: str | None) -> list[tuple[int, bytes]]:
        """Returns the call of load.lua for records that Kafka has just taken. `name`: of this
        worker, for others who are woken; None = there are none.
        """
        keys, channel = UnitKeys(self._prefix, unit), ""
        payload: Argument | Slot = ""
        if name is not None:
            channel, payload = wake_channel(self._prefix, unit.incarnation), wake_up(unit.partition, name)
        call = load_call(
            keys, self._window, generation, tags, epoch=0, now=NOW, channel=channel, payload=payload, scan=(-1, -1),
            prime=(-1, 0), early=EARLY,
        )  # fmt: skip
        return template(call, ROWS)
