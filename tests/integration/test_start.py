"""The start of a worker: what it waits for, on a real broker."""

from __future__ import annotations

import asyncio
import logging
import secrets

import pytest

from engine.engine import Engine
from engine.errors import LogUnavailable
from engine.settings import Settings
from facade.programs.stack.processes.ports import free_port
from tests.services import Services
from tests.stack.test_serve_and_jars import forwarded


def waits(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        text for record in caplog.records if (text := record.getMessage()).startswith("action=start outcome=waiting")
    ]


async def test_the_setting_covers_the_whole_start_and_not_the_first_answer_only(
    stack: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A Kafka that took the connection and was slow then ended the worker."""
    monkeypatch.setattr("engine.log.offsets._REQUEST_S", 0.3)
    late = free_port()
    engine = Engine(
        Settings(
            kafka_bootstrap=f"127.0.0.1:{late}",
            redis_url=stack.redis_url,
            topic_prefix=f"t{secrets.token_hex(4)}",
            start_wait_s=300,
        )
    )
    with caplog.at_level(logging.WARNING, "engine.log.client.patience"):
        starting = asyncio.create_task(engine.start())
        while not waits(caplog):
            assert not starting.done(), starting.exception()
            await asyncio.sleep(0.05)
        monkeypatch.setattr("engine.log.offsets._REQUEST_S", 10.0)
        with forwarded(late, int(stack.bootstrap.rpartition(":")[2])):
            await starting
            await engine.stop()


async def test_what_kafka_says_while_it_gets_ready_is_asked_again(
    stack: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two copies on one broker: what a broker says, too, while all others are fenced."""
    monkeypatch.setattr("engine.log.client.patience.NOT_READY_S", 2.0)
    settings = Settings(
        kafka_bootstrap=stack.bootstrap,
        redis_url=stack.redis_url,
        topic_prefix=f"t{secrets.token_hex(4)}",
        replication_factor=2,
    )
    engine = Engine(settings)
    with (
        caplog.at_level(logging.WARNING, "engine.log.client.patience"),
        pytest.raises(LogUnavailable, match="INVALID_REPLICATION_FACTOR"),
    ):
        await engine.start()
    await engine.stop()
    assert waits(caplog)
