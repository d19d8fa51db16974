"""Signatures of MNS: the check vectors of reference/mns.md 4.1, what a claim refuses, and who is
let in over HTTP.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import md5
from hmac import digest

import pytest

from engine.errors import NotAuthenticated
from facade.config import Settings
from facade.dialects.mns.signature import check_digest, claim_of, claimed_key_id, string_to_sign
from facade.dialects.mns.wire.errors import INVALID_DIGEST, MnsError
from tests.unit.facade.double import QUEUE, RecordingEngine
from tests.unit.mns.by_hand import VERSION, Answer, ask

DATE = (b"date", b"Tue, 03 Jun 2025 11:23:48 GMT")
THEN = datetime(2025, 6, 3, 11, 23, 48, tzinfo=UTC)
REQUIRED = Settings(auth="required", admin_key_secret="s")
OWN_VERSION = (b"x-mns-version", b"2015-06-06")
OF_BODY = (b"content-md5", b"MGUxNDBjOGJhYjI1ZWUyOTcyN2NmMDQ5NmEzMDIyNTM=")

# Secret, method, target, headers beside the date, and the signature.
VECTORS: list[tuple[str, str, bytes, list[tuple[bytes, bytes]], bytes]] = [
    ("testSk", "GET", b"/queues/TestQueue", [], b"uDJQXbk2xOhH95MDXmgbAGdtyE4="),
    ("sk1", "POST", b"/queues/TestQueue", [(b"x-mns-abcdef", b"abcDEF")], b"cAThPWnbphg3hDe3ZHDADTgkgyE="),
    (
        "sk",
        "PUT",
        b"/queues/demo-q",
        [OF_BODY, (b"content-type", b"text/xml;charset=UTF-8"), OWN_VERSION],
        b"9K80VfDtQyT5OHKTee8+ZLjzGAU=",
    ),
    (
        "sk",
        "GET",
        b"/queues/demo-q/messages?numOfMessages=16&waitseconds=10",
        [OWN_VERSION],
        b"ec9yNDyXLNWUaoluvQngT4MSITc=",
    ),
]


@pytest.mark.parametrize(("secret", "method", "target", "headers", "signature"), VECTORS)
def test_the_check_vectors_of_the_reference_fit(
    secret: str, method: str, target: bytes, headers: list[tuple[bytes, bytes]], signature: bytes
) -> None:
    claim = claim_of(method, target, [DATE, *headers, (b"authorization", b"MNS ak:" + signature)])

    assert (claim.key_id, claim.at) == ("ak", THEN)
    assert claim.fits(secret)
    assert not claim.fits(secret + "x")
    assert not claim_of(method, target + b"x", [DATE, *headers, (b"authorization", b"MNS ak:" + signature)]).fits(
        secret
    )


def test_a_date_of_mns_has_two_readings() -> None:
    own = [(b"x-mns-date", DATE[1])]
    for headers in (own, [*own, (b"date", b"")]):
        made = b64encode(digest(b"sk", string_to_sign("GET", b"/queues", headers), "sha1"))
        assert claim_of("GET", b"/queues", [*own, (b"authorization", b"MNS ak:" + made)]).fits("sk")
    lines = [b"GET", b"", b"", DATE[1], b"x-mns-date:" + DATE[1], b"/queues"]
    made = b64encode(digest(b"sk", b"\n".join(lines), "sha1"))
    assert claim_of("GET", b"/queues", [*own, (b"authorization", b"MNS ak:" + made)]).fits("sk")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([DATE, (b"authorization", b"MNS ak")], "InvalidAuthorizationHeader"),
        ([DATE, (b"authorization", b"MNS ak:short")], "InvalidAuthorizationHeader"),
        ([DATE, (b"authorization", b"mns ak:" + VECTORS[0][4])], "InvalidAuthorizationHeader"),
        ([DATE, (b"authorization", b"Basic eDp5")], "InvalidAuthorizationHeader"),
        ([DATE, (b"authorization", b"MNS " + b"a" * 129 + b":" + VECTORS[0][4])], "InvalidAuthorizationHeader"),
        ([(b"authorization", b"MNS ak:" + VECTORS[0][4])], "MissingDateHeader"),
        ([(b"date", b"yesterday"), (b"authorization", b"MNS ak:" + VECTORS[0][4])], "InvalidDateHeader"),
        ([(b"date", b"\xff"), (b"authorization", b"MNS ak:" + VECTORS[0][4])], "InvalidDateHeader"),
        ([DATE, DATE, (b"authorization", b"MNS ak:" + VECTORS[0][4])], "InvalidArgument"),
        ([DATE, OWN_VERSION, OWN_VERSION, (b"authorization", b"MNS ak:" + VECTORS[0][4])], "InvalidArgument"),
    ],
)
def test_a_head_that_says_nothing_certain_is_refused(headers: list[tuple[bytes, bytes]], code: str) -> None:
    with pytest.raises(MnsError) as refused:
        claim_of("GET", b"/queues", headers)
    assert refused.value.code.word == code


@pytest.mark.parametrize(("away", "is_late"), [(899, False), (-899, False), (901, True), (-901, True)])
def test_a_request_counts_for_fifteen_minutes(away: int, is_late: bool) -> None:
    claim = claim_of("GET", b"/queues", [DATE, (b"authorization", b"MNS ak:" + VECTORS[0][4])])
    if not is_late:
        claim.check_time(THEN + timedelta(seconds=away))
        return
    with pytest.raises(MnsError) as refused:
        claim.check_time(THEN + timedelta(seconds=away))
    assert (refused.value.code.word, refused.value.code.status) == ("TimeExpired", 408)


def test_a_digest_is_of_the_bytes_or_of_the_digits() -> None:
    body = b"<Queue/>"
    check_digest(b64encode(md5(body).digest()), body)
    check_digest(b64encode(md5(body).hexdigest().encode()), body)
    for wrong in (b"", b"nonsense", b64encode(md5(b"other").digest())):
        with pytest.raises(MnsError) as refused:
            check_digest(wrong, body)
        assert refused.value.code is INVALID_DIGEST


@pytest.mark.parametrize(
    ("given", "name"),
    [(b"MNS shop:x", "shop"), (b"MNS  shop:", "shop"), (b"MNS shop", None), (b"", None), (b"Basic eDp5", None)],
)
def test_open_mode_hears_the_key_that_is_named(given: bytes, name: str | None) -> None:
    assert claimed_key_id(given) == name


def made(secret: str = "secret", *, minutes: int = 0, digest_of_body: str | None = None) -> dict[str, str]:
    """The headers of a signed GET of /queues/orders; RecordingEngine's secret is `secret`."""
    headers = {"date": format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True), **VERSION}
    if digest_of_body is not None:
        headers["content-md5"] = digest_of_body
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    found = b64encode(digest(secret.encode(), string_to_sign("GET", b"/queues/orders", pairs), "sha1")).decode()
    return {**headers, "authorization": f"MNS shop:{found}"}


@pytest.fixture
def engine() -> RecordingEngine:
    found = RecordingEngine()
    found.answers["get_queue"] = QUEUE
    return found


async def get(engine: RecordingEngine, headers: dict[str, str], settings: Settings = REQUIRED) -> Answer:
    return await ask(engine, "GET", "/queues/orders", headers=headers, settings=settings)


async def test_a_signature_lets_in(engine: RecordingEngine) -> None:
    answer = await get(engine, made())

    # The queue of the double has no tag of that name: it was asked for, by who has signed.
    assert answer.told == (404, "QueueNotExist")
    assert engine.calls[-1][:2][1].id == "shop"


def without(name: str) -> dict[str, str]:
    return {known: value for known, value in made().items() if known != name}


# Made when a test runs, for they are signed at that time.
REFUSED: dict[str, tuple[Callable[[], dict[str, str]], tuple[int, str]]] = {
    "not signed": (lambda: dict(VERSION), (400, "MissingAuthorizationHeader")),
    "half signed": (lambda: {**VERSION, "authorization": "MNS x"}, (400, "InvalidAuthorizationHeader")),
    "no date": (
        lambda: {**VERSION, "authorization": "MNS shop:uDJQXbk2xOhH95MDXmgbAGdtyE4="},
        (400, "MissingDateHeader"),
    ),
    "another secret": (lambda: made("another"), (403, "SignatureDoesNotMatch")),
    "old": (lambda: made(minutes=-16), (408, "TimeExpired")),
    "ahead": (lambda: made(minutes=16), (408, "TimeExpired")),
    "another version": (lambda: {**made(), "x-mns-version": "2015-06-07"}, (400, "InvalidVersionHeader")),
    "no version": (lambda: without("x-mns-version"), (400, "MissingVersionHeader")),
    "another digest": (lambda: made(digest_of_body="bm90IHRoYXQ="), (400, "InvalidDegist")),
    "a header more": (lambda: {**made(), "x-mns-more": "1"}, (403, "SignatureDoesNotMatch")),
}


@pytest.mark.parametrize(("headers", "told"), REFUSED.values(), ids=REFUSED)
async def test_who_is_not_let_in(
    engine: RecordingEngine, headers: Callable[[], dict[str, str]], told: tuple[int, str]
) -> None:
    assert (await get(engine, headers())).told == told
    assert engine.calls == []


async def test_a_key_that_is_not_there_is_told(engine: RecordingEngine) -> None:
    engine.refuse = NotAuthenticated("there is no key 'shop'", field="key_id")

    assert (await get(engine, made())).told == (403, "InvalidAccessKeyId")


async def test_open_mode_believes_the_key(engine: RecordingEngine) -> None:
    await get(engine, {**VERSION, "authorization": "MNS shop:whatever"}, Settings())
    await get(engine, VERSION, Settings())

    assert engine.credentials == [("shop", None), (None, None)]
