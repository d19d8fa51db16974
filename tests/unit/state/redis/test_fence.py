"""The fence before the state: which calls may begin, and which answers count."""

from __future__ import annotations

import pytest

from state.clock.boot import boot_s
from state.errors import StateLost, StateUnavailable
from state.redis.fence import Fence


async def silent() -> None:
    """Kafka says nothing."""


def test_one_that_is_not_set_up_lets_everything_through() -> None:
    assert Fence().admits("a")


async def test_only_the_life_that_it_was_opened_for_and_only_in_time() -> None:
    fence = Fence()
    fence.guard(silent)
    assert not fence.admits("a")
    fence.open("a", boot_s() + 60)
    assert fence.admits("a") and not fence.admits("b")
    with pytest.raises(StateLost):
        await fence.enter("ack", "b")
    fence.open("a", boot_s() - 0.001)
    with pytest.raises(StateUnavailable, match="did not confirm"):
        await fence.enter("ack", "a")


async def test_a_call_after_the_time_asks_first() -> None:
    fence = Fence()

    async def confirm() -> None:
        fence.extend(boot_s() + 60)

    fence.guard(confirm)
    fence.open("a", boot_s() - 1)
    await fence.enter("ack", "a")
    assert fence.admits("a")


async def test_an_answer_counts_only_while_its_life_is_the_one_in_use() -> None:
    fence = Fence()
    fence.guard(silent)
    fence.open("a", boot_s() + 60)
    turn = fence.turn
    await fence.leave("ack", "a", turn)
    fence.close()
    fence.open("a", boot_s() + 60)  # even if it is in use again
    with pytest.raises(StateUnavailable, match="another Redis"):
        await fence.leave("ack", "a", turn)
