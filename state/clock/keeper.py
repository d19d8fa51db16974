"""Keeps the clock of the service equal at all workers, whatever the clock of Redis does.

The time of the service is the clock of Redis and an offset, which is in Redis. Once a second each
worker compares that with its own clock, which goes on by itself. When they differ by more than
clocks drift, the clock of Redis was set, unless others say that it is right: then a worker writes
another offset, so that the time of the service goes on as before. See ADR 0040.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from math import copysign
from typing import NamedTuple

from runtime.background import Background
from runtime.cancel import cancel_all
from state.clock.boot import boot_s
from state.errors import StateError
from state.keys import clock_key
from state.redis.connection import Connection
from state.redis.script_caller import ScriptCaller

logger = logging.getLogger(__name__)

TICK_S = 1.0
# Until the first answer; then the clock is set by the best of some.
FIRST_TICK_S = 0.05
READS = 5
# An answer that came this soon needs no other: it is right to half of that.
GOOD_ROUND_S = 0.002
# A worker's clock and that of the service agree within so much; clocks of machines drift by less.
AGREE_MS = 250.0
DRIFT_MS_PER_S = 1.0
# An answer that took longer says nothing: Redis, this process or the network stood still.
MOST_ROUND_S = 0.5
# How long others have to say that the clock of Redis is right, before it counts as set.
DISPUTE_S = 2.5
# How long a clock has to be kept before it is a witness: before, it is a copy of Redis' clock.
WITNESS_S = 10.0
# How far a worker moves the time of the service in a tick towards the log's, when its own clock has
# followed.
STEP_MS = 10
# How long it counts what a worker knew of the log's clock.
LOG_KNOWN_S = 10.0
FOLLOWED_MS = 20.0


class Skews(NamedTuple):
    """How far other clocks are ahead of the time of the service (ms), at least; None = unknown."""

    redis: float | None
    log: float | None


class _Reading(NamedTuple):
    at_s: float
    round_s: float
    redis_ms: int
    offset: int
    version: int
    votes: int
    log: bytes
    log_at: int

    @property
    def service_ms(self) -> int:
        return self.redis_ms + self.offset


class ClockKeeper:
    """The clock of one connection, kept from `start` to `stop`. `tick` is for one task at a
    time.
    """

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._scripts = ScriptCaller(connection)
        self.clock = connection.clock
        self.clock.require()
        self._keys = (clock_key(prefix),)
        # When a reading fitted to our clock.
        self._agreed_at_s = 0.0
        # How far it may have been off then, and still is to be moved.
        self._doubt_ms = 0.0
        self._kept_since_s = 0.0
        self._dispute: _Reading | None = None
        self._offset: int | None = None
        self._log: tuple[float, float] | None = None
        self._log_at_s = 0.0
        self._background = Background()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the clock is set, or Redis does not answer: then it is set as soon as that
        does.
        """
        try:
            await self.tick()
        except StateError as error:
            logger.debug("action=clock error=%s", error)
        if self._task is None:
            self._task = self._background.keep(self._keep, "keep the clock")

    async def stop(self) -> None:
        task, self._task = self._task, None
        await cancel_all(task)

    def note_log(self, ahead_ms: float, error_ms: float) -> None:
        """Takes in how far the clock of the log is ahead of the time of the service, right to
        `error_ms`: the time of the service is moved towards it, and other workers hear of it.
        """
        self._log, self._log_at_s = (ahead_ms, error_ms), boot_s()
        self.clock.note_log(ahead_ms, error_ms)

    def _hear_of_log(self, read: _Reading) -> None:
        """Takes what another worker knows of the log's clock, for want of knowledge of its own."""
        if read.at_s - self._log_at_s < LOG_KNOWN_S and self._log is not None:
            return
        if read.log and abs(read.service_ms - read.log_at) < LOG_KNOWN_S * 1000:
            self._log = float(read.log), AGREE_MS
            self.clock.note_log(*self._log)

    @property
    def skews(self) -> Skews:
        ahead_ms, error_ms = self._log or (None, 0.0)
        log = None if ahead_ms is None else copysign(max(0.0, abs(ahead_ms) - error_ms), ahead_ms)
        return Skews(None if self._offset is None else -self._offset, log)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(TICK_S if self.clock.is_set else FIRST_TICK_S)
            try:
                await self.tick()
            except StateError as error:
                logger.debug("action=clock error=%s", error)

    async def tick(self, time_ms: int = 0) -> None:
        """Compares the clocks once. `time_ms` 0 = Redis' clock (others: tests). Raises
        StateError.
        """
        read = await self._soonest(time_ms)
        self._hear_of_log(read)
        if not self.clock.is_set:
            self.clock.take(read.at_s, read.service_ms)
            self._kept_since_s = read.at_s
            self._agree(read, read.round_s * 500)
            return
        if read.round_s > MOST_ROUND_S:
            return
        if read.version == 0:
            # Redis has lost it, or never had it: who knows the time for longer writes it first.
            if self._is_witness(read.at_s):
                await self._write(read, 0, self.clock.at_ms(read.at_s) - read.redis_ms)
            return
        # An answer is right to half of its round trip: what is less is no difference.
        error_ms = read.service_ms - self.clock.at_ms(read.at_s)
        error_ms = copysign(max(0.0, abs(error_ms) - read.round_s * 500), error_ms)
        if abs(error_ms) <= self._bound_ms(read.at_s):
            self._agree(read, abs(error_ms))
            self.clock.slew(error_ms)
            await self._follow_log(read, error_ms)
        else:
            await self._differ(read, error_ms)

    async def _soonest(self, time_ms: int) -> _Reading:
        """Returns the answer that came soonest of some: half of that is how wrong it may be."""
        reads = [await self._read(time_ms)]
        while len(reads) < READS and (not self.clock.is_set or reads[-1].round_s > GOOD_ROUND_S):
            reads.append(await self._read(time_ms))
        return min(reads, key=lambda read: read.round_s)

    def _bound_ms(self, at_s: float) -> float:
        return AGREE_MS + self._doubt_ms + (at_s - self._agreed_at_s) * DRIFT_MS_PER_S

    def _is_witness(self, at_s: float) -> bool:
        return at_s - self._kept_since_s >= WITNESS_S

    def _agree(self, read: _Reading, doubt_ms: float) -> None:
        self._agreed_at_s, self._dispute, self._offset = read.at_s, None, read.offset
        self._doubt_ms = doubt_ms

    async def _differ(self, read: _Reading, error_ms: float) -> None:
        """Either the clock of Redis was set, or ours has stood still (a machine that was suspended)
        or was taken from that of Redis too soon after it was set. Others know.
        """
        first = self._dispute
        if first is not None and read.votes != first.votes:
            self._give_in(read, error_ms)
        elif first is None or read.version != first.version:
            self._dispute = read
        elif read.at_s - first.at_s >= DISPUTE_S:
            logger.error(
                "action=clock_step part=redis by_ms=%.0f outcome=the time of the service goes on as before", error_ms
            )
            await self._write(read, read.version, read.offset - error_ms)

    def _give_in(self, read: _Reading, error_ms: float) -> None:
        logger.error("action=clock_set by_ms=%.0f reason=other workers agree on another time of the service", error_ms)
        self.clock.take(read.at_s, read.service_ms)
        self._kept_since_s = read.at_s
        self._agree(read, read.round_s * 500)

    async def _follow_log(self, read: _Reading, error_ms: float) -> None:
        """Moves the time of the service towards the log's, in small steps that every worker's clock
        can follow.
        """
        if self._log is None or abs(error_ms) > FOLLOWED_MS or not self._is_witness(read.at_s):
            return
        ahead_ms, wrong_ms = self._log
        if abs(ahead_ms) > wrong_ms + FOLLOWED_MS:
            await self._write(read, read.version, read.offset + (STEP_MS if ahead_ms > 0 else -STEP_MS))

    async def _write(self, read: _Reading, version: int, offset: float) -> None:
        """Replaces the offset, unless somebody else has: then the next tick sees that."""
        ours = secrets.randbits(48) + 1
        written = await self._read(read.redis_ms, version, round(offset), ours)
        if written.version == ours:
            self._agree(read._replace(offset=written.offset, version=ours), self._doubt_ms)

    async def _read(self, time_ms: int, version: int | str = "", offset: int = 0, replacement: int = 0) -> _Reading:
        """Reads the clock of Redis and the offset, and replaces that of `version`."""
        began_s = boot_s()
        votes = self.clock.is_set and version == "" and self._is_witness(began_s)
        ours, bound = (int(self.clock.at_ms(began_s)), int(self._bound_ms(began_s))) if votes else (0, 0)
        log = round(self._log[0]) if self._log is not None and began_s - self._log_at_s < LOG_KNOWN_S else ""
        reply = await self._scripts.run("clock", self._keys, (time_ms, ours, bound, version, offset, replacement, log))
        ended_s = boot_s()
        return _Reading((began_s + ended_s) / 2, ended_s - began_s, *reply[1:])
