"""Producers are asked about transactions that nobody has decided: when, who, how often, and what
then.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from engine.engine import Engine
from engine.errors import InvalidValue, NotAuthorised, ProducerGroupNotFound, TransactionDecided
from engine.outgoing.post import OutgoingError, is_public, post
from engine.shapes import Check, Principal, TransactionInfo
from schemas.records.settings import QueueSettings
from tests.clock import Clock
from tests.integration.conftest import MakeEngine
from tests.integration.drive import BY, drain, eventually
from tests.integration.test_rebuild import wipe
from tests.integration.test_transactions import GROUP, prepare
from tests.services import Services

FAST = {"transaction_immunity_ms": 0, "transaction_interval_ms": 1_000}


async def asked(engine: Engine, wait_ms: int = 40_000, max: int = 10) -> list[Check]:
    return await engine.transactions.check(BY, GROUP, max, wait_ms)


async def status_of(engine: Engine, half: TransactionInfo) -> tuple[str, str]:
    info = await engine.transactions.get_transaction(BY, half.id)
    return info.status, info.reason


async def test_the_first_check_comes_after_the_immunity_and_within_five_seconds(make_engine: MakeEngine) -> None:
    engine = await make_engine()
    await engine.queues.create_queue(BY, "q", QueueSettings())
    halves = {(await prepare(engine, "q", f"m{ms}", immunity_ms=ms)).id: ms for ms in (0, 2_000, 4_000)}
    seen: dict[str, float] = {}
    while len(seen) < 3:
        for check in await asked(engine, 10_000):
            seen[check.transaction.id] = time.time() * 1000 - check.transaction.prepared_at_ms
            assert (check.number, check.transaction.checks_left) == (1, 14)
            assert [m.body.decode() for m in check.messages] == [f"m{halves[check.transaction.id]}"]
    for name, ms in halves.items():
        assert ms <= seen[name] <= ms + 5_000


async def test_a_check_goes_to_one_of_those_who_wait_and_the_next_one_to_another(make_engine: MakeEngine) -> None:
    engines = [await make_engine(**FAST), await make_engine(**FAST)]
    await engines[0].queues.create_queue(BY, "q", QueueSettings())
    await engines[1].catalog.sync()
    got: list[str] = []
    numbers: list[int] = []

    async def member(engine: Engine) -> None:
        while True:
            for check in await engine.transactions.check(BY, GROUP, 10, 5_000):
                got.append(check.id)
                numbers.append(check.number)

    members = [asyncio.create_task(member(engine)) for engine in engines * 2]
    half = await prepare(engines[0], "q", "a")

    async def thrice() -> bool:
        return len(got) >= 3

    await eventually(thrice, 15)
    for task in members:
        task.cancel()
    await asyncio.gather(*members, return_exceptions=True)
    assert len(set(got)) == len(got), "a check was given twice"
    assert numbers[:3] == [1, 2, 3]
    await engines[1].transactions.commit(BY, half.id)
    assert await engines[0].transactions.check(BY, GROUP, 10, 2_000) == []


async def test_unknown_leaves_it_open_and_asks_again(make_engine: MakeEngine) -> None:
    engine = await make_engine(**FAST)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(engine, "q", "a")
    for number in (1, 2):
        (check,) = await asked(engine)
        assert (check.number, check.transaction.id) == (number, half.id)
        assert (await engine.transactions.unknown(BY, half.id)).status == "open"
    await engine.transactions.commit(BY, half.id)
    assert await drain(engine, "q", expect=1) == ["a"]


@pytest.mark.parametrize(
    ("exhausted", "status", "visible"),
    [("rollback", "rolled_back", []), ("commit", "committed", ["a"]), ("keep", "open", [])],
)
async def test_after_the_last_check_it_is_ended_as_the_setting_says(
    make_engine: MakeEngine, exhausted: str, status: str, visible: list[str]
) -> None:
    slower = {**FAST, "transaction_interval_ms": 3_000}
    engine = await make_engine(**slower, transaction_checks=2, transaction_exhausted=exhausted)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(engine, "q", "a")
    checks = [check for _ in range(2) for check in await asked(engine)]
    assert [check.number for check in checks] == [1, 2]
    last_ms = time.time() * 1000
    if exhausted == "keep":
        assert await asked(engine, 4_500) == []
        assert await status_of(engine, half) == ("open", "")
        await engine.transactions.rollback(BY, half.id)
        return

    async def ended() -> bool:
        return await status_of(engine, half) == (status, "checks_exhausted")

    await eventually(ended, within_s=30)
    (listed,) = await engine.transactions.list_transactions(BY, "q", status, 10)
    assert (listed.checks, listed.decided_by) == (2, "")
    assert listed.decided_at_ms is not None and listed.decided_at_ms > last_ms + 2_000, (
        "the last check can be answered, too"
    )
    with pytest.raises(TransactionDecided):
        await (engine.transactions.rollback if exhausted == "commit" else engine.transactions.commit)(BY, half.id)
    assert await drain(engine, "q", expect=len(visible), patience_ms=10_000 if visible else 500) == visible


async def test_checks_are_not_used_up_while_no_producer_is_there(make_engine: MakeEngine) -> None:
    engine, other = await make_engine(**FAST, transaction_checks=2), await make_engine(**FAST, transaction_checks=2)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(engine, "q", "a")
    await asyncio.sleep(6)  # as long as three rounds and their intervals
    assert await status_of(engine, half) == ("open", "")
    assert (await engine.transactions.get_transaction(BY, half.id)).checks == 0
    (check,) = await asked(other)
    assert (check.number, check.transaction.id) == (1, half.id)


async def test_one_that_is_too_old_is_rolled_back_with_a_record(make_engine: MakeEngine, clock: Clock) -> None:
    engine = await make_engine(transaction_exhausted="keep", transaction_age_ms=60_000)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(engine, "q", "a")
    clock.pass_at_kafka_s(61)

    async def ended() -> bool:
        return await status_of(engine, half) == ("rolled_back", "too_old")

    await eventually(ended)
    other = await make_engine()
    assert await status_of(other, half) == ("rolled_back", "too_old")


async def test_a_check_whose_answer_nobody_carried_is_given_to_another(make_engine: MakeEngine) -> None:
    engine = await make_engine(transaction_immunity_ms=0)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await prepare(engine, "q", "a")
    first = await asked(engine)
    assert await asked(engine, 500) == [], "it is with somebody"
    engine.transactions.unchecked(first)
    assert [check.id for check in await asked(engine, 2_000)] == [first[0].id]


async def test_checks_go_on_after_redis_was_emptied_and_a_new_keeper_counts_on(
    make_engine: MakeEngine, stack: Services
) -> None:
    engine = await make_engine(**FAST)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await prepare(engine, "q", "a")
    assert [check.number for check in await asked(engine)] == [1]
    wipe(stack, engine)
    assert [check.number for check in await asked(engine, 10_000)] == [2]
    other = await make_engine(**FAST)
    await engine.parts.transactions.keeper.stop()
    assert [check.number for check in await asked(other, 10_000)] >= [3]


# Webhooks


class Hook:
    """A producer that is asked by HTTP: `answer(path)` gives status and body; `requests` has what
    came.
    """

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self._answer = answer
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            self.requests.append((headers, await reader.readexactly(int(headers["content-length"]))))
            writer.write(self._answer(head.split(" ")[1]))
            await writer.drain()
        writer.close()


def reply(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{more}\r\n".encode() + body


_ANSWERS = {
    "/commit": reply(b'{"decision": "commit"}'),
    "/rollback": reply(b'{"decision": "rollback", "more": 1}'),
    "/unknown": reply(b"", "204 No Content"),
    "/chunked": b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n16\r\n{"decision": "commit"}\r\n0\r\n\r\n',
    "/moved": reply(b"", "302 Found", "location: /commit\r\n"),
    "/broken": b"what?\r\n\r\n",
    "/long": reply(b'{"decision": "commit"}' + b" " * 5_000),
    "/longer": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10_000,
    "/no-json": reply(b"commit"),
    "/closed": b"",
}


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    made = Hook(lambda path: _ANSWERS[path])
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/commit", "committed"), ("/rollback", "rolled_back"), ("/chunked", "committed"), ("/unknown", "open")],
)
async def test_a_webhook_is_asked_with_a_signature_and_its_answer_counts(
    make_engine: MakeEngine, hook: Hook, path: str, status: str
) -> None:
    engine = await make_engine(**FAST, webhook_addresses="all")
    await engine.queues.create_queue(BY, "q", QueueSettings())
    registered, secret = await engine.transactions.set_webhook(BY, GROUP, hook.url + path, None)
    assert registered.url == hook.url + path
    half = await prepare(engine, "q", "a", "b")

    async def answered() -> bool:
        return bool(hook.requests) and (await status_of(engine, half))[0] == status

    await eventually(answered)
    headers, body = hook.requests[0]
    at_s, mac = (part.split("=")[1] for part in headers["leaseway-signature"].split(","))
    assert mac == hmac.new(secret.encode(), at_s.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert abs(int(at_s) - time.time()) < 30
    told = msgspec.json.decode(body)
    assert (told["transaction"], told["queue"], told["number"]) == (half.id, "q", 1)
    assert [message["body"] for message in told["messages"]] == ["a", "b"]
    assert await drain(engine, "q", expect=2 * (status == "committed"), patience_ms=300) == ["a", "b"] * (
        status == "committed"
    )


@pytest.mark.parametrize("path", ["/moved", "/broken", "/long", "/longer", "/no-json", "/closed"])
async def test_an_answer_that_cannot_be_used_decides_nothing(make_engine: MakeEngine, hook: Hook, path: str) -> None:
    engine = await make_engine(**FAST, webhook_addresses="all")
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await engine.transactions.set_webhook(BY, GROUP, hook.url + path, "s" * 16)
    half = await prepare(engine, "q", "a")

    async def failed() -> bool:
        return engine.counts().get("webhooks_failed_total", 0) >= 1

    await eventually(failed)
    assert await status_of(engine, half) == ("open", "")
    if path == "/moved":
        assert len(hook.requests) == engine.counts()["webhooks_failed_total"], "a redirect was followed"


async def test_a_webhook_goes_to_no_private_address(make_engine: MakeEngine, hook: Hook) -> None:
    engine = await make_engine(**FAST)
    await engine.queues.create_queue(BY, "q", QueueSettings())
    await engine.transactions.set_webhook(BY, GROUP, hook.url + "/commit", None)
    half = await prepare(engine, "q", "a")

    async def failed() -> bool:
        return engine.counts().get("webhooks_failed_total", 0) >= 1

    await eventually(failed)
    assert (hook.requests, await status_of(engine, half)) == ([], ("open", ""))
    for address in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433"):
        with pytest.raises(OutgoingError, match="may not go to"):
            await post(f"http://{address}:{hook.url.rpartition(':')[2]}/commit", b"", {}, private=False)
    assert hook.requests == []


async def test_a_webhook_that_is_silent_is_not_waited_for_long(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.outgoing.post.TIMEOUT_S", 0.3)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client gives up
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    with pytest.raises(OutgoingError, match=r"within 0\.3 s"):
        await post(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", b"x", {}, private=True)
    server.close()


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1",
     "fc00::1", "::",
     "::ffff:10.0.0.1", "2002:7f00:1::"],
)  # fmt: skip
def test_addresses_that_are_not_public_are_known(address: str) -> None:
    assert not is_public(address)
    assert is_public("8.8.8.8") and is_public("2606:4700::1111")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x/",
        "http://",
        "http://u:p@h/",
        "http://h/#f",
        "http://h:0/",
        "http://h:99999/",
        "http://h/ x",
        "http://h/\n",
        "//h/",
    ],
)
async def test_a_url_that_is_none_is_refused(engine: Engine, url: str) -> None:
    with pytest.raises(InvalidValue):
        await engine.transactions.set_webhook(BY, "g", url, None)


async def test_a_webhook_belongs_to_who_registered_it_and_gets_no_queue_of_others(
    make_engine: MakeEngine, hook: Hook
) -> None:
    engine = await make_engine(auth="required", admin_key_secret="s" * 20, webhook_addresses="all", **FAST)
    owner, stranger = Principal("owner"), Principal("stranger")
    await engine.queues.create_queue(owner, "q", QueueSettings())
    await engine.transactions.set_webhook(stranger, GROUP, hook.url + "/commit", None)
    for verb in (engine.transactions.get_webhook, engine.transactions.delete_webhook):
        with pytest.raises(NotAuthorised):
            await verb(owner, GROUP)
    with pytest.raises(NotAuthorised):
        await engine.transactions.set_webhook(owner, GROUP, hook.url, None)
    with pytest.raises(InvalidValue, match="secret"):
        await engine.transactions.set_webhook(stranger, GROUP, hook.url, "short")
    half = await prepare(engine, "q", "a", by=owner)
    (check,) = await engine.transactions.check(owner, GROUP, 10, 6_000)
    assert check.transaction.id == half.id
    assert hook.requests == []
    await engine.transactions.delete_webhook(stranger, GROUP)
    with pytest.raises(ProducerGroupNotFound):
        await engine.transactions.get_webhook(owner, GROUP)


@pytest.mark.parametrize("set_s", [-300, 300])
async def test_the_clock_of_a_worker_neither_ends_a_transaction_nor_has_its_producers_asked(
    make_engine: MakeEngine, clock: Clock, set_s: int
) -> None:
    """What is open is as old as Kafka's clock says, at a worker too that has appended nothing."""
    first = await make_engine(transaction_age_ms=60_000)
    await first.queues.create_queue(BY, "q", QueueSettings())
    half = await prepare(first, "q", "a", immunity_ms=30_000)
    await first.stop()
    clock.pass_s(set_s)
    engine = await make_engine(transaction_age_ms=60_000)
    member = asyncio.create_task(asked(engine, 60_000))
    await asyncio.sleep(5)
    assert not member.done() and await status_of(engine, half) == ("open", "")
    clock.pass_at_kafka_s(31)
    assert [check.transaction.id for check in await member] == [half.id]
    clock.pass_at_kafka_s(30)

    async def ended() -> bool:
        return await status_of(engine, half) == ("rolled_back", "too_old")

    await eventually(ended, within_s=30)
