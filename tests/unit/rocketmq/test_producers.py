"""Producers that are asked about transactions: what they publish to, while they have a stream."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.errors import Overloaded
from engine.shapes import Check, Principal, TransactionInfo
from facade.dialects.rocketmq.clients import producers as module
from facade.dialects.rocketmq.clients.producers import MOST_TOPICS, Producers

BY = Principal("alice")


def check_of(queue: str, number: int = 1) -> Check:
    about = TransactionInfo("t", "prepared", queue, queue, "alice", 1, 1, number, 14, None, None, "", "", [])
    return Check(f"t-{number}", number, about, [])


class Checking:
    """The part of an engine that asks: gives the checks that a test puts in, by group."""

    def __init__(self) -> None:
        self.transactions = self
        self.open: dict[str, asyncio.Queue[list[Check]]] = {}
        self.unasked: list[str] = []
        self.waiting: set[str] = set()
        self.fails = 0

    async def check(self, by: Principal, producer_group: str, max: int, wait_ms: int) -> list[Check]:
        assert by == BY and wait_ms <= 60_000
        if self.fails:
            self.fails -= 1
            raise Overloaded
        self.waiting.add(producer_group)
        try:
            return await self.open.setdefault(producer_group, asyncio.Queue()).get()
        finally:
            self.waiting.discard(producer_group)

    def unchecked(self, checks: list[Check]) -> None:
        self.unasked += [check.id for check in checks]


class Asked:
    """What a client was asked; it breaks at the number `breaks_at`."""

    def __init__(self, breaks_at: int = 0) -> None:
        self.questions: list[tuple[str, int]] = []
        self._breaks_at = breaks_at

    async def __call__(self, topic: str, check: Check) -> None:
        if check.number == self._breaks_at:
            raise ConnectionError
        self.questions.append((topic, check.number))


@pytest.fixture
def engine() -> Checking:
    return Checking()


@pytest.fixture
def producers(engine: Checking) -> Producers:
    return Producers(engine)  # type: ignore[arg-type]


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_client_is_asked_about_what_it_publishes_to(producers: Producers, engine: Checking) -> None:
    asked = Asked()
    stream = producers.opened(BY, "c", asked)
    producers.publishes(BY, "c", {"orders.fifo": "orders"})
    producers.publishes(BY, "other", {"bills": "bills"})
    await settled()
    assert engine.waiting == {"orders.fifo"}
    engine.open["orders.fifo"].put_nowait([check_of("orders.fifo", 1), check_of("orders.fifo", 2)])
    engine.open["orders.fifo"].put_nowait([check_of("orders.fifo", 3)])
    await settled()
    assert asked.questions == [("orders", 1), ("orders", 2), ("orders", 3)]
    await producers.closed(BY, "c", stream)
    assert engine.waiting == set()


async def test_a_stream_that_is_opened_again_is_asked_before_it_says_anything(
    producers: Producers, engine: Checking
) -> None:
    first = producers.opened(BY, "c", Asked())
    producers.publishes(BY, "c", {"q": "q"})
    await producers.closed(BY, "c", first)
    second = producers.opened(BY, "c", Asked())
    await settled()
    assert engine.waiting == {"q"}
    await producers.closed(BY, "c", first)  # an older one: the newer one stays
    producers.publishes(BY, "c", {"r": "r"})
    await settled()
    assert engine.waiting == {"q", "r"}
    await producers.closed(BY, "c", second)


async def test_what_was_not_asked_is_given_back(producers: Producers, engine: Checking) -> None:
    asked = Asked(breaks_at=2)
    stream = producers.opened(BY, "c", asked)
    producers.publishes(BY, "c", {"q": "q"})
    await settled()
    engine.open["q"].put_nowait([check_of("q", number) for number in (1, 2, 3)])
    await settled()
    assert asked.questions == [("q", 1)] and engine.unasked == ["t-2", "t-3"]
    await producers.closed(BY, "c", stream)


async def test_an_engine_that_cant_answer_is_asked_again(
    producers: Producers, engine: Checking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0)
    engine.fails = 2
    stream = producers.opened(BY, "c", Asked())
    producers.publishes(BY, "c", {"q": "q"})
    await settled()
    assert engine.waiting == {"q"}
    await producers.closed(BY, "c", stream)


async def test_topics_and_clients_are_bounded(
    producers: Producers, engine: Checking, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = producers.opened(BY, "c", Asked())
    producers.publishes(BY, "c", {f"q{number}": "q" for number in range(MOST_TOPICS + 5)})
    producers.publishes(BY, "c", {"more": "more"})
    await settled()
    assert len(engine.waiting) == MOST_TOPICS
    await producers.closed(BY, "c", stream)
    monkeypatch.setattr(module, "_MOST_KNOWN", 3)
    for number in range(10):
        producers.publishes(BY, f"d{number}", {"q": "q"})
    known: Any = producers._topics
    assert len(known) == 3
