"""When a request began, and until when it is answered."""

from __future__ import annotations

import asyncio
from time import monotonic_ns

from runtime.deadline import WAITED_S, began_ns


async def test_a_request_that_was_in_hand_before_began_then() -> None:
    now = monotonic_ns()
    assert began_ns() >= now and WAITED_S.get() == 0.0

    async def serve() -> int:
        WAITED_S.set(2.5)
        began = began_ns()
        return monotonic_ns() - began

    assert 2_500_000_000 <= await asyncio.create_task(serve()) < 2_600_000_000 + monotonic_ns() - now
    assert WAITED_S.get() == 0.0, "that is of one task"
