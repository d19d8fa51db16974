"""What a question about offsets does when the client can't ask just now."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from engine.errors import LogUnavailable
from engine.log.kafka_errors import BROKER_GONE
from engine.log.offsets import Offsets


class Asker:
    """A client that fails some times before it answers."""

    def __init__(self, *faults: int) -> None:
        self.faults = list(faults)

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        if self.faults:
            raise KafkaException(KafkaError(self.faults.pop(0), "Failed to get offsets"))
        return [TopicPartition(one.topic, one.partition, 7) for one in asked]

    def list_topics(self, topic: str | None = None, timeout: float = 0) -> Any:
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: None})})


def offsets(asker: Asker, threads: ThreadPoolExecutor) -> Offsets:
    found = Offsets({}, threads)
    found._asker = cast(Consumer, asker)
    return found


async def test_a_broker_that_the_client_let_go_of_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked: Any = offsets(Asker(BROKER_GONE, BROKER_GONE), threads)
        assert await asked.at([("t", 0)], -1) == {("t", 0): 7}
        assert offsets(Asker(BROKER_GONE), threads).end_of(("t", 0)) == 7
        with pytest.raises(LogUnavailable):
            await offsets(Asker(KafkaError.TOPIC_AUTHORIZATION_FAILED), threads).at([("t", 0)], -1)
