"""A data folder of before control records were sealed and Kafka asked who comes: `leaseway up`
opens it, once, with its queues and messages; keys count when the operator has named them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import uuid
from base64 import b64encode
from pathlib import Path

import pytest

from engine.catalog.seal import Opened, Seal
from engine.engine import Engine
from engine.log import Headers, Record
from engine.settings import Settings
from engine.shapes import Principal, QueueSettings, SendEntry
from facade.stack import redis_server
from facade.stack.broker import answers
from facade.stack.data.broken import FORMATTED
from facade.stack.data.leftovers import MARK
from facade.stack.processes.child import Child, Program
from facade.stack.processes.ports import free_port
from facade.stack.processes.programs import broker_class_path, find_java
from facade.stack.processes.settings import BROKER_PROPERTIES, replication
from tests.conftest import StartUp
from tests.stack.test_guarded import call, plain, produce

BY = Principal("tester", admin=True)
SECRET, ADMIN = "r2Vb6-mD9kQ4xT7sLz1p", "c8Jn3-wE5hU0yA6gRf2t"


class Unsealed(Seal):
    """Writes and reads as the version of before."""

    def close(self, key: str, value: bytes | None, seen: int, at_ms: int, since: int | None = None) -> tuple[bytes | None, Headers]:
        return value, [("lw-seen", str(seen).encode())]

    def open(self, key: str, record: Record) -> Opened:
        return Opened(record.value or None, None)


def of_before(folder: Path) -> tuple[Program, Program, int]:
    """Kafka and Redis as they were, and Kafka's port."""
    (folder / "logs").mkdir(parents=True)
    cluster = "A" + b64encode(uuid.uuid4().bytes, altchars=b"-_").decode()[1:22]
    ports = {"kafka_port": free_port(), "controller_port": free_port(), "redis_port": free_port()}
    (folder / "stack.json").write_text(json.dumps({"format": 1, "cluster_id": cluster, **ports}))
    (folder / "secret").write_text(SECRET + "\n")
    (folder / "admin_secret").write_text(ADMIN + "\n")
    kafka, controller = f"PLAINTEXT://127.0.0.1:{ports['kafka_port']}", f"127.0.0.1:{ports['controller_port']}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"{kafka},CONTROLLER://{controller}",
        "advertised.listeners": kafka,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@{controller}",
        "log.dirs": str(folder / "kafka"),
        **BROKER_PROPERTIES,
        **replication(1),
    }
    file = folder / "kafka.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    java = (find_java(), "-Xmx512m", "-cp", broker_class_path())
    subprocess.run((*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(file)), check=True, capture_output=True)
    (folder / FORMATTED).touch()
    environment = {**os.environ, MARK: str(folder)}
    broker = Program(
        "Kafka",
        (*java, "kafka.Kafka", str(file)),
        environment,
        folder / "logs" / "kafka.out",
        lambda _pid: answers(ports["kafka_port"]),
        60,
        20,
    )
    redis = redis_server.program(folder, folder / "redis" / "redis.sock", environment, ports["redis_port"])
    return broker, redis, ports["kafka_port"]


def seal(folder: Path, *arguments: str) -> list[str]:
    """What `leaseway seal` prints, without a terminal."""
    command = (str(Path(sys.executable).with_name("leaseway")), "seal", "--data", str(folder), *arguments)
    environment = {name: value for name, value in os.environ.items() if name != "LEASEWAY_SECRET"}
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.splitlines()


@contextlib.asynccontextmanager
async def running(*programs: Program):  # type: ignore[no-untyped-def]  # a generator of nothing
    children = [Child(program, lambda: None, lambda text: None) for program in programs]
    try:
        await asyncio.gather(*(child.start() for child in children))
        yield
    finally:
        await asyncio.gather(*(child.stop() for child in children))


@pytest.fixture
def folder(programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data"
    kafka, redis, port = of_before(path)

    async def use() -> str:
        async with running(kafka, redis):
            settings = Settings(
                kafka_bootstrap=f"127.0.0.1:{port}",
                redis_url=redis_server.url_of(path / "redis" / "redis.sock"),
                secret=SECRET,
                auth="required",
                admin_key_secret=ADMIN,
            )
            engine = Engine(settings)
            await engine.start()
            try:
                await engine.create_queue(BY, "orders", QueueSettings())
                await engine.send(BY, "orders", [SendEntry(b"of before")])
                await engine.create_key(BY, "boss", "alice", "admin")
                _, secret = await engine.create_key(BY, "shop", "shop", "member")
                return secret
            finally:
                await engine.stop()

    with monkeypatch.context() as patched:
        patched.setattr("engine.catalog.catalog.Seal", Unsealed)
        (path / "shop").write_text(asyncio.run(use()))
    return path


def test_what_is_in_it_is_there_and_is_sealed_from_then_on(folder: Path, leaseway_up: StartUp) -> None:
    secret = (folder / "shop").read_text()
    (folder / "shop").unlink()
    shop = {"authorization": "Basic " + b64encode(f"shop:{secret}".encode()).decode()}
    admin = {"authorization": "Basic " + b64encode(f"admin:{ADMIN}".encode()).decode()}
    options = ("--auth", "required")
    for life in (1, 2):
        up = leaseway_up(*options, data=folder)
        up.wait_ready()
        assert ("2 keys, users and producer groups" in up.text) == (life == 1)
        status, found = call(up, "/v1/queues", headers=admin)
        assert status == 200 and found["queues"] == ["orders"]
        if life == 1:
            assert call(up, "/v1/queues", headers=shop)[0] == 401
            assert set(call(up, "/health", headers=admin)[1]["alarms"]) == {"control_refused"}
            shown = seal(folder)
            boss, mine = (next(line for line in shown if line.startswith(f"key/{key}@")) for key in ("boss", "shop"))
            assert "ADMINISTRATOR" in boss and "alice" in boss
            assert seal(folder, "--adopt", mine.split()[0], "--drop")[-1] == "# sealed again 0, adopted 1, dropped 1, left 0"
        else:
            assert call(up, "/health", headers=admin)[1]["alarms"] == {}
        assert call(up, "/v1/queues", headers=shop)[0] == 200
        refused = produce(plain(up), "lw.control", None, "queue/orders")
        assert refused is not None and refused.name() == "TOPIC_AUTHORIZATION_FAILED"
        assert json.loads((folder / "stack.json").read_text())["format"] == 2
        properties = (folder / "kafka.properties").read_text()
        assert ("plain.sasl.jaas.config" in properties.replace("controller.plain", "")) == (life == 1)
        assert up.stop() == 0
    up = leaseway_up(*options, data=folder)
    up.wait_ready()
    _, got = call(up, "/v1/queues/orders/receive", {"max": 1, "wait_seconds": 10}, headers=admin)
    assert [message["body"] for message in got["messages"]] == ["of before"]
