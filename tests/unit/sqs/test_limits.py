"""The ranges of SQS are never wider than the engine's, whatever the setting."""

from __future__ import annotations

import pytest

from engine.rules import limits as engine
from facade.sqs.wire.limits import ATTRIBUTE_RANGES, LIMITS, Limits


def test_a_range_is_that_of_the_attribute_and_two_depend_on_the_setting() -> None:
    assert LIMITS["aws"].attribute("DelaySeconds") == (0, 900)
    assert LIMITS["wide"].attribute("DelaySeconds") == (0, 2_592_000)
    assert [LIMITS[name].attribute("ReceiveMessageWaitTimeSeconds") for name in ("aws", "wide")] == [(0, 20), (0, 60)]
    for name, bounds in ATTRIBUTE_RANGES.items():
        assert LIMITS["aws"].attribute(name) == LIMITS["wide"].attribute(name) == bounds


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_no_range_is_wider_than_the_engines(limits: Limits) -> None:
    assert limits.delay_s * 1000 <= engine.RANGES["delay_ms"][1]
    assert limits.wait_s * 1000 <= engine.RANGES["receive_wait_ms"][1]
    assert limits.attribute("VisibilityTimeout")[1] * 1000 <= engine.RANGES["lease_ms"][1]
    assert limits.attribute("MessageRetentionPeriod")[1] * 1000 <= engine.RANGES["retention_ms"][1]
    assert limits.attribute("MaximumMessageSize")[1] <= engine.RANGES["max_message_bytes"][1]
    assert limits.batch <= engine.MAX_BATCH and limits.batch_bytes <= engine.MAX_BATCH_BYTES
