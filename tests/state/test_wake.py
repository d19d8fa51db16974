"""Wake-ups of a queue are heard whatever becomes of the connection, and nobody who asks for them
meets what fails there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
import redis.asyncio

from runtime.background import Background
from state.keys import wake_channel
from state.redis.wake import Wake
from tests.services import Services

NUMBER = 300


class Listening:
    """A subscriber, what it has heard, and a connection to the same server."""

    def __init__(self, url: str) -> None:
        self.prefix = f"w{secrets.token_hex(3)}"
        self.heard: list[tuple[str, int, int]] = []
        self.wake = Wake(url, self.prefix, "me", lambda *told: self.heard.append(told))
        self.client = redis.asyncio.Redis.from_url(url)

    async def until(self, *told: tuple[str, int, int]) -> None:
        end = asyncio.get_running_loop().time() + 10
        while missing := set(told) - set(self.heard):
            assert asyncio.get_running_loop().time() < end, f"not heard: {len(missing)}, as {min(missing)}"
            await asyncio.sleep(0.01)

    async def publish(self, queue: str, text: str) -> None:
        await self.client.publish(wake_channel(self.prefix, queue), text)

    async def cut(self) -> None:
        """Ends the connections of all subscribers of this server."""
        await self.client.client_kill_filter(_type="pubsub")


@pytest.fixture
async def listening(stack: Services) -> AsyncIterator[Listening]:
    one = Listening(stack.redis_url)
    await one.wake.start()
    await one.until(("", -1, 0))
    failures = Background.failures
    yield one
    await one.wake.stop()
    await one.client.aclose()
    assert Background.failures == failures, "a background task lost its exception"


async def test_who_asks_while_connections_are_cut_meets_nothing_and_all_is_heard(listening: Listening) -> None:
    cuts = asyncio.create_task(_cut_again_and_again(listening))
    for number in range(NUMBER):
        listening.wake.want(f"q{number}")
        await asyncio.sleep(0.003)
    cuts.cancel()
    await listening.until(*((f"q{number}", -1, 0) for number in range(NUMBER)))
    await listening.publish("q7", "3 another 5")
    await listening.until(("q7", 3, 5))


async def _cut_again_and_again(listening: Listening) -> None:
    while True:
        await listening.cut()
        await asyncio.sleep(0.02)


async def test_a_connection_that_says_nothing_is_followed_by_another(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening.wake.want("q")
    await listening.until(("q", -1, 0))
    monkeypatch.setattr("state.redis.wake.PING_S", 0.1)
    listening.heard.clear()
    await listening.cut()
    await listening.until(("q", -1, 0))  # with the short time from now on
    listening.heard.clear()
    await listening.client.client_pause(1_500)
    await listening.until(("q", -1, 0))


async def test_what_is_forgotten_or_of_this_worker_is_not_heard(listening: Listening) -> None:
    listening.wake.want("a")
    listening.wake.want("b")
    await listening.until(("a", -1, 0), ("b", -1, 0))
    listening.wake.forget("a")
    await asyncio.sleep(0.2)
    await listening.publish("a", "0 another 1")
    await listening.publish("b", "0 me 1")
    await listening.publish("b", "0 another 2")
    await listening.until(("b", 0, 2))
    assert [told for told in listening.heard if told[1] >= 0] == [("b", 0, 2)]
