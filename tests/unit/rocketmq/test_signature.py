"""Signatures of RocketMQ clients: what metadata claims, which secret fits, and when."""

from __future__ import annotations

import hmac
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facade.dialects.rocketmq import signature
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code

AT = "20261124T120000Z"
NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def signed(key: str = "shop", secret: str = "a secret", at: str = AT, upper: bool = False) -> dict[str, str]:
    made = hmac.digest(secret.encode(), at.encode(), "sha1").hex()
    words = f"Credential={key}, SignedHeaders=x-mq-date-time, Signature={made.upper() if upper else made}"
    return {"authorization": f"MQv2-HMAC-SHA1 {words}", "x-mq-date-time": at}


@pytest.mark.parametrize("upper", [False, True])
def test_the_secret_that_has_signed_fits_and_no_other(upper: bool) -> None:
    claim = signature.claim_of(signed(upper=upper))

    assert claim is not None and claim.key_id == "shop"
    assert claim.fits("a secret") and not claim.fits("another") and not claim.fits("\ud800")


def test_a_scope_behind_the_key_id_is_left_out() -> None:
    claim = signature.claim_of(signed(key="shop/cn/rocketmq"))
    assert claim is not None and claim.key_id == "shop"
    assert signature.claimed_key_id(signed(key="shop/cn/rocketmq")) == "shop"


@pytest.mark.parametrize("metadata", [{}, {"authorization": ""}, {"authorization": "Basic c2hvcDph"}, signed(key="")])
def test_what_names_no_key_is_not_signed(metadata: dict[str, str]) -> None:
    assert signature.claim_of(metadata) is None
    assert signature.claimed_key_id(metadata) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {**signed(), "x-mq-date-time": "now"},
        {**signed(), "x-mq-date-time": "20261341T120000Z"},
        {**signed(), "x-mq-date-time": ""},
        {**signed(), "authorization": signed()["authorization"][:-1]},
        {**signed(), "authorization": signed()["authorization"].replace("x-mq-date-time", "host")},
    ],
)
def test_a_claim_that_cant_be_read_is_refused(metadata: dict[str, str]) -> None:
    with pytest.raises(RocketError) as refused:
        signature.claim_of(metadata)
    assert refused.value.code == Code.UNAUTHORIZED


HERE = "CLOCK-3"  # a machine three hours ahead of UTC


@pytest.mark.parametrize(
    ("minutes", "zones", "ok"),
    [
        (0, "", True),
        (-14, "", True),
        (16, "", False),
        (-16, "", False),
        (3 * 60, "", True),
        (3 * 60 + 16, "", False),
        (8 * 60, "", False),
        (8 * 60, "+08:00", True),
        (8 * 60 + 16, "+08:00", False),
        (-210, "+08:00, -03:30", True),
        (-12 * 60 - 14, "any", True),
        (-12 * 60 - 16, "any", False),
        (14 * 60 + 14, "any", True),
    ],
)
def test_a_time_counts_that_is_now_in_a_zone_that_counts(
    monkeypatch: pytest.MonkeyPatch, minutes: int, zones: str, ok: bool
) -> None:
    at = NOON + timedelta(minutes=minutes)
    claim = signature.claim_of(signed(at=f"{at:%Y%m%dT%H%M%SZ}"))
    monkeypatch.setenv("TZ", HERE)
    time.tzset()
    try:
        assert claim is not None and is_now(claim, zones) is ok
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("at", "ok"),
    [
        ("2026-11-24T12:00:00Z", True),
        ("2026-11-24T20:00:00.123456789+08:00", True),
        ("2026-11-24T20:00:00Z", False),
        ("2026-11-24T12:16:00.5+00:00", False),
    ],
)
def test_a_time_with_its_offset_is_taken_at_its_word(at: str, ok: bool) -> None:  # as the client of Rust writes it
    claim = signature.claim_of(signed(at=at))
    assert claim is not None and claim.fits("a secret") and is_now(claim, "+08:00") is ok


def is_now(claim: signature.Claim, zones: str) -> bool:
    try:
        claim.check_time(NOON, signature.zones_of(zones))
    except RocketError as error:
        assert error.code == Code.UNAUTHORIZED and "LEASEWAY_ROCKETMQ_ZONES" in error.text  # noqa: PT017
        return False
    return True


@given(st.text(max_size=200), st.text(max_size=30))
def test_no_metadata_does_harm(authorization: str, at: str) -> None:
    for given_text in (authorization, f"MQv2-HMAC-SHA1 {authorization}", signed()["authorization"] + authorization):
        metadata = {"authorization": given_text, "x-mq-date-time": at}
        try:
            signature.claim_of(metadata)
        except RocketError as error:
            assert error.code == Code.UNAUTHORIZED  # noqa: PT017
        signature.claimed_key_id(metadata)
