"""Signatures of RocketMQ clients: what metadata claims, which secret fits, and when."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facade.rocketmq import signature
from facade.rocketmq.wire.errors import RocketError
from facade.rocketmq.wire.rocketmq_pb2 import Code

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


@pytest.mark.parametrize(("hours", "ok"), [(-12.2, True), (-12.3, False), (0, True), (14.2, True), (14.3, False), (-1000, False)])
def test_a_time_counts_that_is_now_in_some_time_zone(hours: float, ok: bool) -> None:
    at = (NOON + timedelta(hours=hours)).strftime("%Y%m%dT%H%M%SZ")
    claim = signature.claim_of(signed(at=at))
    assert claim is not None
    if ok:
        claim.check_time(NOON)
    else:
        with pytest.raises(RocketError):
            claim.check_time(NOON)


@given(st.text(max_size=200), st.text(max_size=30))
def test_no_metadata_does_harm(authorization: str, at: str) -> None:
    for given_text in (authorization, f"MQv2-HMAC-SHA1 {authorization}", signed()["authorization"] + authorization):
        metadata = {"authorization": given_text, "x-mq-date-time": at}
        try:
            signature.claim_of(metadata)
        except RocketError as error:
            assert error.code == Code.UNAUTHORIZED  # noqa: PT017
        signature.claimed_key_id(metadata)
