"""Wrong secrets of requests that the native front reads: they are counted as on the long way, and
what is right is not served where it must wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from engine.engine import Engine
from engine.errors import NotAuthorised
from engine.queues.callers.access import Access
from engine.queues.callers.callers import Callers
from engine.queues.callers.guesses import KEY_AT_ADDRESS, Guesses
from engine.runtime.counters import Counters
from engine.shapes import Principal
from facade.config import Settings
from facade.http.metrics import Metrics
from facade.sqs.dialect import SqsDialect
from tests.unit.facade.test_front_groups import SENT, Soon, heard, serving

pytestmark = pytest.mark.usefixtures("library")

KEYS = 16_384  # native/src/auth/keys.rs
RIGHT = "a secret of the tests"
BURST = KEY_AT_ADDRESS[0]
GOOD, BAD = "127.0.0.2", "127.0.0.1"


class Guarded(Soon):
    """Asks the real parts of the engine who somebody is."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.answers["send"] = SENT[:1]
        catalog: Any = SimpleNamespace(keys={}, key_changes=0, accounts=())
        uses: Any = SimpleNamespace(note=lambda key_id: None)
        nothing = cast(Any, None)
        access = Access(settings, catalog, uses, Guesses(Counters()))
        self._callers = Callers(catalog, access, nothing, nothing, nothing, nothing)

    def proves(self, at: str) -> None:
        self._callers.authenticate_signed("key", lambda secret: True, at)

    def check_key(self, key_id: str, at: str = "") -> None:
        self._callers.check_key(key_id, at)

    def authenticate_signed(self, key_id: str, fits: Callable[[str], bool], at: str = "") -> Principal:
        return self._callers.authenticate_signed(key_id, fits, at)

    def signing_key(self, *asked: Any) -> Any:
        return self._callers.signing_key(*asked)


def signed(secret: str, *lines: str) -> bytes:
    """A SendMessage, as an SDK signs it."""
    body = b'{"QueueUrl":"http://localhost/000000000000/q","MessageBody":"x"}'
    headers = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0", "Host": "localhost"}
    asked = AWSRequest("POST", "http://localhost/", headers=headers, data=body)
    SigV4Auth(Credentials("key", secret), "sqs", "us-east-1").add_auth(asked)
    found = [f"{name}: {value}" for name, value in asked.headers.items()]
    return "\r\n".join(["POST / HTTP/1.1", *found, *lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


class Asker:
    """Asks from an address, one connection for each request."""

    def __init__(self, engine: Guarded, service: Any, at: str, *lines: str) -> None:
        self._engine = engine
        self._service = service
        self._at = at
        self._lines = lines

    async def asks(self, secret: str) -> str:
        """What comes of it: "plainly" and "the long way" are good, else the word of SQS."""
        before = len(self._engine.begun)
        answer = asyncio.ensure_future(heard(self._service, signed(secret, *self._lines), at=self._at))
        while not answer.done():
            if self._engine.told:
                await self._engine.tell_all(SENT[:1])
            await asyncio.sleep(0)
        heard_ = await answer
        if heard_.startswith(b"HTTP/1.1 200"):
            return "plainly" if len(self._engine.begun) > before else "the long way"
        return next(word for word in ("SignatureDoesNotMatch", "RequestThrottled") if word.encode() in heard_)

    async def is_known(self) -> bool:
        """Proves the key the long way, and is asked for it with the next request; whether the third
        is served plainly.
        """
        return [await self.asks(RIGHT) for _ in range(3)][2] == "plainly"

    async def guesses(self, number: int) -> list[str]:
        return [await self.asks(f"wrong {place}") for place in range(number)]


def test_of_as_many_keys_as_the_front_has_each_is_somebodys() -> None:
    engine = Guarded(settings())
    engine.proves(GOOD)
    groups = SqsDialect(cast(Engine, engine), settings()).plain(Metrics(dict), None)
    signers = [b"key/20261127/r-%d" % number for number in range(KEYS + 1)]
    for signer in signers:
        assert len(groups.keys([(signer, GOOD.encode())])) == 1
    # The first is asked for again, and the front knows the others.
    with pytest.raises(KeyError):
        groups.lane(b"localhost", b"/", signers[0], "http://localhost/000000000000/q")
    for signer in (signers[1], signers[-1]):
        assert groups.lane(b"localhost", b"/", signer, "http://localhost/000000000000/q").by.id == "key"


def settings(**more: Any) -> Settings:
    return Settings(auth="required", admin_key_id="key", admin_key_secret=RIGHT, front="native", **more)


async def test_a_right_secret_waits_where_too_many_were_wrong_and_nobody_elses_way_is_longer() -> None:
    engine = Guarded(settings())
    async with serving(engine, settings()) as service:
        good, bad = Asker(engine, service, GOOD), Asker(engine, service, BAD)
        assert await good.is_known()
        assert await bad.guesses(BURST) == ["SignatureDoesNotMatch"] * BURST
        assert [await bad.asks(RIGHT) for _ in range(3)] == ["RequestThrottled"] * 3
        assert [await good.asks(RIGHT) for _ in range(3)] == ["plainly"] * 3
        # Whoever has proved a key is not kept out, and not by wrong ones from there either.
        assert await good.guesses(2 * BURST) == ["SignatureDoesNotMatch"] * 2 * BURST
        assert await good.asks(RIGHT) == "plainly"


@pytest.mark.parametrize("trust", ["yes", "no"])
async def test_behind_a_proxy_that_is_trusted_its_clients_are_told_apart(trust: str) -> None:
    engine = Guarded(settings())
    async with serving(engine, settings(trust_proxy=trust)) as service:
        good = Asker(engine, service, GOOD, "X-Forwarded-For: 10.0.0.6, 10.0.0.7")
        bad = Asker(engine, service, GOOD, "X-Forwarded-For: 10.0.0.7, 10.0.0.6")
        assert await good.is_known()
        assert await bad.guesses(BURST) == ["SignatureDoesNotMatch"] * BURST
        # Without trust both are the proxy, which has proved the key.
        assert await bad.asks(RIGHT) == ("RequestThrottled" if trust == "yes" else "plainly")
        assert await good.asks(RIGHT) == "plainly"
        withdrawn = NotAuthorised("key 'key' was revoked", field="key_id", given="key")
        await heard(service, signed(RIGHT, "X-Forwarded-For: 10.0.0.6, 10.0.0.7"), partial(engine.tell_all, withdrawn), GOOD)
        assert engine.audit.heard[-1][0] == ("10.0.0.7" if trust == "yes" else GOOD)
