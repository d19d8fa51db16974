"""How far verbs go through the engine; the bars are those of `python -m benchmarks.house`."""

from __future__ import annotations

from benchmarks.house.bars import of_trips
from benchmarks.house.trip import trips
from tests.services import Services


async def test_no_verb_passes_more_rooms_and_rules_than_it_may(stack: Services) -> None:
    bars = of_trips(await trips(stack.bootstrap, stack.redis_url))
    assert len(bars) > 15
    assert [bar.told() for bar in bars if not bar.holds()] == []
