"""What the native front takes for signed by a key, Python takes so too: requests that botocore has
signed, and seeded mutations of them.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from facade.dialects.sqs.signature import Asked, claim_of, signing_key
from facade.dialects.sqs.wire.errors import SqsError
from facade.http.sockets.library import fits

pytestmark = pytest.mark.usefixtures("library")

SEED = 20261125
MUTATIONS = 30_000
SECRET = "a secret of the tests"
DAY = datetime.now(UTC)


def signed(chance: random.Random, secret: str = SECRET) -> tuple[list[tuple[str, str]], str, bytes]:
    """Headers, path and body of a request, as an SDK signs it."""
    body = b'{"QueueUrl":"http://localhost/000000000000/q","MessageBody":"%d"}' % chance.randrange(10**6)
    path = chance.choice(["/", "/000000000000/q", "/000000000000/q/", "/a-b_c.d"])
    headers = {
        "X-Amz-Target": "AmazonSQS.SendMessage",
        "Content-Type": "application/x-amz-json-1.0",
        "Host": "localhost:9400",
    }
    others = {"User-Agent": "an  agent", "amz-sdk-request": "attempt=1", "X-Odd": "a  b", "X-Even": " c "}
    headers |= {name: value for name, value in others.items() if chance.random() < 0.2}
    asked = AWSRequest("POST", f"http://localhost:9400{path}", headers=headers, data=body)
    SigV4Auth(Credentials("key", secret), "sqs", "eu-west-1").add_auth(asked)
    found = [(name, str(value)) for name, value in asked.headers.items()]
    return [*found, ("Content-Length", str(len(body)))], path, body


def raw(headers: list[tuple[str, str]], path: str, body: bytes) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


def python_fits(headers: list[tuple[str, str]], path: str, body: bytes, now: datetime) -> bool:
    sent = [(name.lower().encode("latin-1"), value.strip(" \t").encode("latin-1")) for name, value in headers]
    try:
        claim = claim_of(Asked("POST", path.encode(), b"", sent))
        if claim is None:
            return False
        claim.check_time(now)
    except SqsError:
        return False
    return claim.fits(SECRET, body)


def key_of(now: datetime) -> bytes:
    return signing_key(SECRET, f"{now:%Y%m%d}", "eu-west-1")


def mutated(
    chance: random.Random, headers: list[tuple[str, str]], path: str, body: bytes
) -> tuple[list[tuple[str, str]], str, bytes]:
    headers = list(headers)
    at = chance.randrange(len(headers))
    name, value = headers[at]
    kind = chance.randrange(9)
    if kind == 0:
        del headers[at]
    elif kind == 1:
        headers.append((name, value))
    elif kind == 2:
        chance.shuffle(headers)
    elif kind == 3:
        headers[at] = chance.choice([name.upper(), name.lower()]), value
    elif kind == 4:
        spaced = value.replace(", ", ","), value.replace("=", " =", 1)
        headers[at] = name, chance.choice([f"  {value}\t", value.replace("/", "//", 1), *spaced])
    elif kind == 5 and value:
        place = chance.randrange(len(value))
        headers[at] = name, value[:place] + chance.choice("0aZ;,/= ") + value[place + 1 :]
    elif kind == 6:
        path = chance.choice([path + "/", "/" + path, path + "x", "/./", "/a/.."])
    elif kind == 7 and body:
        place = chance.randrange(len(body))
        body = body[:place] + bytes([chance.randrange(32, 127)]) + body[place + 1 :]
    else:
        more = chance.choice(
            [
                ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
                ("x-amz-security-token", "t"),
                ("Date", format_datetime(DAY)),
            ]
        )
        headers.append(more)
    return headers, path, body


def test_what_an_sdk_signs_is_taken() -> None:
    chance = random.Random(SEED)
    taken = 0
    for _ in range(200):
        headers, path, body = signed(chance)
        now = datetime.now(UTC)
        assert python_fits(headers, path, body, now)
        found = fits(raw(headers, path, body), key_of(now), int(now.timestamp()))
        assert found or any(value != " ".join(value.split()) for _, value in headers), headers
        taken += found
        assert not fits(raw(headers, path, body), key_of(now - timedelta(days=1)), int(now.timestamp()))
        assert not fits(raw(headers, path, body.replace(b"M", b"N")), key_of(now), int(now.timestamp()))
    assert taken > 100


def test_what_the_front_takes_python_takes_too() -> None:
    chance = random.Random(SEED)
    taken = refused = 0
    for number in range(MUTATIONS):
        if number % 50 == 0:
            original = signed(chance, SECRET if chance.random() < 0.9 else "another")
        given = original
        for _ in range(chance.randrange(1, 4)):
            given = mutated(chance, *given)
        now = datetime.now(UTC) + timedelta(seconds=chance.choice([0, 0, 0, -899, 899, 3600, -86_400]))
        found = fits(raw(*given), key_of(datetime.now(UTC)), int(now.timestamp()))
        if found:
            assert python_fits(*given, now), given
            taken += 1
        else:
            refused += 1
    assert taken > MUTATIONS // 50 and refused > MUTATIONS // 2


@pytest.mark.parametrize(("minutes", "taken"), [(0, True), (13, True), (-13, True), (15, False), (-15, False)])
def test_near_the_bounds_of_time_python_decides(minutes: int, taken: bool) -> None:
    headers, path, body = signed(random.Random(1))
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    assert fits(raw(headers, path, body), key_of(datetime.now(UTC)), int(now.timestamp())) == taken
