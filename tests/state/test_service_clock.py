"""The time of the service goes on at every worker whatever the clock of Redis does, and what stands
still is not taken for a clock that was set. Redis is real; its clock and that of the machine are
given here.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator

import pytest
import redis

import state.clock.keeper
import state.clock.service_clock
from state.clock.keeper import AGREE_MS, ClockKeeper
from state.clock.service_clock import SLEW, ServiceClock
from state.errors import StateUnavailable
from state.keys import Unit, clock_key
from state.redis.connection import Connection
from state.redis.scripts import FOLDER, read_scripts
from state.replies import Window
from state.store import Store
from tests.services import Services

T0 = 1_700_000_000_000


class Machine:
    """The clock of the machine that nobody sets, and that of Redis, which is set by `step`."""

    def __init__(self) -> None:
        self.boot = 1000.0
        self.step_ms = 0
        self.prefix = f"c{secrets.token_hex(3)}"
        self.url = ""
        self.connections: list[Connection] = []

    def boot_s(self) -> float:
        return self.boot

    @property
    def redis_ms(self) -> int:
        return int(T0 + (self.boot - 1000) * 1000) + self.step_ms

    @property
    def true_ms(self) -> int:
        """What the clock of Redis would show if nobody had set it."""
        return self.redis_ms - self.step_ms

    async def worker(self) -> ClockKeeper:
        """One that has just been started."""
        connection = Connection(self.url)
        await connection.start()
        self.connections.append(connection)
        keeper = ClockKeeper(connection, self.prefix)
        await keeper.tick(self.redis_ms)
        return keeper

    async def run(self, seconds: float, *keepers: ClockKeeper) -> None:
        for _ in range(int(seconds)):
            self.boot += 1.0
            for keeper in keepers:
                await keeper.tick(self.redis_ms)

    def wrong_ms(self, keeper: ClockKeeper) -> float:
        return keeper.clock.at_ms(self.boot) - self.true_ms


@pytest.fixture
async def machine(stack: Services, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Machine]:
    machine = Machine()
    machine.url = stack.redis_url
    monkeypatch.setattr(state.clock.keeper, "boot_s", machine.boot_s)
    monkeypatch.setattr(state.clock.service_clock, "boot_s", machine.boot_s)
    yield machine
    for connection in machine.connections:
        await connection.stop()


@pytest.mark.parametrize("step_ms", [300_000, -300_000, 61_000, -2_000, 400])
async def test_the_time_goes_on_when_the_clock_of_redis_is_set(
    machine: Machine, step_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = await machine.worker(), await machine.worker()
    await machine.run(20, one, two)
    machine.step_ms = step_ms
    for _ in range(20):
        await machine.run(1, one, two)
        assert abs(machine.wrong_ms(one)) < 2 and abs(machine.wrong_ms(two)) < 2
    late = await machine.worker()
    assert abs(machine.wrong_ms(late)) < 2, "a worker that is started afterwards has the time of the others"
    assert one.skews.redis == two.skews.redis == pytest.approx(step_ms, abs=2)
    assert caplog.text.count("action=clock_step") == 1
    assert "clock_set" not in caplog.text


@pytest.mark.parametrize("pause_s", [0, 1, 2, 3, 4, 5])
async def test_the_time_goes_on_when_the_clock_is_set_again_before_all_have_followed(
    machine: Machine, pause_s: int
) -> None:
    """Found by the harness: one worker had mended a step, the other not looked yet."""
    one, two = await machine.worker(), await machine.worker()
    await machine.run(20, one, two)
    for step_ms in (300_000, 0, -300_000, 61_000):
        machine.step_ms = step_ms
        await machine.run(pause_s, one, two)
        machine.boot += 0.5
        await one.tick(machine.redis_ms)
        machine.step_ms = 300_000 - step_ms
        await machine.run(pause_s, two, one)
        assert abs(machine.wrong_ms(one)) < 2 and abs(machine.wrong_ms(two)) < 2
    await machine.run(6, one, two)
    assert one.skews.redis == two.skews.redis == pytest.approx(machine.step_ms, abs=2)


async def test_a_worker_that_is_alone_is_witness_enough(machine: Machine) -> None:
    one = await machine.worker()
    await machine.run(20, one)
    machine.step_ms = 300_000
    await machine.run(5, one)
    assert abs(machine.wrong_ms(one)) < 2
    assert abs(machine.wrong_ms(await machine.worker())) < 2


async def test_a_clock_that_stood_still_takes_the_time_of_the_others(machine: Machine) -> None:
    """A machine that was suspended: the clock that nobody sets has stood still too."""
    one, two = await machine.worker(), await machine.worker()
    await machine.run(20, one, two)
    one.clock.take(machine.boot, machine.true_ms - 60_000)
    await machine.run(5, one, two)
    assert abs(machine.wrong_ms(one)) < 2 and abs(machine.wrong_ms(two)) < 2
    assert one.skews.redis == two.skews.redis == pytest.approx(0, abs=2)


async def test_a_worker_that_has_just_started_is_no_witness(machine: Machine) -> None:
    """One that was started after the clock was set, before anybody has noticed that."""
    one = await machine.worker()
    await machine.run(20, one)
    machine.step_ms = 300_000
    late = await machine.worker()
    await machine.run(6, one, late)
    assert abs(machine.wrong_ms(one)) < 2 and abs(machine.wrong_ms(late)) < 2


async def test_an_answer_that_took_long_says_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis, or this process, stood still for nine seconds: with the answer on its way."""
    one = await machine.worker()
    await machine.run(20, one)
    before = one.skews
    for stands_s in (9.0, 0.6):
        said = [machine.boot, machine.boot + stands_s]
        monkeypatch.setattr(state.clock.keeper, "boot_s", lambda said=said: said.pop(0) if said else machine.boot)
        await one.tick(machine.redis_ms)
        machine.boot += stands_s
        monkeypatch.setattr(state.clock.keeper, "boot_s", machine.boot_s)
    await machine.run(5, one)
    assert abs(machine.wrong_ms(one)) < 2
    assert one.skews == before


async def test_redis_that_lost_it_gets_the_time_again(machine: Machine, stack: Services) -> None:
    one = await machine.worker()
    await machine.run(20, one)
    machine.step_ms = -300_000
    await machine.run(5, one)
    with redis.Redis.from_url(stack.redis_url) as client:
        client.delete(clock_key(machine.prefix))
    late = await machine.worker()
    await machine.run(12, late, one)
    assert abs(machine.wrong_ms(one)) < 2, "who knows the time writes it, not who has just come"
    assert abs(machine.wrong_ms(late)) < 2


async def test_the_clock_follows_small_differences_slowly_and_never_goes_back(machine: Machine) -> None:
    one = await machine.worker()
    await machine.run(20, one)
    machine.step_ms = -int(AGREE_MS) + 20
    seen, boot = [one.clock.now_ms()], machine.boot
    for _ in range(30):
        await machine.run(1, one)
        seen.append(one.clock.now_ms())
    assert all((1 - 2 * SLEW) * 1000 <= after - before <= 1001 for before, after in itertools.pairwise(seen))
    assert abs(one.clock.at_ms(machine.boot) - machine.redis_ms) < 2
    assert machine.boot - boot == 30


async def test_two_workers_follow_the_log_together_and_slowly(machine: Machine) -> None:
    one, two = await machine.worker(), await machine.worker()
    ahead_ms, before = 2_000.0, machine.true_ms
    for second in range(260):
        for keeper in (one, two):
            keeper.note_log(machine.true_ms + ahead_ms - keeper.clock.at_ms(machine.boot), 5.0)
        wrong = machine.wrong_ms(one)
        await machine.run(1, one, two)
        assert -1 <= machine.wrong_ms(one) - wrong <= 1000 * SLEW + 1, second
        assert abs(machine.wrong_ms(one) - machine.wrong_ms(two)) < 30
    assert machine.wrong_ms(one) == pytest.approx(ahead_ms, abs=50)
    assert machine.true_ms - before == 260_000


def test_a_clock_moves_by_no_more_than_it_was_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [50.0]
    monkeypatch.setattr(state.clock.service_clock, "boot_s", lambda: now[0])
    clock = ServiceClock()
    clock.take(50.0, 1_000_000.0)
    clock.slew(30.0)
    assert clock.at_ms(51.0) == pytest.approx(1_001_010)
    assert clock.at_ms(60.0) == pytest.approx(1_010_030), "though nobody has looked for ten seconds"
    clock.slew(-30.0)
    now[0] = 52.0
    clock.slew(-30.0)
    assert clock.at_ms(53.0) == pytest.approx(1_000_000 + 3000 - 20 - 10)


async def test_nothing_is_decided_before_the_time_is_known(machine: Machine, stack: Services) -> None:
    connection = Connection(stack.redis_url)
    await connection.start()
    machine.connections.append(connection)
    keeper, store = ClockKeeper(connection, machine.prefix), Store(connection, machine.prefix, Window(10, 1000))
    unit = Unit(secrets.token_hex(6), 0)
    with pytest.raises(StateUnavailable):
        await store.upkeep.own(unit, "w", lease_ms=1000)
    await keeper.tick(machine.redis_ms - 5_000_000)
    epoch = (await store.upkeep.own(unit, "w", lease_ms=1000)).number
    assert epoch == machine.true_ms - 5_000_000, "scripts have the time of the service, not that of Redis"


def test_every_script_that_needs_the_time_is_given_it() -> None:
    scripts = read_scripts().values()
    assert [script.name for script in scripts if "redis.call('TIME')" in script.source and script.now_at < 0] == [
        "clock"
    ]
    assert [path.name for path in (FOLDER / "include").glob("*.lua") if "TIME'" in path.read_text()] == ["clock.lua"]
