"""The log while its broker is killed: nothing acknowledged is lost, and it is soon back."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engine.errors import LogUnavailable
from engine.log import Appended, Log, TopicSpec
from facade.programs.stack import broker
from tests.services import Services, running_services
from tests.stopping import stand_still

pytestmark = pytest.mark.long

BACK_WITHIN_S = 2.0


@pytest.fixture(scope="module")
def stack(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A Kafka of its own, for it is killed: with the topics of all other tests it would take
    a minute to be back.
    """
    with running_services(tmp_path_factory.mktemp("own")) as services:
        yield services


@pytest.fixture
async def log(stack: Services) -> AsyncIterator[Log]:
    """A started log, stopped after the test."""
    log = Log(stack.bootstrap, send_timeout_ms=10_000)
    await log.start()
    yield log
    await log.stop()


class Traffic:
    """A writer and a reader of one partition that go on whatever happens, and when each last
    succeeded.
    """

    def __init__(self, log: Log, topic: str) -> None:
        self.log = log
        self.topic = topic
        self.acknowledged: list[bytes] = []
        self.read: list[bytes | None] = []
        self.appended_at = self.fetched_at = 0.0
        self.over = False

    async def write(self) -> None:
        number = 0
        while not self.over:
            number += 1
            value = b"%d" % number
            try:
                await self.log.append(self.topic, 0, value)
            except LogUnavailable:
                await asyncio.sleep(0.05)
            else:
                self.acknowledged.append(value)
                self.appended_at = time.monotonic()

    async def fetch(self) -> None:
        offset = 0
        while not self.over:
            try:
                chunk = await self.log.fetch(self.topic, 0, offset, 1000, 1 << 20, wait_ms=100)
            except LogUnavailable:
                await asyncio.sleep(0.05)
            else:
                assert chunk.next_offset >= offset
                offset = chunk.next_offset
                self.read += [record.value for record in chunk.records]
                if chunk.records:
                    self.fetched_at = time.monotonic()


async def test_a_killed_broker_loses_nothing_acknowledged_and_is_used_again_within_2_s(
    log: Log, stack: Services
) -> None:
    topic = f"log-{secrets.token_hex(6)}"
    port = int(stack.bootstrap.rsplit(":", 1)[1])
    await log.create_topics([TopicSpec(topic, 1, 1, {})])
    traffic = Traffic(log, topic)
    tasks = [asyncio.create_task(traffic.write()), asyncio.create_task(traffic.fetch())]
    await asyncio.sleep(0.5)

    os.kill(stack.kafka_pid, signal.SIGKILL)
    await asyncio.sleep(0.2)
    async with asyncio.timeout(60):
        # Answering is not leading: the broker counts as back when another client, new to it, can
        # append.
        while not await broker.answers(port):
            await asyncio.sleep(0.02)
        fresh = Log(stack.bootstrap, send_timeout_ms=30_000)
        await fresh.start()
        await fresh.append(topic, 0, b"fresh")
        back = time.monotonic()
        while min(traffic.appended_at, traffic.fetched_at) < back:
            assert time.monotonic() - back < BACK_WITHIN_S
            await asyncio.sleep(0.01)
        traffic.over = True
        await asyncio.gather(*tasks)
        await fresh.stop()

        assert await log.alive()
        kept = (await log.fetch(topic, 0, 0, 1_000_000, 1 << 28)).records
        assert [r.offset for r in kept] == list(range(len(kept)))
        assert set(traffic.acknowledged) <= {r.value for r in kept}
        assert traffic.read == [r.value for r in kept][: len(traffic.read)]
        assert (await log.end_offsets([(topic, 0)]))[topic, 0] == len(kept)
        await log.delete_topics([topic])


async def test_what_was_sent_beside_a_send_that_ran_out_of_time_is_stored_once(stack: Services) -> None:
    """The broker stands still, has taken both off the wire, and works them off after the first was
    given up.
    """
    topic = f"log-{secrets.token_hex(6)}"
    log = Log(stack.bootstrap, send_timeout_ms=2000)
    await log.start()
    await log.create_topics([TopicSpec(topic, 2, 1, {})])
    await asyncio.gather(log.append(topic, 0, b"first"), log.append(topic, 1, b"first"))
    async with asyncio.timeout(60):
        stand_still(stack.kafka_pid)
        try:
            while Path(f"/proc/{stack.kafka_pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # its threads stop one after the other
            began = time.monotonic()
            late = asyncio.ensure_future(log.append_many(topic, 0, [b"late"]))
            await asyncio.sleep(1.5)
            beside = asyncio.ensure_future(log.append_many(topic, 1, [b"beside"]))
            outcomes = [*await late, *await beside]
            assert 2 <= time.monotonic() - began < 4
            after = asyncio.ensure_future(log.append_many(topic, 1, [b"after"]))
            await asyncio.sleep(0.3)
        finally:
            os.kill(stack.kafka_pid, signal.SIGCONT)
        assert [type(outcome) for outcome in outcomes] == [LogUnavailable] * 2
        [stored] = await after
        assert isinstance(stored, Appended)
        await log.append(topic, 1, b"last")

        values = [r.value for r in (await log.fetch(topic, 1, 0, 1_000, 1 << 20)).records]
        assert (values.count(b"after"), values.count(b"last")) == (1, 1)
        assert values.count(b"beside") <= 1
    await log.delete_topics([topic])
    await log.stop()


APPENDS = """
import asyncio, sys
import uvloop
from engine.log import Log

async def main() -> None:
    log = Log(sys.argv[1], send_timeout_ms=3_000)
    await log.start()
    await log.append(sys.argv[2], 0, b"first")
    print("first", flush=True)
    sys.stdin.readline()
    second = asyncio.ensure_future(log.append(sys.argv[2], 0, b"second"))
    await asyncio.sleep(0.1)
    print("asked", flush=True)
    print((await second).offset, flush=True)
    await log.stop()

uvloop.run(main())
"""


async def test_a_log_that_was_stopped_reads_what_was_answered_meanwhile(log: Log, stack: Services) -> None:
    topic = f"log-{secrets.token_hex(6)}"
    await log.create_topics([TopicSpec(topic, 1, 1, {})])
    command = [sys.executable, "-c", APPENDS, stack.bootstrap, topic]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        try:
            assert child.stdout.readline() == "first\n"
            stand_still(stack.kafka_pid)
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "asked\n"
            stand_still(child.pid)
            os.kill(stack.kafka_pid, signal.SIGCONT)
            time.sleep(4.5)
            os.kill(child.pid, signal.SIGCONT)
            assert child.stdout.readline() == "1\n"
        finally:
            os.kill(stack.kafka_pid, signal.SIGCONT)
            child.kill()


STOPPED_CHILD = """
import asyncio, sys
from engine.errors import LogUnavailable
from engine.log import Log, admin

async def main() -> None:
    log = Log(sys.argv[1], send_timeout_ms=10_000)
    await log.start()
    await log.delete_groups(["nobody"])
    admin._REQUEST_S = 0.4
    print("ready", flush=True)
    end = asyncio.get_running_loop().time() + 60
    while asyncio.get_running_loop().time() < end:
        try:
            await log.delete_groups([f"nobody-{n}" for n in range(20)])
        except LogUnavailable:
            pass

asyncio.run(main())
"""


def test_a_process_that_is_stopped_amid_requests_to_coordinators_does_not_abort(stack: Services) -> None:
    """An assertion of librdkafka ended it when its own time-out and the answer met at waking."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", STOPPED_CHILD, stack.bootstrap],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(4)
    ]
    try:
        for child in children:
            assert child.stdout is not None and "ready" in child.stdout.readline()
        for turn in range(8):
            for child in children:
                time.sleep(0.003 * (turn % 4))
                stand_still(child.pid)
            time.sleep(0.7)
            for child in children:
                os.kill(child.pid, signal.SIGCONT)
            time.sleep(0.2)
        assert [child.poll() for child in children] == [None] * len(children)
    finally:
        for child in children:
            child.kill()
            child.communicate()
