"""Signatures against those of botocore's own signers, and requests that were changed after they
were signed.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from msgspec import structs

from facade.dialects.sqs.signature import Asked, Claim, claim_of, claimed_key_id
from facade.dialects.sqs.wire.errors import SqsError

SECRET = "s3cret/+é"
HOST = "queues.example:9400"
BODY = '{"MessageBody": "grün"}'.encode()
JSON = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0"}


def signed(
    path: str = "/",
    method: str = "POST",
    body: bytes = BODY,
    headers: dict[str, str] | None = None,
    signer: Any = SigV4Auth,
    key_id: str = "shop",
    **options: Any,
) -> Asked:
    """A request as it arrives, signed by botocore."""
    request = AWSRequest(method, f"http://{HOST}{path}", headers=headers or JSON, data=body)
    signer(Credentials(key_id, SECRET, token="a-session"), "sqs", "eu-central-1", **options).add_auth(request)
    prepared = request.prepare()
    url = urlsplit(prepared.url)
    sent = [(str(name).lower().encode(), _bytes(value)) for name, value in prepared.headers.items()]
    return Asked(method, url.path.encode(), url.query.encode(), [*sent, (b"host", HOST.encode())])


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def read(asked: Asked) -> Claim:
    claim = claim_of(asked)
    assert claim is not None
    return claim


def code_of(asked: Asked) -> str:
    with pytest.raises(SqsError) as caught:
        claim_of(asked)
    return caught.value.shape.code


def with_header(asked: Asked, name: bytes, value: bytes | None) -> Asked:
    rest = [(n, v) for n, v in asked.headers if n != name]
    return structs.replace(asked, headers=rest if value is None else [*rest, (name, value)])


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/000000000000/orders",
        "/000000000000/orders@billing",
        "/a%40b/",
        "//a/./b/../c",
        "/?Action=ListQueues&b=%2F%20x&a=&b=1",
    ],
)
@pytest.mark.parametrize("body", [b"", BODY])
def test_a_request_of_botocore_fits_its_secret_alone(path: str, body: bytes) -> None:
    claim = read(signed(path, body=body))

    assert (claim.key_id, claim.region) == ("shop", "eu-central-1")
    assert claim.fits(SECRET, body)
    assert not claim.fits("another", body)
    assert not claim.fits(SECRET, body + b" ")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_presigned_query_fits_its_secret_alone(method: str) -> None:
    asked = signed(
        "/000000000000/orders?Action=ReceiveMessage", method, b"", {"Accept": "x"}, SigV4QueryAuth, expires=60
    )
    claim = read(asked)

    assert (claim.expires_s, claimed_key_id(b"", asked.query)) == (60, "shop")
    assert claim.fits(SECRET, b"")
    assert not claim.fits("another", b"")


def test_an_unsigned_payload_fits_any_body_and_a_stated_hash_its_own() -> None:
    assert read(signed(headers={**JSON, "X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"})).fits(SECRET, b"anything")
    assert not read(signed(headers={**JSON, "X-Amz-Content-SHA256": "0" * 64})).fits(SECRET, BODY)


@pytest.mark.parametrize(
    "change",
    [
        lambda asked: structs.replace(asked, path=b"/000000000000/other"),
        lambda asked: structs.replace(asked, query=b"x=1"),
        lambda asked: structs.replace(asked, method="GET"),
        lambda asked: with_header(asked, b"x-amz-target", b"AmazonSQS.DeleteQueue"),
        lambda asked: with_header(asked, b"host", b"elsewhere"),
        lambda asked: with_header(asked, b"x-amz-security-token", b"another"),
    ],
)
def test_a_request_changed_after_it_was_signed_does_not_fit(change: Any) -> None:
    assert read(signed("/000000000000/orders")).fits(SECRET, BODY)
    assert not read(change(signed("/000000000000/orders"))).fits(SECRET, BODY)


@pytest.mark.parametrize("part", [b"eu-central-1", b"shop", b"Signature=a"])
def test_a_changed_authorization_does_not_fit_or_is_not_who_it_was(part: bytes) -> None:
    asked = signed()
    (authorization,) = (value for name, value in asked.headers if name == b"authorization")
    if part == b"Signature=a":
        last = authorization[-1:]
        changed = authorization[:-1] + (b"0" if last != b"0" else b"1")
    else:
        changed = authorization.replace(part, b"other")
    claim = read(with_header(asked, b"authorization", changed))

    assert claim.key_id == "other" if part == b"shop" else not claim.fits(SECRET, BODY)


@pytest.mark.parametrize("header", [b"host", b"x-amz-target", b"x-amz-date"])
def test_what_says_where_when_and_what_must_be_signed(header: bytes) -> None:
    asked = signed()
    (authorization,) = (value for name, value in asked.headers if name == b"authorization")
    less = authorization.replace(header + b";", b"").replace(b";" + header, b"")

    assert less != authorization
    assert code_of(with_header(asked, b"authorization", less)) == "SignatureDoesNotMatch"


@pytest.mark.parametrize(
    "authorization",
    [
        b"Basic c2hvcDp4",
        b"AWS4-HMAC-SHA256",
        b"AWS4-HMAC-SHA256 Credential=shop/20260101/us-east-1/sqs/aws4_request, Signature=0",
        b"AWS4-HMAC-SHA256 Credential=shop/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
        b"AWS4-HMAC-SHA256 Credential=shop, SignedHeaders=host, Signature=0",
        b"AWS4-ECDSA-P256-SHA256 Credential=shop/20260101/sqs/aws4_request, SignedHeaders=host, Signature=0",
    ],
)
def test_a_claim_that_says_too_little_is_incomplete(authorization: bytes) -> None:
    assert code_of(with_header(signed(), b"authorization", authorization)) == "IncompleteSignature"


def test_a_claim_without_a_time_is_incomplete_and_one_of_another_day_does_not_match() -> None:
    assert code_of(with_header(signed(), b"x-amz-date", None)) == "IncompleteSignature"
    assert code_of(with_header(signed(), b"x-amz-date", b"20200101T000000Z")) == "SignatureDoesNotMatch"


def test_a_request_without_a_signature_claims_nothing() -> None:
    assert claim_of(Asked("POST", b"/", b"", [(b"host", b"h")])) is None


@pytest.mark.parametrize(("seconds", "late"), [(-899, False), (899, False), (-901, True), (901, True)])
def test_a_signature_holds_for_a_quarter_of_an_hour(seconds: int, late: bool) -> None:
    claim = read(signed())
    then = claim.at + timedelta(seconds=seconds)

    assert abs(claim.at - datetime.now(UTC)) < timedelta(seconds=60)
    if not late:
        claim.check_time(then)
        return
    with pytest.raises(SqsError) as caught:
        claim.check_time(then)
    assert caught.value.shape.code == "RequestExpired"


def test_a_presigned_request_holds_as_long_as_it_says() -> None:
    claim = read(signed("/?Action=ListQueues", "GET", b"", {"Accept": "x"}, SigV4QueryAuth, expires=3600))
    claim.check_time(claim.at + timedelta(seconds=3600))

    with pytest.raises(SqsError):
        claim.check_time(claim.at + timedelta(seconds=3601))


@pytest.mark.parametrize("expires", [0, 604_801])
def test_a_presigned_request_may_not_hold_for_ever(expires: int) -> None:
    asked = signed("/?Action=ListQueues", "GET", b"", {"Accept": "x"}, SigV4QueryAuth, expires=expires)

    assert code_of(asked) == "IncompleteSignature"


# Times that are none, or no longer are once a quarter of an hour or a zone is added.
FAR_TIMES = [
    "99991231T235959Z",
    "00010101T000000Z",
    "00000101T000000Z",
    "99990101T000000Z",
    "Fri, 31 Dec 9999 23:59:59 -0100",
    "Mon, 01 Jan 0001 00:00:00 +0100",
    "Mon, 01 Jan 99999999999 00:00:00 GMT",
    "Mon, 01 Jan 2026 00:00:00 +99999999999999999999",
    "Mon, 01 Jan 2026 99:99:99 -0000",
    "9" * 400,
]


@pytest.mark.parametrize("text", FAR_TIMES)
@pytest.mark.parametrize("presigned", [False, True])
def test_a_time_that_is_far_away_is_refused_as_any_other(text: str, presigned: bool) -> None:
    if presigned:
        asked = signed("/?Action=ListQueues", "GET", b"", {"Accept": "x"}, SigV4QueryAuth, expires=604_800)
        given = [part for part in asked.query.split(b"&") if not part.startswith(b"X-Amz-Date=")]
        day = text[:8].encode()
        query = b"&".join([*given, b"X-Amz-Date=" + quote(text).encode()])
        asked = structs.replace(asked, query=re.sub(rb"%2F\d{8}%2F", b"%2F" + quote(day).encode() + b"%2F", query))
    else:
        asked = with_header(signed(), b"x-amz-date", text.encode())
        (authorization,) = (value for name, value in asked.headers if name == b"authorization")
        asked = with_header(
            asked, b"authorization", re.sub(rb"/\d{8}/", b"/" + text[:8].encode() + b"/", authorization)
        )

    with pytest.raises(SqsError) as caught:
        read(asked).check_time(datetime(2026, 11, 22, tzinfo=UTC))

    assert caught.value.shape.code in ("RequestExpired", "IncompleteSignature", "SignatureDoesNotMatch")


def test_the_last_time_of_all_is_in_the_future() -> None:
    asked = with_header(signed(), b"x-amz-date", b"99991231T235959Z")
    (authorization,) = (value for name, value in asked.headers if name == b"authorization")
    asked = with_header(asked, b"authorization", re.sub(rb"/\d{8}/", b"/99991231/", authorization))

    with pytest.raises(SqsError) as caught:
        read(asked).check_time(datetime(2026, 11, 22, tzinfo=UTC))

    assert caught.value.shape.code == "RequestExpired"
