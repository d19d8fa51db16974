"""What Redis spends on a message that is loaded, received and acknowledged, by the size of groups,
with what stands before the scripts for the common case (state/lua/plain) and without, or with the
scripts of another checkout:

    .venv/bin/python -m benchmarks.scripts [--rounds 5] [--messages 4000] [--beside FOLDER]

Starts a redis-server of its own and asks it for its CPU time before and after; both ways take
turns. Talks to 127.0.0.1 only; ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from facade.programs.stack import redis_server
from facade.programs.stack.processes.child import Child
from state.keys import Unit
from state.packed import pack_body
from state.redis.connection import Connection
from state.redis.scripts import Script, read_script, read_scripts
from state.replies import LoadEntry, Window
from state.store import Store

GENERATION, TAG, FIRST = 1, 0, 5_000
GROUPS = (1, 2, 4, 16, 80)


async def cpu_s(connection: Connection) -> float:
    """CPU seconds of the server so far."""
    text: bytes = await connection.call("INFO", "cpu")
    facts = dict(line.split(":", 1) for line in text.decode().splitlines() if ":" in line)
    return float(facts["used_cpu_user"]) + float(facts["used_cpu_sys"])


async def cost_us(store: Store, connection: Connection, group: int, messages: int) -> float:
    """Microseconds of Redis for a message, in groups of so many."""
    unit = Unit(secrets.token_hex(6), 0)
    await store.upkeep.open(unit, GENERATION, [(TAG, FIRST)])
    before = await cpu_s(connection)
    for offset in range(FIRST, FIRST + messages, group):
        entry = LoadEntry(offset, pack_body(1, 1, None, b""), "1", count=group)
        await store.leases.load(unit, GENERATION, [TAG], [entry])
        got = await store.leases.receive(
            unit,
            GENERATION,
            TAG,
            max=group,
            lease_ms=None,
            queue_lease_ms=30_000,
            max_receive_count=3,
            retention_ms=10**13,
            move_ms=1,
        )
        done = await store.leases.ack(unit, GENERATION, TAG, [(one.offset, got.nonce) for one in got.leased])
        if len(got.leased) != group or set(done.words) != {"ok"}:
            raise RuntimeError(f"{len(got.leased)} of {group} leased, acks {set(done.words)}")
    return (await cpu_s(connection) - before) / messages * 1e6


def others(folder: Path | None) -> Mapping[str, Script]:
    """The scripts beside: of another checkout, or ours without the common case. The methods that
    call them are ours, so both have to take the same arguments.
    """
    if folder is None:
        return read_scripts(plain=False)
    return {path.stem: read_script(path) for path in sorted((folder / "state" / "lua").glob("*.lua"))}


async def measure(rounds: int, messages: int, beside: Path | None) -> dict[int, tuple[list[float], list[float]]]:
    """Group -> costs of ours and of those beside, one for each round."""
    found: dict[int, tuple[list[float], list[float]]] = {group: ([], []) for group in GROUPS}
    with tempfile.TemporaryDirectory(prefix="leaseway-scripts-") as folder:
        socket = Path(folder) / "redis.sock"
        child = Child(redis_server.program(Path(folder), socket, {}), lambda: None, lambda text: None)
        await child.start()
        connection = Connection(redis_server.url_of(socket))
        await connection.start()
        try:
            window = Window(8_000, 6_000_000)
            stores = (Store(connection, "ours", window), Store(connection, "beside", window, others(beside)))
            for turn in range(rounds):
                for group in GROUPS:
                    for which in (0, 1) if turn % 2 == 0 else (1, 0):
                        found[group][which].append(await cost_us(stores[which], connection, group, messages))
        finally:
            await connection.stop()
            await child.stop()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scripts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=4_000, help="in each run (default 4000)")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout")
    options = parser.parse_args()
    for group, (ours, beside) in asyncio.run(measure(options.rounds, options.messages, options.beside)).items():
        ratios = sorted(one / other for one, other in zip(ours, beside, strict=True))
        low, ratio, high = (ratios[len(ratios) * part // 4] for part in (1, 2, 3))
        print(
            f"groups of {group}: {statistics.median(ours):.1f} beside {statistics.median(beside):.1f} us of "
            f"Redis a message, {ratio:.3f}x (quarters {low:.3f} to {high:.3f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
