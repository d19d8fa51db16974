"""Signatures against the reference's vectors, and requests that were changed after they were
signed.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facade.dialects.emq.signature import Claim, ClockSkew, SignatureError, claim_of, claimed_key_id, string_to_sign

SECRET, BODY = "topsecret==", b"abc"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MD5 = (b"content-md5", b"900150983cd24fb0d6963f7d28e17f72")
OWN_MD5 = (b"x-xiaomi-content-md5", b"900150983cd24fb0d6963f7d28e17f72")
BINARY = (b"content-type", b"application/x-thrift-binary")
COMPACT = (b"content-type", b"application/x-thrift-compact")
DATE = (b"date", b"Thu, 01 Jan 2026 00:00:00 GMT")
OWN_DATE = (b"x-xiaomi-date", b"Thu, 01 Jan 2026 00:00:00 GMT")
TIMESTAMP = (b"x-xiaomi-timestamp", b"1767225600")
QUERY = b"id=0123abcd&type=createQueue"
VECTORS = [
    (b"/v1/api/queue", [MD5, BINARY, OWN_DATE, TIMESTAMP], b"62gq8Y7m7+u2KB0rS1f/jr5KehA="),
    (b"/v1/api/message", [OWN_MD5, COMPACT, OWN_DATE, TIMESTAMP], b"ETyXTpd+MKk8D50U9BVSUD6voRM="),
    (b"/v1/api/statistics", [MD5, BINARY, DATE], b"Wg/faNhpSrKr+K3hL+q0n/9HoMI="),
]
Headers = list[tuple[bytes, bytes]]


def authorization(made: bytes, key_id: bytes = b"AK-1") -> tuple[bytes, bytes]:
    return b"authorization", b"Galaxy-V2 " + key_id + b":" + made


def signed(headers: Headers, path: bytes = b"/v1/api/queue", query: bytes = QUERY) -> Headers:
    """Headers with a signature over what they are now."""
    made = hmac.new(SECRET.encode(), string_to_sign("POST", path, query, headers), hashlib.sha1).digest()
    return [*headers, authorization(b64encode(made))]


def read(headers: Headers, path: bytes = b"/v1/api/queue", query: bytes = QUERY, method: str = "POST") -> Claim:
    claim = claim_of(method, path, query, headers)
    assert claim is not None
    return claim


def fits(claim: Claim, body: bytes, secret: str = SECRET) -> bool:
    """Whether it is the claim of whoever has the secret, and of this body."""
    try:
        claim.check_body(body)
    except SignatureError:
        return False
    return claim.fits(secret)


def without(headers: Headers, name: bytes, *more: tuple[bytes, bytes]) -> Headers:
    return [*(one for one in headers if one[0] != name), *more]


@pytest.mark.parametrize(("path", "headers", "made"), VECTORS)
def test_the_vectors_of_the_reference_fit_their_secret_alone(path: bytes, headers: Headers, made: bytes) -> None:
    claim = read([(b"host", b"a"), *headers, authorization(made), (b"user-agent", b"b")], path)

    assert claim.key_id == "AK-1"
    assert claim.at == NOW
    assert fits(claim, BODY)
    assert not fits(claim, BODY, "topsecret")
    assert not fits(claim, b"abd")


def test_the_string_to_sign_is_that_of_the_table() -> None:
    headers = [
        (b"X-Xiaomi-Tag", b" b "),
        OWN_MD5,
        (b"x-xiaomi-tag", b"a"),
        BINARY,
        DATE,
        (b"host", b"h"),
        (b"xiaomi", b"no"),
    ]

    assert string_to_sign("POST", b"/v1/api/queue", QUERY, headers) == (
        b"POST\n\napplication/x-thrift-binary\nThu, 01 Jan 2026 00:00:00 GMT\n"
        b"x-xiaomi-content-md5:900150983cd24fb0d6963f7d28e17f72\nx-xiaomi-tag:b,a\n/v1/api/queue"
    )
    assert (
        string_to_sign("PUT", b"/", b"", [DATE, OWN_DATE])
        == b"PUT\n\n\n\nx-xiaomi-date:Thu, 01 Jan 2026 00:00:00 GMT\n/"
    )


@pytest.mark.parametrize(
    ("query", "end"),
    [
        (b"", b""),
        (b"id=1&type=acl", b""),
        (b"acls=1&myacl=2", b""),
        (b"id=1&quota=%2F&acl", b"?acl&quota=/"),
        (b"uploadId=a&partNumber=2&uploads&metadata=", b"?metadata&partNumber=2&uploadId=a&uploads"),
        (b"storageAccessToken=x", b"?storageAccessToken=x"),
    ],
)
def test_only_subresources_of_the_query_are_signed(query: bytes, end: bytes) -> None:
    assert string_to_sign("POST", b"/v1", query, []).endswith(b"\n/v1" + end)


@pytest.mark.parametrize("headers", [headers for _, headers, _ in VECTORS])
def test_what_is_changed_after_it_was_signed_fits_no_more(headers: Headers) -> None:
    whole = signed(headers)

    assert fits(read(whole), BODY)
    assert fits(read(whole, query=b"id=other"), BODY)
    assert not fits(read(whole, path=b"/v1/api/message"), BODY)
    assert not fits(read(whole, query=QUERY + b"&acl"), BODY)
    assert not fits(read(whole, method="PUT"), BODY)
    assert not fits(read([*whole, (b"x-xiaomi-more", b"1")]), BODY)
    assert not fits(read(without(whole, b"content-type", (b"content-type", b"application/x-thrift"))), BODY)
    other = (
        (b"x-xiaomi-timestamp", b"1767225601") if TIMESTAMP in headers else (b"date", b"Thu, 01 Jan 2026 00:00:01 GMT")
    )
    assert not fits(read(without(whole, other[0], other)), BODY)
    digest = MD5 if MD5 in headers else OWN_MD5
    assert not fits(read(without(whole, digest[0])), BODY)


def test_both_digests_are_those_of_the_body() -> None:
    wrong = (b"x-xiaomi-content-md5", b"0" * 32)

    assert fits(read(signed([MD5, OWN_MD5, TIMESTAMP])), BODY)
    assert not fits(read(signed([MD5, wrong, TIMESTAMP])), BODY)
    assert not fits(read(signed([(b"content-md5", b"0" * 32), OWN_MD5, TIMESTAMP])), BODY)
    assert fits(read(signed([TIMESTAMP])), b"any body")  # no digest, no check


def test_a_digest_has_any_case_and_no_leading_zeros() -> None:
    body = next(
        b"%d" % n for n in range(10_000) if hashlib.md5(b"%d" % n, usedforsecurity=False).hexdigest().startswith("00")
    )
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()

    for form in (digest, digest.upper(), digest.lstrip("0")):
        assert fits(read(signed([(b"x-xiaomi-content-md5", form.encode()), TIMESTAMP])), body)
    assert not fits(read(signed([(b"x-xiaomi-content-md5", digest.rstrip("0")[:-1].encode()), TIMESTAMP])), body)


@pytest.mark.parametrize("value", [b"", b"zz", b"0" * 33, b"kAFQmDzST7DWlj99KOF/cg==", b"0x12"])
def test_a_digest_that_is_not_hex_is_an_error(value: bytes) -> None:
    for name in (b"content-md5", b"x-xiaomi-content-md5"):
        with pytest.raises(SignatureError, match="MD5"):
            read(signed([(name, value), TIMESTAMP]))


@pytest.mark.parametrize("headers", [[], [(b"authorization", b"")], [(b"authorization", b"  ")], [MD5, BINARY, DATE]])
def test_a_request_without_authorization_is_not_signed(headers: Headers) -> None:
    assert claim_of("POST", b"/v1/api/queue", QUERY, headers) is None


@pytest.mark.parametrize(
    "value",
    [
        b"Galaxy-V2",
        b"Galaxy-V2 AK",
        b"Galaxy-V2 AK:",
        b"Galaxy-V2 :62gq8Y7m7+u2KB0rS1f/jr5KehA=",
        b"Galaxy-V2 AK:62gq8Y7m7+u2KB0rS1f/jr5KehA",
        b"Galaxy-V2 AK:62gq8Y7m7+u2KB0rS1f/jr5KehA=x",
        b"Galaxy-V2 A K:62gq8Y7m7+u2KB0rS1f/jr5KehA=",
        b"Galaxy-V2 " + b"K" * 129 + b":62gq8Y7m7+u2KB0rS1f/jr5KehA=",
        b"Galaxy-V3 AK:62gq8Y7m7+u2KB0rS1f/jr5KehA=",
        b"Basic QUs6c2VjcmV0",
        b'{"1":{"i32":1}}',
        b"\xff\xfe",
    ],
)
def test_an_authorization_that_cant_be_understood_is_an_error_that_does_not_repeat_it(value: bytes) -> None:
    with pytest.raises(SignatureError) as caught:
        claim_of("POST", b"/", b"", [(b"authorization", value), TIMESTAMP])
    assert "62gq8" not in str(caught.value)
    assert "QUs6" not in str(caught.value)


def test_a_key_id_may_have_colons_and_the_scheme_any_case() -> None:
    headers = [MD5, BINARY, OWN_DATE, TIMESTAMP, (b"authorization", b"galaxy-v2  U:12:62gq8Y7m7+u2KB0rS1f/jr5KehA=")]

    assert read(headers).key_id == "U:12"
    assert fits(read(headers), BODY)


ONCE = [MD5, OWN_MD5, BINARY, DATE, OWN_DATE, TIMESTAMP, authorization(VECTORS[0][2])]


@pytest.mark.parametrize("twice", ONCE)
def test_a_header_of_one_value_is_there_once(twice: tuple[bytes, bytes]) -> None:
    once = [one for one in ONCE if one != twice]

    with pytest.raises(SignatureError, match=f"the header {twice[0].decode()} is there more than once"):
        claim_of("POST", b"/", b"", [*once, twice, twice])


def test_two_hosts_as_one_client_sends_them_are_no_harm() -> None:
    path, headers, made = VECTORS[0]

    assert fits(read([(b"host", b"a:9400"), (b"host", b"a"), *headers, authorization(made)], path), BODY)


@pytest.mark.parametrize(
    ("seconds", "late"),
    [(0, False), (900, False), (-900, False), (901, True), (-901, True), (10**9, True), (-(10**9), True)],
)
def test_a_request_counts_for_a_quarter_of_an_hour_before_and_after(seconds: int, late: bool) -> None:
    for headers in ([TIMESTAMP], [DATE], [OWN_DATE]):
        claim, now = read(signed(headers)), NOW + timedelta(seconds=seconds)
        if late:
            with pytest.raises(ClockSkew, match="15 minutes"):
                claim.check_time(now)
        else:
            claim.check_time(now)


@pytest.mark.parametrize(
    ("headers", "at"),
    [
        ([(b"date", b"Thu, 01 Jan 2026 00:00:00 -0000")], NOW),
        ([(b"x-xiaomi-date", b"Thu, 01 Jan 2026 02:00:00 +0200")], NOW),
        ([(b"x-xiaomi-date", b"1 Jan 2026 00:00 GMT"), (b"date", b"nonsense")], NOW),
        ([(b"x-xiaomi-timestamp", b"1767225660"), OWN_DATE, DATE], NOW + timedelta(minutes=1)),
        ([(b"x-xiaomi-timestamp", b"253402300799")], datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ([(b"x-xiaomi-timestamp", b"0")], datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_the_time_is_that_of_the_timestamp_or_else_of_a_date(headers: Headers, at: datetime) -> None:
    assert read(signed(headers)).at == at


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"date", b"")],
        [(b"date", b"tomorrow")],
        [(b"date", b"Thu, 01 Jan 2026 00:00:00 +9999999")],
        [(b"date", b"Fri, 31 Dec 9999 23:59:59 -1200")],
        [(b"date", b"\xff")],
        [(b"x-xiaomi-date", b""), DATE],
        [(b"x-xiaomi-timestamp", b""), OWN_DATE],
        [(b"x-xiaomi-timestamp", b"-1")],
        [(b"x-xiaomi-timestamp", b"1767225600.5")],
        [(b"x-xiaomi-timestamp", b"253402300800")],
        [(b"x-xiaomi-timestamp", b"9" * 5000)],
        [(b"x-xiaomi-timestamp", "١٢".encode())],
    ],
)
def test_a_request_without_a_time_is_an_error(headers: Headers) -> None:
    with pytest.raises(SignatureError):
        read(signed(headers))


FUZZED = [b"date", b"x-xiaomi-date", b"x-xiaomi-timestamp", b"authorization", b"content-md5", b"query"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.sampled_from(FUZZED))
def test_random_headers_are_read_or_an_error(value: bytes, name: bytes) -> None:
    path, headers, made = VECTORS[0]
    said = ""
    try:
        claim_of(
            "POST",
            path,
            value if name == b"query" else b"",
            without([*headers, authorization(made)], name, (name, value)),
        )
    except SignatureError as error:
        said = str(error)

    assert len(value) < 8 or value.decode("latin-1") not in said


def test_the_signature_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    claim = read(signed([MD5, TIMESTAMP]))
    monkeypatch.setattr("facade.dialects.emq.signature.hmac.compare_digest", compare)

    assert claim.fits(SECRET)
    assert not claim.fits("another")
    assert [expected for _, expected in compared] == [claim.signature] * 2


def test_no_secret_is_in_a_claim_or_an_error() -> None:
    odd = "s3cret\ud800"
    claim = read(signed([MD5, TIMESTAMP]))

    assert not claim.fits(odd)
    assert SECRET not in repr(claim)


@pytest.mark.parametrize(
    ("value", "key_id"),
    [
        (b"Galaxy-V2 AK-1:x", "AK-1"),
        (b"galaxy-v2  U:7:", "U:7"),
        (b"", None),
        (b"Galaxy-V2 AK", None),
        (b"AWS4-HMAC-SHA256 Credential=a/b", None),
        (b'{"1":{"i32":1}}', None),
        (b"Galaxy-V2 \xff:x", None),
    ],
)
def test_open_mode_believes_the_key_id_that_is_named(value: bytes, key_id: str | None) -> None:
    assert claimed_key_id(value) == key_id
