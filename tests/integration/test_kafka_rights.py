"""The ACLs that docs/how-to/secure.md gives, on a broker with an authoriser: enough for the
service, and no more than is said for others.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from engine.engine import Engine
from schemas.records.settings import QueueSettings
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, ack, eventually, receive, send
from tests.own_kafka import set_password
from tests.services import Services

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "secure.md"
PASSWORD = "t6Yw0-gM3nB8kX5dQz1r"


def documented(prefix: str, suffix: str) -> list[AclBinding]:
    """What the commands of the page do, for another prefix, and users of other names: `leaseway` is
    a super user of the embedded Kafka.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--topic")
    parser.add_argument("--group")
    parser.add_argument("--resource-pattern-type", default="literal")
    found = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("acls --"):
            given = parser.parse_args(shlex.split(line)[1:])
            name = (given.topic or given.group).replace("lw.", f"{prefix}.")
            kind = ResourceType.TOPIC if given.topic else ResourceType.GROUP
            pattern = ResourcePatternType[given.resource_pattern_type.upper()]
            found += [
                AclBinding(
                    kind,
                    name,
                    pattern,
                    given.allow_principal + suffix,
                    "*",
                    AclOperation[one.upper()],
                    AclPermissionType.ALLOW,
                )
                for one in given.operation
            ]
    return found


@pytest.fixture
async def own(make_engine: MakeEngine, stack: Services, tmp_path: Path) -> tuple[Engine, str]:
    """A service that is a user as the page says, and what the names of its users end with."""
    prefix = (await make_engine()).settings.topic_prefix + "a"
    admin: dict[str, Any] = {"bootstrap.servers": stack.bootstrap}
    for user in ("leaseway", "tools", "reports"):
        set_password(admin, f"{user}-{prefix}", PASSWORD)
    acls = documented(prefix, f"-{prefix}")
    assert {acl.principal for acl in acls} == {f"User:{user}-{prefix}" for user in ("leaseway", "tools", "reports")}
    client = AdminClient(admin)  # kept in a name: else it is gone before its answer is there
    for future in client.create_acls(acls).values():
        future.result(20)
    file = tmp_path / "kafka.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
        "org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'  username="leaseway-{prefix}" \\\n  password="{PASSWORD}";\n'
    )
    engine = await make_engine(
        topic_prefix=prefix, kafka_config=str(file), kafka_bootstrap=f"127.0.0.1:{stack.service_port}"
    )
    return engine, f"-{prefix}"


def told(stack: Services, user: str, topic: str) -> str:
    """What a user hears who produces to a topic: "" = it was taken."""
    options: dict[str, Any] = {
        "bootstrap.servers": f"127.0.0.1:{stack.service_port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": PASSWORD,
        "message.timeout.ms": 15_000,
        "log_level": 0,
    }
    heard: list[str] = []
    producer = Producer(options)
    producer.produce(topic, b"x", on_delivery=lambda error, record: heard.append("" if error is None else error.name()))
    producer.flush(20)
    return heard[0]


async def test_the_rights_of_the_page_are_enough_for_all_that_the_service_does(
    own: tuple[Engine, str], stack: Services
) -> None:
    engine, _ = own
    assert await engine.ready() == {"kafka": "ok", "redis": "ok"}
    await engine.queues.create_queue(BY, "q", QueueSettings(partitions=2))
    await engine.queues.set_queue(BY, "q", QueueSettings(retention_ms=3_600_000))
    await engine.callers.create_key(BY, "k", "alice", "member")
    await engine.queues.create_tag(BY, "q", "t", 0, None, {})
    await send(engine, "q", "a", "b")
    await ack(engine, "q", await receive(engine, "q", wait_ms=5_000))
    await send(engine, "q", "far", delay_ms=3_600_000)
    await engine.parts.base.snapshots.run_once()
    await engine.parts.administration.watch.alarm_monitor.run_once()
    await engine.queues.purge(BY, "q")
    await engine.queues.delete_queue(BY, "q")

    async def gone() -> bool:
        return await engine.log.partition_count(f"{engine.settings.topic_prefix}.q.q") is None

    await eventually(gone)
    assert engine.alerts.alarms() == []


async def test_others_get_what_the_page_says(own: tuple[Engine, str], stack: Services) -> None:
    engine, suffix = own
    prefix = engine.settings.topic_prefix
    await engine.queues.create_queue(BY, "q", QueueSettings())
    assert told(stack, f"tools{suffix}", f"{prefix}.q.q") == ""
    for user, topic in (
        ("tools", "control"),
        ("tools", "journal"),
        ("tools", "snapshot"),
        ("reports", "control"),
        ("reports", "q.q"),
    ):
        assert told(stack, f"{user}{suffix}", f"{prefix}.{topic}") == "TOPIC_AUTHORIZATION_FAILED"
