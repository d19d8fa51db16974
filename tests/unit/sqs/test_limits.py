"""The ranges of SQS that depend on a setting, and batches within the engine's
(tests/unit/facade/test_attributes.py has the ranges).
"""

from __future__ import annotations

import pytest

from engine.rules import limits as engine
from facade.dialects.sqs.wire.limits import LIMITS, Limits


def test_two_ranges_depend_on_the_setting() -> None:
    aws, wide = LIMITS["aws"].attributes, LIMITS["wide"].attributes
    assert [(rows["DelaySeconds"].low, rows["DelaySeconds"].high) for rows in (aws, wide)] == [(0, 900), (0, 2_592_000)]
    assert [rows["ReceiveMessageWaitTimeSeconds"].high for rows in (aws, wide)] == [20, 60]
    assert {name for name in aws if aws[name] != wide[name]} == {"DelaySeconds", "ReceiveMessageWaitTimeSeconds"}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_no_batch_is_larger_than_the_engines(limits: Limits) -> None:
    assert limits.batch <= engine.MAX_BATCH and limits.batch_bytes <= engine.MAX_BATCH_BYTES
