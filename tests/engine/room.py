"""The parts that receive and that act on handles, joined as `engine/wiring/` does, over a real
store. Kafka is away: what the window has is received, a body that only Kafka has is not.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest

from engine.catalog.catalog import Catalog
from engine.catalog.tables import Tables
from engine.errors import LogUnavailable, QueueRenewed, Rebuilding
from engine.handles.attempts import Attempts
from engine.handles.handles import ByUnit, Handles, Refusals
from engine.handles.leases import Kills, Leases
from engine.handles.parts import HandleParts
from engine.handles.settlements import Acks, Settlements
from engine.log import Record
from engine.meters.meters import Meters
from engine.receive.deliveries import Deliveries
from engine.receive.poll import Poller
from engine.receive.receiver import LongPolls, Receiver, ShortPolls
from engine.receive.returns import Returns
from engine.receive.serving import Completing, Serving
from engine.receive.waits.wait_lists import WaitLists
from engine.rules.linger import Activity
from engine.rules.queue import Ids, Queue
from engine.rules.rights import NOBODY, Asker, Rights, Targets
from engine.shapes import Delivery, EntryResult, ExtendEntry, Late
from engine.window.body_source import BodyCache, BodySource
from engine.window.delays import Delays
from engine.window.window import Window
from runtime.counters import Counters
from runtime.deadline import state_until
from runtime.signals import Signal
from schemas.identity import Handle
from schemas.records import Message, OpenDelivery, QueueRecord, TagRecord
from schemas.wire import encode
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.redis.wake import Wake
from state.replies import Dying, LoadEntry
from state.replies import Window as Bounds
from state.store import Store
from tests.unit.records import queue_record

# When a test begins, by the clock of the service.
START_MS = 1_700_000_000_000
# How long something may take of which only the machine says how long.
REAL_S = 30.0


class Hand:
    """The time of the event loop and of the service: they stand still until a test moves both, by
    whole ms. The loop's begins with a whole second, so that sums of times are exact.
    """

    def __init__(self, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        began_s = float(int(loop.time()) + 1)
        self.now_ms = START_MS
        monkeypatch.setattr(loop, "time", lambda: began_s + (self.now_ms - START_MS) / 1000)
        # Half a ms, for what is counted back from seconds is not exact.
        monkeypatch.setattr("state.clock.service_clock.boot_s", lambda: (self.now_ms - START_MS + 0.5) / 1000)
        connection.clock.take(0.0, START_MS)

    async def pass_s(self, seconds: float) -> None:
        """So much time passes at once, and what was due by then is begun."""
        self.now_ms += round(seconds * 1000)
        for _ in range(5):
            await asyncio.sleep(0)


class Known(Tables):
    """What the control topic has."""

    def __init__(self) -> None:
        super().__init__("lw", Signal[[Queue]]())
        self.generation = 1

    async def sync(self) -> None:
        """It has all that there is."""


class NoRecovery:
    """Nothing is rebuilt: `renewed` has the incarnations of queues that began a new life."""

    def __init__(self) -> None:
        self.renewed: set[str] = set()

    async def recover(self, queue: Queue, until: float) -> None:
        if queue.incarnation in self.renewed:
            raise QueueRenewed("it began a new life")
        raise Rebuilding("it is not rebuilt here")

    def recover_soon(self, queue: Queue) -> None:
        """It is not."""


class Bodies(BodySource):
    """Kafka is away: a read fails when `fails` is set, and takes until then."""

    def __init__(self, cache: BodyCache) -> None:
        super().__init__(cast(Any, None), cache, cast(Any, None))
        self.fails = asyncio.Event()
        self.reads = 0

    async def read(
        self, queue: Queue, tag: TagRecord, partition: int, missing: Sequence[tuple[int, int]], max_bytes: int
    ) -> tuple[Mapping[int, Record], set[int], list[int]]:
        self.reads += 1
        await self.fails.wait()
        raise LogUnavailable("Kafka is away")


class Room:
    """One worker's parts, and a queue."""

    def __init__(self, connection: Connection, hand: Hand, **fields: Any) -> None:
        self.hand = hand
        self.store = Store(connection, f"r{secrets.token_hex(3)}", Bounds(100, 1_000_000))
        self.catalog = Known()
        self.recovery = NoRecovery()
        wait_lists = self.wait_lists = WaitLists()
        self.background = wait_lists.background
        self.counters = Counters()
        self.meters = Meters()
        self.receivable: Signal[[str, int, int]] = Signal()
        self.woken: list[tuple[int, int]] = []
        self.dead: list[Dying] = []
        self.journaled: list[tuple[int, int]] = []
        self.refreshed = 0
        catalog, scripts, ids = cast(Catalog, self.catalog), self.store.leases, Ids("a secret")
        window = self.window = Window(catalog, self.recovery)
        self.ids, self.cache = ids, BodyCache(1_000_000)
        self.bodies = Bodies(self.cache)
        targets = Targets(catalog, cast(Rights, AllRights()))
        activity = Activity()
        start = self.background.start
        self.returns = Returns(
            scripts, window, ids, self.receivable, self.counters, lambda work: start(work, "give back")
        )
        self.deliveries = Deliveries(
            scripts, window, ids, self.bodies, self.returns, lambda work: start(work, "return")
        )
        self.poller = Poller(scripts, targets, window, self.counters, _nothing, _nothing, self._die)
        completing = Completing(catalog, self.deliveries, self.returns, _no_plane)
        serving = Serving(catalog, self.poller, completing, activity, self.background, self._refresh)
        wake = Wake("redis://127.0.0.1:1/0", "x", "x", _nothing)  # what wakes tests say themselves
        long_polls = self.long_polls = LongPolls(wait_lists, serving.serve, wake, self.returns, self.background)
        short_polls = ShortPolls(self.poller, completing, self._refresh)
        self.receiver = Receiver(catalog, ids, short_polls, long_polls, cast(Any, None), self.returns, self.background)
        handles, by_unit, refusals = (
            Handles(catalog, ids),
            ByUnit(window, scripts.units),
            Refusals(self.meters.note_stale),
        )
        delays = Delays(self.store.upkeep, cast(Any, None))
        leases = Leases(scripts, handles, by_unit, delays, refusals, self.receivable, self.meters)
        self.handles = HandleParts(
            handles=handles,
            settlements=Settlements(
                Acks(scripts, self.cache),
                handles,
                by_unit,
                self._wait_journaled,
                refusals,
                self.receivable,
                self.meters,
            ),
            leases=leases,
            kills=Kills(scripts, handles, by_unit, targets, self._kill, refusals),
            attempts=Attempts(cast(Any, None), scripts, window, leases),
            refusals=refusals,
        )
        self.receivable.connect(wait_lists.woken)
        self.catalog.resumed.connect(lambda queue: wait_lists.woken(queue.incarnation, -1))
        self.receivable.connect(lambda incarnation, partition, head_ms: self.woken.append((partition, head_ms)))
        self.put(
            queue_record(
                "q", 2, incarnation=secrets.token_hex(6), tags=[TagRecord(0, "default", 1, 0, [0, 0])], **fields
            )
        )
        self._next = [0, 0]

    def put(self, record: QueueRecord) -> None:
        """The control topic has this record of the queue."""
        self.catalog.put("queue", record.name, record, 0)
        self.queue = self.catalog.queues[record.name]

    @property
    def tag(self) -> TagRecord:
        """The default tag."""
        return self.queue.tags[0]

    @property
    def units(self) -> Sequence[Unit]:
        """The partitions."""
        return self.queue.units

    async def open(self) -> None:
        """The window of the queue serves."""
        for unit in self.units:
            await self.store.upkeep.open(unit, 1, [(tag.id, 0) for tag in self.queue.tags], fifo=self.queue.record.fifo)

    async def close(self) -> None:
        """Nothing is left running."""
        self.bodies.fails.set()
        self.returns.stop()
        self.wait_lists.stop()
        await self.background.stop()

    async def send(self, *bodies: str, partition: int = 0, in_window: bool = True, group: bytes = b"") -> None:
        """The window has these messages, with their bodies or without. It wakes nobody."""
        first = self._next[partition]
        now_ms = self.hand.now_ms
        packed = [
            pack_body(now_ms, now_ms, None, encode(Message(body.encode())) if in_window else b"") for body in bodies
        ]
        entries = [LoadEntry(first + n, one, "1", group=group) for n, one in enumerate(packed)]
        self._next[partition] = first + len(bodies)
        await self.store.leases.load(self.units[partition], 1, [0], entries, scan=(first, self._next[partition]))

    async def wake(self, partition: int = 0) -> None:
        """The worker hears that a partition has something."""
        self.wait_lists.woken(self.queue.incarnation, partition)
        await self.settled()

    async def receive(
        self, max: int = 10, wait_s: float = 0, lease_s: float = 30, asker: Asker = NOBODY
    ) -> list[Delivery]:
        """A receive of this worker."""
        return await self.receiver.receive(
            self.queue, self.tag, max, int(wait_s * 1000), int(lease_s * 1000), asker=asker
        )

    async def waiting(
        self, max: int = 10, wait_s: float = 20, lease_s: float = 30, asker: Asker = NOBODY
    ) -> asyncio.Task[list[Delivery]]:
        """A receive that has begun to wait."""
        task = asyncio.get_running_loop().create_task(self.receive(max, wait_s, lease_s, asker))
        await asyncio.sleep(0)
        await self.settled()
        return task

    async def settled(self) -> None:
        """Returns when the worker has nothing more to do at this moment. It must not wait for a
        time, nor for Kafka.
        """
        for _ in range(3):
            await self.background.finished()
            await asyncio.sleep(0)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Returns when something is so, which takes no time of the clocks that tests move."""
        end = time.monotonic() + REAL_S
        while not is_so():
            assert time.monotonic() < end
            await asyncio.sleep(0)

    async def ack(self, *handles: str, late: Late = Late.ALWAYS) -> list[tuple[str, str]]:
        """Status and reason of each handle."""
        return _said(await self.handles.settlements.ack(self.queue, handles, state_until(), late=late))

    async def extend(self, lease_s: float, *handles: str, late: Late = Late.ALWAYS) -> list[tuple[str, str]]:
        """As `ack`."""
        entries = [ExtendEntry(handle, int(lease_s * 1000)) for handle in handles]
        return _said(await self.handles.leases.extend(self.queue, entries, state_until(), late=late))

    async def release(self, delay_s: float, *handles: str) -> list[tuple[str, str]]:
        """As `ack`."""
        return _said(await self.handles.leases.release(self.queue, handles, int(delay_s * 1000), state_until()))

    async def states(self, *offsets: int, partition: int = 0) -> list[tuple[str, int]]:
        """State and receive count of messages."""
        return [(one.state, one.count) for one in await self.store.leases.states(self.units[partition], 1, 0, offsets)]

    async def lose(self, partition: int) -> None:
        """Redis has lost a partition: it serves no more."""
        await self.store.units.scripts.ask("HDEL", self.store.units.of(self.units[partition]).meta, "generation")

    async def find(self, partition: int) -> None:
        """It serves again, as it was."""
        await self.store.units.scripts.ask("HSET", self.store.units.of(self.units[partition]).meta, "generation", 1)

    async def restore(self, partition: int, deliveries: Sequence[Delivery]) -> None:
        """A rebuild has brought back these deliveries."""
        unit, upkeep = self.units[partition], self.store.upkeep
        epoch = (await upkeep.own(unit, "w", lease_ms=10_000)).number
        await upkeep.clear(unit, epoch, self.queue.tag_ids)
        nonces = {one.offset: Handle.parse(one.handle, self.ids.secret).nonce for one in deliveries}
        rows = [
            OpenDelivery(
                one.offset, nonces[one.offset], one.receive_count, one.first_received_at_ms, 0, one.next_visible_at_ms
            )
            for one in deliveries
        ]
        await upkeep.restore(unit, epoch, 0, cursor=0, settled=[], deliveries=rows)
        await upkeep.open(unit, 1, [(0, 0)], epoch=epoch, seq=100)

    async def until_tried(self) -> None:
        """Returns when Redis has been told once of what goes back; raises what it said."""
        end = time.monotonic() + REAL_S
        while not await self.returns.tried(self.queue, 0):
            assert time.monotonic() < end
            await asyncio.sleep(0)

    async def journal(self, partition: int = 0) -> list[tuple[str, list[int]]]:
        """Kinds and offsets of the entries of a partition."""
        unit = self.units[partition]
        epoch = (await self.store.upkeep.own(unit, "w", lease_ms=10_000)).number
        return [
            (entry.kind, entry.offsets) for entry in await self.store.upkeep.drain(unit, epoch, done_seq=0, max=1_000)
        ]

    async def _refresh(self, queue: Queue) -> bool:
        self.refreshed += 1
        return False

    async def _wait_journaled(self, queue: Queue, partition: int, seq: int, until: float) -> None:
        self.journaled.append((partition, seq))

    async def _kill(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
        self.dead += dying

    def _die(self, queue: Queue, tag: TagRecord, partition: int, dying: Sequence[Dying]) -> None:
        self.dead += dying


class AllRights:
    """Everybody may send everywhere."""

    def still_may(self, principal: str, verb: object, queue: Queue) -> bool:
        return True


def _said(results: Sequence[EntryResult]) -> list[tuple[str, str]]:
    return [(one.status, one.reason) for one in results]


def _nothing(*told: object) -> None:
    """Is told of it."""


async def _no_plane(incarnation: str, tag: int) -> None:
    """There is none that has leased anything."""


def bodies_of(deliveries: Sequence[Delivery]) -> list[str]:
    """The bodies of deliveries, in order."""
    return [one.message.body.decode() for one in deliveries]
