"""What others on this machine get of `leaseway up`: its port, messages of queues, the journal; and
nothing that confers power.
"""

from __future__ import annotations

import json
import socket
import stat
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Part
from confluent_kafka.admin import AclBindingFilter, AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewPartitions, NewTopic

from engine.log.client.local_rights import rights
from schemas.records import KeyRecord
from schemas.wire import encode
from tests.conftest import StartUp
from tests.services import Up

SECRETS = {"LEASEWAY_SECRET": "q7Lw2-pX9vT4zR8mKd3s", "LEASEWAY_ADMIN_KEY_SECRET": "n5Hs8-bY1cF6jW0eGu2a"}
AUTH = {"authorization": "Basic " + b64encode(f"admin:{SECRETS['LEASEWAY_ADMIN_KEY_SECRET']}".encode()).decode()}
REFUSED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module("--auth", "required", "--workers", "2", environment=SECRETS)
    started.wait_ready()
    call(started, "/v1/queues", {"name": "orders"})
    return started


def call(up: Up, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        up.endpoint + path, data, {"content-type": "application/json", **(headers or AUTH)}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def plain(up: Up) -> dict[str, Any]:
    """What a tool of another user of this machine knows."""
    return {"bootstrap.servers": up.run["kafka"]["bootstrap"], "log_level": 0}


def trusted(up: Up, **changes: str) -> dict[str, Any]:
    """What the owner of the folder knows."""
    return {**up.kafka_client, "log_level": 0, **changes}


def produce(options: dict[str, Any], topic: str, value: bytes | None, key: str | None = None) -> KafkaError | None:
    """Why a record was not taken."""
    told: list[KafkaError | None] = []
    producer = Producer({**options, "message.timeout.ms": 15_000})
    producer.produce(topic, value, key, on_delivery=lambda error, record: told.append(error))
    producer.flush(20)
    return told[0]


def read(options: dict[str, Any], topic: str, partition: int = 0) -> list[bytes]:
    """All values of a partition. Raises KafkaException."""
    consumer = Consumer({**options, "group.id": "tool", "enable.partition.eof": True})
    try:
        consumer.assign([Part(topic, partition, 0)])
        found: list[bytes] = []
        end = time.monotonic() + 20
        while time.monotonic() < end:
            record = consumer.poll(1)
            if record is None:
                continue
            error = record.error()
            if error is None:
                found.append(record.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise KafkaException(error)
        raise AssertionError(f"no end of {topic} within 20 s")
    finally:
        consumer.close()


def fetched(port: int, topic: str) -> int:
    """The error that a broker answers to a fetch; a client would ask for metadata first, and never
    send it.
    """
    name = topic.encode()
    body = struct.pack(">iiiibi", -1, 100, 0, 1_000_000, 0, 1) + struct.pack(">h", len(name)) + name
    request = struct.pack(">hhih", 1, 4, 7, -1) + body + struct.pack(">iiqi", 1, 0, 0, 1_000_000)
    with socket.create_connection(("127.0.0.1", port), 5) as asking, asking.makefile("rb") as answer:
        asking.settimeout(10)
        asking.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", answer.read(4))
        text = answer.read(size)
    # Correlation, throttle, one topic and its name, one partition and its number.
    at = 4 + 4 + 4 + 2 + len(name) + 4 + 4
    return int(struct.unpack(">h", text[at : at + 2])[0])


def forged() -> bytes:
    return encode(KeyRecord("evil", "known to me, all of it", "mallory", True, int(time.time() * 1000)))


def test_nobody_else_may_look_into_the_folder(up: Up) -> None:
    assert stat.S_IMODE(up.data.stat().st_mode) == 0o700
    for file in up.data.rglob("*"):
        mode = stat.S_IMODE(file.stat().st_mode)
        assert mode & 0o077 == 0, f"{file} has {mode:o}"
    assert Path(up.run["kafka"]["config"]).parent == up.data


def test_no_child_has_a_secret_in_its_environment_or_its_command(up: Up) -> None:
    run = up.run
    passwords = [(up.data / name).read_text().strip() for name in ("kafka_secret", "controller_secret")]
    for pid in (run["kafka"]["pid"], run["redis"]["pid"], *(one["pid"] for one in run["facades"])):
        seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert b"LW_STACK_FOLDER" in seen
        assert b"LEASEWAY_" not in seen
        for secret in (*SECRETS.values(), *passwords):
            assert secret.encode() not in seen
    assert not (up.data / "kafka.format").exists()
    for log in up.data.rglob("*.log"):
        for secret in (*SECRETS.values(), *passwords):
            assert secret.encode() not in log.read_bytes(), log


def test_redis_listens_at_no_port(up: Up) -> None:
    pid = up.run["redis"]["pid"]
    mine = {file.readlink().name for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()}
    sockets = {name.removeprefix("socket:[").removesuffix("]") for name in mine if name.startswith("socket:")}
    for table in ("tcp", "tcp6"):
        rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        assert not [row for row in rows if row.split()[9] in sockets]
    assert up.run["redis"]["url"].startswith("unix://")


def test_a_tool_without_a_password_uses_queues_and_reads_the_journal(up: Up) -> None:
    assert produce(plain(up), "lw.q.orders", b"from a tool") is None
    received: list[str] = []
    end = time.monotonic() + 20
    while not received and time.monotonic() < end:
        _, found = call(up, "/v1/queues/orders/receive", {"max": 1, "wait_seconds": 2})
        received += [message["body"] for message in found["messages"]]
    assert received == ["from a tool"]
    assert b"from a tool" in [value for partition in range(4) for value in read(plain(up), "lw.q.orders", partition)]
    # The lease is an entry.
    end = time.monotonic() + 20
    while not any(read(plain(up), "lw.journal", partition) for partition in range(4)):
        assert time.monotonic() < end
    assert read(plain(up), "lw.meter") is not None


@pytest.mark.parametrize("topic", ["lw.control", "lw.snapshot", "lw.half"])
def test_a_tool_without_a_password_neither_reads_nor_writes_what_confers_power(up: Up, topic: str) -> None:
    refused = produce(plain(up), topic, forged(), "key/evil")
    assert refused is not None and refused.code() in REFUSED
    port = int(up.run["kafka"]["bootstrap"].rpartition(":")[2])
    assert fetched(port, "lw.journal") == 0
    assert fetched(port, topic) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    shown = AdminClient(plain(up)).list_topics(topic, timeout=20).topics[topic].error
    assert shown is not None and shown.code() in REFUSED


def test_analytics_without_a_password_say_what_they_may_not_read(up: Up) -> None:
    """To Spark's source it is as if the topic was not there: every answer would be empty."""
    command = [
        sys.executable,
        "-m",
        "facade",
        "sql",
        "--bootstrap",
        up.run["kafka"]["bootstrap"],
        "SELECT * FROM audit",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "do not let us read lw.control" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_tool_without_a_password_changes_nothing_of_kafka(up: Up) -> None:
    admin = AdminClient(plain(up))
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "lw.q.orders", incremental_configs=[entry])
    asked: list[Any] = [
        *admin.create_topics([NewTopic("mine", 1, 1)]).values(),
        *admin.delete_topics(["lw.q.orders"]).values(),
        *admin.delete_topics(["lw.control"]).values(),
        *admin.create_partitions([NewPartitions("lw.q.orders", 9)]).values(),
        *admin.incremental_alter_configs([resource]).values(),
        *admin.delete_records([Part("lw.q.orders", 0, 0)]).values(),
        *admin.create_acls(rights("other")).values(),
        *admin.delete_consumer_groups(["lw.orders.default"]).values(),
    ]
    assert len(asked) > 7
    for future in asked:
        with pytest.raises(KafkaException) as caught:
            future.result(20)
        assert caught.value.args[0].code() in REFUSED
    assert admin.describe_acls(AclBindingFilter(*_anything())).result(20) == []


def _anything() -> tuple[Any, ...]:
    from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType, ResourceType  # type: ignore[attr-defined]

    return ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY


def test_the_listener_of_the_service_and_that_of_the_controller_ask_for_a_password(up: Up) -> None:
    options = trusted(up)
    assert options["sasl.mechanism"] == "SCRAM-SHA-256"
    assert AdminClient(options).list_topics("lw.control", timeout=20).topics["lw.control"].error is None
    for wrong in ({"sasl.password": "wrong"}, {"sasl.mechanism": "PLAIN"}, {"security.protocol": "PLAINTEXT"}):
        with pytest.raises(KafkaException):
            AdminClient({**options, **wrong}).list_topics("lw.control", timeout=4)
    identity = json.loads((up.data / "stack.json").read_text())
    assert described(identity["kafka_port"]) and not described(identity["service_port"])
    assert not described(identity["controller_port"])


def described(port: int) -> bool:
    """Whether a listener answers DescribeCluster (which needs no right) to who has not said who it
    is.
    """
    head = struct.pack(">hhih", 60, 1, 7, -1) + b"\0"
    for endpoint in (1, 2):  # brokers, controllers
        request = head + struct.pack(">bb", 0, endpoint) + b"\0"
        with socket.create_connection(("127.0.0.1", port), 5) as asking:
            asking.settimeout(5)
            asking.sendall(struct.pack(">i", len(request)) + request)
            answer = asking.recv(4)
            if answer and asking.recv(4) == struct.pack(">i", 7):
                return True
    return False


def test_a_key_that_is_forged_by_who_gets_in_all_the_same_opens_nothing(up: Up) -> None:
    """As the owner of the folder, who may write to the topic: the seal is what keeps them out."""
    assert produce(trusted(up), "lw.control", forged(), "key/evil") is None
    evil = {"authorization": "Basic " + b64encode(b"evil:known to me, all of it").decode()}
    end = time.monotonic() + 20
    while call(up, "/health")[1]["status"] != "alarm":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert call(up, "/health")[1]["alarms"] == {"control_refused": 1}
    for _ in range(10):  # whichever worker
        assert call(up, "/v1/keys", headers=evil)[0] == 401
        assert call(up, "/v1/keys")[0] == 200
