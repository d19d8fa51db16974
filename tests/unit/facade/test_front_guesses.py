"""Keys of requests that the library reads: they are told to it for the addresses alone from which
somebody has proved them, and behind a proxy for those that it names.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from engine.engine import Engine
from engine.errors import NotAuthenticated, TooManyAttempts
from engine.queues.callers.access import KEY_AT_ADDRESS, Access, Guesses
from engine.services.callers import CallerService
from facade.config import Settings
from facade.dialects.sqs.dialect import SqsDialect
from facade.dialects.sqs.lanes import SqsLanes
from facade.http.metrics import Metrics
from facade.http.sockets.library import FORWARDED, SIGNED, NativeFront
from facade.http.sockets.listener import SIGNERS
from runtime.counters import Counters
from tests.unit.facade.double import RecordingEngine

KEYS = 16_384  # native/src/auth/keys.rs
RIGHT = "a secret of the tests"
BURST = KEY_AT_ADDRESS[0]
GOOD, BAD = "127.0.0.2", "127.0.0.1"
SIGNER = b"key/20261127/us-east-1"


class Guarded(RecordingEngine):
    """Asks the real parts of the engine who somebody is."""

    accounts = ()

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        catalog: Any = SimpleNamespace(keys={}, key_changes=0, accounts=())
        uses: Any = SimpleNamespace(note=lambda key_id: None)
        parts: Any = SimpleNamespace(keys=None, grants=None, quotas=None, users=None, audited=None)
        access = Access(settings, catalog, uses, Guesses(Counters()))
        self._callers = CallerService(cast(Any, None), catalog, access, parts)

    def signs(self, at: str, *, well: bool = True) -> None:
        self._callers.authenticate_signed("key", lambda secret: well, at)

    def signing_key(self, key_id: str, derive: Callable[[str], bytes], at: str) -> Any:
        return self._callers.signing_key(key_id, derive, at)


def settings() -> Settings:
    return Settings(auth="required", admin_key_id="key", admin_key_secret=RIGHT)


@pytest.fixture
def engine() -> Guarded:
    return Guarded(settings())


@pytest.fixture
def lanes(engine: Guarded) -> SqsLanes:
    return SqsDialect(cast(Engine, engine), settings()).lanes(Metrics(dict), None)


def test_of_as_many_keys_as_the_library_has_each_is_somebodys(engine: Guarded, lanes: SqsLanes) -> None:
    engine.signs(GOOD)
    signers = [b"key/20261127/r-%d" % number for number in range(KEYS + 1)]
    for signer in signers:
        assert len(lanes.keys([(signer, GOOD.encode())])) == 1
    # The first is asked for again, and the library knows the others.
    with pytest.raises(KeyError):
        lanes.lane(b"localhost", b"/", signers[0], "http://localhost/000000000000/q")
    for signer in (signers[1], signers[-1]):
        assert lanes.lane(b"localhost", b"/", signer, "http://localhost/000000000000/q").by.id == "key"


def test_a_key_is_told_for_where_it_was_proved_and_wrong_ones_from_there_do_not_change_that(
    engine: Guarded, lanes: SqsLanes
) -> None:
    engine.signs(GOOD)
    for at in (GOOD, BAD):
        for _ in range(2 * BURST):
            with pytest.raises((NotAuthenticated, TooManyAttempts)) as refused:
                engine.signs(at, well=False)
        assert isinstance(refused.value, NotAuthenticated if at == GOOD else TooManyAttempts)
    assert [found[1] for found in lanes.keys([(SIGNER, at.encode()) for at in (GOOD, BAD)])] == [GOOD.encode()]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("reads", "at"), [(FORWARDED, b"10.0.0.7"), (SIGNED, b"127.0.0.1")])
def test_behind_a_proxy_that_is_trusted_its_clients_are_told_apart(reads: int, at: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        front = NativeFront(os.dup(bound.fileno()), b"p", 10, reads)
        try:
            with socket.create_connection(bound.getsockname()) as client:
                client.sendall(signed("X-Forwarded-For: 10.0.0.6, 10.0.0.7"))
                assert [address for _, address in asked_for(front)] == [at]
        finally:
            front.free()


def asked_for(front: NativeFront) -> list[tuple[bytes, bytes]]:
    """Returns of which signers the library asks for the keys, with their addresses."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for kind, items in front.look()[0]:
            if kind == SIGNERS:
                return [(signer, address) for signer, address in items]
        time.sleep(0.001)
    raise TimeoutError("the library has asked for no key")


def signed(*lines: str) -> bytes:
    """Returns a SendMessage, as an SDK signs it."""
    body = b'{"QueueUrl":"http://localhost/000000000000/q","MessageBody":"x"}'
    headers = {
        "X-Amz-Target": "AmazonSQS.SendMessage",
        "Content-Type": "application/x-amz-json-1.0",
        "Host": "localhost",
    }
    asked = AWSRequest("POST", "http://localhost/", headers=headers, data=body)
    SigV4Auth(Credentials("key", RIGHT), "sqs", "us-east-1").add_auth(asked)
    found = [f"{name}: {value}" for name, value in asked.headers.items()]
    return "\r\n".join(["POST / HTTP/1.1", *found, *lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
