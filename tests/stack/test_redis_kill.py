"""What the embedded redis-server answered is in its file, whenever it is killed.

With `appendfsync everysec` it would answer before it writes while it syncs: of twelve kills beside
a busy disk six lost 27 to 86 writes. `tests/outside` found that in CI, as acks that came again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from facade.programs.stack import redis_server

KILLS = 12
# Redis syncs once a second, if it does; it is killed amid that.
SYNCS_WITHIN_S = 1.3


@contextlib.contextmanager
def busy_disk(folder: Path) -> Iterator[None]:
    """Somebody else writes and syncs all the time, so that a sync of Redis takes a while."""
    ended = threading.Event()

    def write() -> None:
        with (folder / "noise").open("wb") as file:
            while not ended.is_set():
                file.seek(0)
                file.write(bytes(8 << 20))
                file.flush()
                os.fsync(file.fileno())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


class Server:
    """The redis-server of `up`, and what kills it."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        program = redis_server.program(folder, self.socket, dict(os.environ))
        self._process = subprocess.Popen(program.command, env=program.environment, stdout=subprocess.DEVNULL)
        self._wait_ready()

    def client(self) -> redis.Redis:
        """Give up at once when the server is gone."""
        return redis.Redis(unix_socket_path=str(self.socket), socket_timeout=10, retry=Retry(NoBackoff(), 0))

    def _wait_ready(self) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(redis.ConnectionError), self.client() as client:
                client.ping()
                return
            time.sleep(0.02)
        raise AssertionError("redis-server does not answer")

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self._process.kill()
        self._process.wait(20)

    def kill_amid_a_sync(self) -> None:
        """SIGKILL just after a sync began, or after the time in which one would have begun."""
        end = time.monotonic() + SYNCS_WITHIN_S
        try:
            with self.client() as client:
                while time.monotonic() < end and not client.info("persistence")["aof_pending_bio_fsync"]:
                    pass
            time.sleep(0.002)  # for writes that are answered meanwhile
        finally:
            self.kill()  # who writes goes on until then


def answered_writes(client: redis.Redis) -> int:
    """Count in a key until the server is gone; the last number that was answered."""
    last = 0
    with contextlib.suppress(redis.ConnectionError):
        while True:
            client.set("written", last + 1)
            last += 1
    return last


def lost_at_a_kill(folder: Path) -> int:
    """How many answered writes the file of a killed server lacks."""
    server = Server(folder)
    killer = threading.Thread(target=server.kill_amid_a_sync)
    with server.client() as client, busy_disk(folder):
        client.set("written", 0)
        killer.start()
        answered = answered_writes(client)
    killer.join()
    assert answered
    again = Server(folder)
    try:
        with again.client() as client:
            return max(0, answered - int(client.get("written") or 0))
    finally:
        again.kill()


def test_a_killed_redis_has_every_write_that_it_answered(tmp_path: Path) -> None:
    assert [lost_at_a_kill(tmp_path) for _ in range(KILLS)] == [0] * KILLS
