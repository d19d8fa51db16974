"""Which life of Redis this worker may use, and for how long.

The control topic names one life: the newest generation record that counts. A worker calls the state
only while it has looked at the end of that topic within LIFE_S and has applied all of it; a worker
that names another life, and each that hears of it, waits longer than that before its first call. So
two lives are never used at once (docs/decisions/0041). Longer than 250 lines: to look, to name and
to claim are one decision over the same three facts (the server, the named life, the time).
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import random
import secrets

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, Rebuilding
from engine.log import Log
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from runtime.counters import Alarms
from runtime.deadline import state_until
from runtime.signals import Signal
from schemas.records import ClaimRecord, GenerationRecord
from state.clock.boot import boot_s
from state.errors import StateError, StateUnavailable
from state.redis.connection import Connection
from state.redis.server import Server

logger = logging.getLogger(__name__)

# How long a look at the control topic lets calls begin.
LIFE_S = 2.0
# Clocks that count seconds may differ by a thousandth or so; the rest is for the broker's time,
# which is cut to milliseconds, and for whoever is slow to compare.
MARGIN_S = 0.2
LOOK_S = 0.5
SERVER_S = 1.0
# While no other server can have the state, a call waits so long for Kafka, and goes on without it.
ALONE_S = 0.3
START_S = 1.0
PING_S = 1.0
# Of a Redis that is not the one in use: it is tried again after so long.
AGAIN_S = (0.5, 1.0, 2.0, 3.0)
EARLIER = 16
# Clocks of workers and of Kafka that differ by more are refused elsewhere (`catalog/seal.py`).
CLOCKS_MS = 3_600_000


class RedisLives:
    """The right of one worker to call the state; it opens and closes the fence of `connection`.
    `moved` says that another server is used from now on.
    """

    def __init__(self, log: Log, connection: Connection, catalog: Catalog, alarms: Alarms) -> None:
        self._log = log
        self._connection = connection
        self._fence = connection.fence
        self._catalog = catalog
        self._alarms = alarms
        # When calls under the named life may begin at the earliest, by `boot_s`.
        self._from_s = 0.0
        self.moved: Signal[[]] = Signal()
        self._used = ""
        self._again_s = 0.0
        self._refused = 0
        self._copied: set[str] = set()
        self._asked: dict[str, asyncio.Future[None]] = {}
        self._answered: collections.deque[str] = collections.deque(maxlen=100)
        self._looking: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._kept: list[asyncio.Task[None]] = []
        self._background = Background()
        catalog.named.connect(self._note_named)
        catalog.claimed.connect(self._note_claim)

    async def start(self) -> None:
        """Once the catalog has read all. Returns when calls may begin, or after START_S."""
        self._fence.guard(self.confirm)
        self._kept = [
            self._background.keep(self._keep, "keep_life"),
            self._background.keep(self._watch_server, "watch_redis"),
        ]
        await asyncio.wait({self._settle_soon()}, timeout=START_S)

    async def stop(self) -> None:
        await cancel_all(*self._kept, self._settling, self._looking)
        await self._background.stop()

    @property
    def trouble(self) -> str:
        """Why this worker may not call the state now; "" = it may, or has no connection."""
        if self._fence.admits(self._connection.life) or not self._connection.connected:
            return ""
        return "not in use: the control topic names another one, or Kafka can't be asked"

    # The lease: a look at the end of the control topic.

    async def confirm(self) -> None:
        """Has the fence open for LIFE_S from now, if this worker's Redis is still the one in use;
        else it is closed, or over, when this returns.
        """
        for _ in range(2):  # a look that is under way may have begun too long ago
            look = self._look_soon()
            is_alone = self._is_alone()
            await asyncio.wait({look}, timeout=ALONE_S if is_alone else LIFE_S)
            if is_alone and (not look.done() or look.exception() is not None):
                self._fence.extend(boot_s() + LIFE_S)
            if self._fence.admits(self._connection.life) or not look.done():
                return

    def _look_soon(self) -> asyncio.Task[None]:
        if self._looking is None or self._looking.done():
            self._looking = self._background.start(self._look(), "look_at_control", awaited=True)
        return self._looking

    async def _look(self) -> None:
        """Raises LogUnavailable."""
        began_s = boot_s()
        await self._catalog.sync()
        # A record that names another life has closed the fence when it was applied.
        self._fence.extend(began_s + LIFE_S)

    def _is_alone(self) -> bool:
        """Whether no other server can have the state: then Kafka need not be asked, for a queue is
        to be received from while Kafka is away.
        """
        server = self._connection.server
        return server.single and server.run_id not in self._copied

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._connection.connected:
                continue
            if self._fence.life == self._connection.life:
                await self.confirm()
            else:
                with contextlib.suppress(EngineError):
                    await self.trust(state_until())

    async def _watch_server(self) -> None:
        """Asks Redis now and then what it is: it may have become a replica, or begun to evict."""
        while True:
            self._note_server(self._connection.server)
            await asyncio.sleep(SERVER_S)
            with contextlib.suppress(StateError):
                await self._connection.look()

    def _note_server(self, server: Server) -> None:
        if not server.single:
            self._copied.add(server.run_id)
        if server.is_replica and self._connection.connected:
            self._connection.leave("it is a replica now")
        if self._alarms.set("redis_evicts", "", int(server.evicts)):
            logger.error(
                "action=alarm kind=redis_evicts policy=%s: Redis may drop keys; set maxmemory-policy noeviction",
                server.policy,
            )

    # The named life.

    def _is_named(self) -> bool:
        named, server = self._catalog.life, self._connection.server
        same = named.redis_run_id == server.run_id and named.evicted == server.evicted
        # A master that dropped its backlog says no more from whom it was promoted.
        return same and bool(server.run_id) and server.promotion in ("", named.promotion)

    def _has_named(self) -> bool:
        """Whether this worker has a connection to the named life, if it may not use it yet, too."""
        return bool(self._kept) and self._connection.connected and self._is_named()

    def _note_named(self, before: GenerationRecord, now: GenerationRecord, at_ms: int) -> None:
        if before.redis_run_id == now.redis_run_id:
            return  # within one server the scripts compare generations
        if self._kept:
            self._fence.close()
        # Whoever had not heard of this record when it was appended may call the life before it for
        # so long.
        self._from_s = boot_s() + self._wait_s(at_ms) if now.earlier else 0.0

    def _wait_s(self, at_ms: int) -> float:
        clock_ms = self._log.clock.now_ms()
        at_least_ms = now_ms() - CLOCKS_MS if clock_ms is None else clock_ms - self._log.clock.error_ms
        return LIFE_S + MARGIN_S - max(0.0, min((at_least_ms - at_ms) / 1000, LIFE_S + MARGIN_S))

    async def trust(self, until: float) -> None:
        """Returns when this worker may call the state of its Redis. Raises Rebuilding, at `until`
        (loop time) at the latest.
        """
        if self._fence.admits(self._connection.life):
            return
        if boot_s() < self._again_s:
            raise Rebuilding(
                "another worker has the Redis that the control topic names; this worker reached another one"
            )
        settling = self._settle_soon()
        done, _ = await asyncio.wait({settling}, timeout=max(0.0, until - asyncio.get_running_loop().time()))
        if not done:
            raise Rebuilding("which Redis is in use is not settled yet")
        if (error := settling.exception()) is not None:
            raise Rebuilding(f"which Redis is in use is not settled yet: {error}") from error

    def _settle_soon(self) -> asyncio.Task[None]:
        if self._settling is None or self._settling.done():
            self._settling = self._background.start(self._settle(), "settle_life", awaited=True)
        return self._settling

    async def _settle(self) -> None:
        """Opens the fence: names the server of this worker first, if it must and may. Raises
        StateUnavailable, LogUnavailable.
        """
        await self._catalog.sync()
        if not self._is_named():
            await self._connection.look()
            await self._name()
        await asyncio.sleep(max(0.0, self._from_s - boot_s()))
        began_s = boot_s()
        await self._catalog.sync()
        if not self._is_named() or boot_s() < self._from_s:
            raise StateUnavailable("another Redis came into use meanwhile")
        self._refused = 0
        self._fence.open(self._connection.life, began_s + LIFE_S)
        if self._used not in ("", self._connection.run_id):
            self.moved()
        self._used = self._connection.run_id

    async def _name(self) -> None:
        """Names the server of this worker. A server that was named before may have old memory; it
        is named again only when nobody has the one that is named. Raises StateUnavailable when
        somebody has, LogUnavailable.
        """
        named, server = self._catalog.life, self._connection.server
        if self._is_named():
            return
        is_back = server.run_id in named.earlier and server.run_id != named.redis_run_id
        if is_back and await self._is_held(named):
            self._again_s = boot_s() + AGAIN_S[min(self._refused, len(AGAIN_S) - 1)]
            self._refused += 1
            self._connection.leave("another worker has the one that the control topic names")
            raise StateUnavailable("another worker has the Redis that the control topic names")
        if self._catalog.life is not named or self._connection.life != server.life or not self._connection.connected:
            raise StateUnavailable("another Redis came into use meanwhile")
        record = _successor(named, server)
        logger.warning(
            "action=distrust part=redis generation=%d run_id=%s before=%s evicted=%d adopt_from=%d",
            record.generation, record.redis_run_id, named.redis_run_id, record.evicted, record.adopt_from,
        )  # fmt: skip
        if not await self._catalog.name_life(record):
            raise StateUnavailable("another worker named another Redis meanwhile")

    # Claims: whether anybody has the named life.

    async def _is_held(self, named: GenerationRecord) -> bool:
        """Asks all workers; nobody who has the named life is silent for LIFE_S. Raises
        LogUnavailable.
        """
        token, answer = secrets.token_hex(8), asyncio.get_running_loop().create_future()
        self._asked[token] = answer
        try:
            await self._catalog.claim(ClaimRecord(token, named.generation, held=False, at_ms=now_ms()))
            await asyncio.wait({answer}, timeout=LIFE_S + MARGIN_S)
            await self._catalog.sync()
            return answer.done()
        finally:
            del self._asked[token]

    def _note_claim(self, claim: ClaimRecord) -> None:
        if claim.held:
            self._answered.append(claim.token)
            if (answer := self._asked.get(claim.token)) is not None and not answer.done():
                answer.set_result(None)
        elif claim.generation == self._catalog.generation and self._has_named():
            self._background.start(self._answer(claim), "answer_claim", awaited=True)

    async def _answer(self, claim: ClaimRecord) -> None:
        """Says that this worker has the named life, if its Redis answers and nobody said so."""
        await asyncio.sleep(random.random() / 10)
        async with asyncio.timeout(PING_S):
            await self._connection.call("PING")
        if claim.token not in self._answered and self._has_named():
            await self._catalog.claim(ClaimRecord(claim.token, claim.generation, held=True, at_ms=now_ms()))


def _successor(named: GenerationRecord, server: Server) -> GenerationRecord:
    """The record that names a server after `named`."""
    is_same = named.redis_run_id == server.run_id
    earlier = [run_id for run_id in named.earlier if run_id != server.run_id]
    if named.redis_run_id and not is_same:
        earlier.append(named.redis_run_id)
    generation = named.generation + 1
    # It has old memory, or lacks keys: what it has may look whole.
    is_old = server.run_id in named.earlier or server.evicted > (named.evicted if is_same else 0)
    adopt_from = generation if is_old else named.adopt_from
    return GenerationRecord(
        generation, server.run_id, now_ms(), server.promotion, server.evicted, adopt_from, earlier[-EARLIER:]
    )
