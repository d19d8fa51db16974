"""A real Valkey whose clock is set while it runs, beside two keepers of the time of the service."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import monotonic

import pytest
import redis

import state.clock.keeper
from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.programs import find_redis_server
from state.clock.boot import boot_s
from state.clock.keeper import TICK_S, ClockKeeper
from state.keys import Unit
from state.redis.connection import Connection
from state.replies import Window
from state.store import Store
from tests.faults.set_clock import NoCompilerError, SetClock, built

# A keeper is a witness after that long here.
WITNESS_S = 1.0
NOTICED_S = 60.0


@pytest.fixture
def wall(programs: None, tmp_path: Path) -> SetClock:
    try:
        return SetClock(built(tmp_path), tmp_path / "redis.clock")
    except NoCompilerError as error:
        pytest.skip(str(error))


@pytest.fixture
def url(wall: SetClock, tmp_path: Path) -> Iterator[str]:
    port = free_port()
    command = (find_redis_server(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    server = subprocess.Popen(command, env=wall.environment, stdout=subprocess.DEVNULL)
    yield f"redis://127.0.0.1:{port}/0"
    server.kill()
    server.wait()


async def connected(url: str) -> Connection:
    connection = Connection(url)
    while not connection.connected:
        await connection.start()
        await asyncio.sleep(0.05)
    return connection


@pytest.fixture
async def keepers(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[ClockKeeper]]:
    monkeypatch.setattr(state.clock.keeper, "WITNESS_S", WITNESS_S)
    keepers = [ClockKeeper(await connected(url), "lw") for _ in range(2)]
    for keeper in keepers:
        await keeper.start()
    await asyncio.sleep(WITNESS_S + 2 * TICK_S)
    yield keepers
    for keeper in keepers:
        await keeper.stop()
        await keeper._scripts._connection.stop()


@pytest.mark.long
@pytest.mark.parametrize("step_s", [300, -300, 61])
async def test_the_time_of_the_service_goes_on_when_valkeys_clock_is_set(
    wall: SetClock, url: str, keepers: list[ClockKeeper], step_s: int
) -> None:
    one, _ = keepers
    began_s, began_ms = boot_s(), one.clock.now_ms()
    store = Store(one._scripts._connection, "lw", Window(10, 1000))
    unit = Unit("0" * 12, 0)
    assert (await store.upkeep.own(unit, "owner", lease_ms=100_000)).ours
    wall.step(step_s)
    with redis.Redis.from_url(url) as client:
        seconds, _ = client.time()
    assert abs(seconds - began_ms / 1000 - step_s) < 10, "its clock was set, while it runs"
    until = monotonic() + NOTICED_S
    while any(abs((keeper.skews.redis or 0) - step_s * 1000) > 500 for keeper in keepers):
        assert monotonic() < until, "nobody has noticed"
        for keeper in keepers:
            went_ms, passed_s = keeper.clock.now_ms() - began_ms, boot_s() - began_s
            assert abs(went_ms - passed_s * 1000) < 250
        assert not (await store.upkeep.own(unit, "heir", lease_ms=1)).ours
        await asyncio.sleep(0.1)
    late = ClockKeeper(await connected(url), "lw")
    await late.start()
    assert abs(late.clock.now_ms() - one.clock.now_ms()) < 250
    await late.stop()
    await late._scripts._connection.stop()
