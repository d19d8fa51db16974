"""Attributes of queues: each dialect's are within the engine's ranges, and name a setting once."""

from __future__ import annotations

import pytest

from facade.attributes import Attribute
from facade.dialects.emq.queues.settings import ATTRIBUTES as EMQ
from facade.dialects.mns.queues.settings import ATTRIBUTES as MNS
from facade.dialects.sqs.wire.limits import LIMITS
from schemas.records.settings import TABLE, EffectiveSettings

SQS = {f"sqs-{name}": tuple(limits.attributes.values()) for name, limits in LIMITS.items()}
ROWS = {"emq": tuple(EMQ.values()), "mns": MNS, **SQS}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_no_range_is_wider_than_the_engines(rows: tuple[Attribute, ...]) -> None:
    for row in rows:
        low, high = row.given(row.low), row.given(row.high)
        assert TABLE[row.setting].low <= low < high <= TABLE[row.setting].high, row.name
        assert row.default == 0 or row.low <= row.default <= row.high
    assert len({row.setting for row in rows}) == len({row.name for row in rows}) == len(rows)


def test_a_setting_is_shown_in_the_units_of_the_dialect_rounded_down() -> None:
    row = Attribute("VisibilityTimeout", "lease_ms", 1000, 0, 43_200)
    assert (row.given(30), row.shown(EffectiveSettings(partitions=1, lease_ms=30_999))) == (30_000, 30)
