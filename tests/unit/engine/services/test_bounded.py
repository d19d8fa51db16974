"""Every verb is answered in time: a bound around it, or times of its own."""

from __future__ import annotations

import asyncio

import pytest

from engine.errors import LogUnavailable
from engine.gate import bounded
from tests.verbs import verbs

# Verbs with times of their own: `until` of a send, the wait that a receive names, the calls of
# Redis that the others are (and what those two wait for is bounded where it is waited for).
OWN_TIMES = {"send", "receive", "check", "ack", "extend", "release", "record", "list_queues", "list_transactions"}
# Read from memory.
OWN_TIMES |= {"get_redrive_policy"}


def test_each_verb_of_the_engine_is_bounded() -> None:
    assert {name for name, verb in verbs().items() if not hasattr(verb, "__wrapped__")} == OWN_TIMES


class Verbs:
    """Verbs of which one takes until it is `let`; `ended` tells how."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @bounded(0.05)
    async def slow(self, text: str) -> str:
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.ended.set_result("cancelled")
            raise
        self.ended.set_result(text)
        return text

    @bounded(60)
    async def quick(self, text: str) -> str:
        if not text:
            raise LogUnavailable("nothing is given")
        return text


async def test_a_verb_that_takes_too_long_is_answered_and_goes_on() -> None:
    verbs = Verbs()
    with pytest.raises(LogUnavailable, match=r"slow took longer than 0\.05 s"):
        await verbs.slow("all of it")
    assert not verbs.ended.done()
    verbs.let.set()
    assert await verbs.ended == "all of it"


async def test_a_verb_in_time_answers_as_it_is() -> None:
    assert await Verbs().quick("x") == "x"
    with pytest.raises(LogUnavailable, match="nothing is given"):
        await Verbs().quick("")


async def test_a_verb_whose_caller_goes_is_cancelled() -> None:
    verbs = Verbs()
    task = asyncio.ensure_future(verbs.slow("x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await verbs.ended == "cancelled"
