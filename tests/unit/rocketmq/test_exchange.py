"""What becomes of messages that were leased for a receive whose client has gone, or whose worker
stops.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.settings import EngineSettings
from engine.shapes import Delivery, Principal
from facade.config import Settings
from facade.http.metrics import Metrics
from facade.rocketmq import exchange as module
from facade.rocketmq.exchange import Exchange, _address
from facade.rocketmq.messages.receive import Received
from facade.rocketmq.queues.call import Call, Common
from facade.rocketmq.wire import rocketmq_pb2 as pb
from facade.rocketmq.wire.rocketmq_pb2 import Code
from schemas.records import Message
from tests.unit.facade.double import RecordingAudit

DELIVERIES = [Delivery(f"id{n}", f"handle{n}", Message(b"body"), 1, 1, 1, 1, 0, n) for n in range(3)]
METADATA = (("x-mq-client-id", "c"),)


class Undelivering:
    """The part of an engine that a receive uses: notes what is given back."""

    settings = EngineSettings()

    def __init__(self) -> None:
        self.audit = RecordingAudit()
        self.undone: list[str] = []

    def authenticate(self, key_id: str | None, secret: str | None) -> Principal:
        return Principal("anonymous")

    def undelivered(self, deliveries: list[Delivery]) -> None:
        self.undone += [delivery.handle for delivery in deliveries]


class Context:
    """A call of gRPC; it breaks after `most` answers."""

    def __init__(self, most: int = 100) -> None:
        self.said: list[pb.ReceiveMessageResponse] = []
        self._most = most

    def invocation_metadata(self) -> Any:
        return METADATA

    def time_remaining(self) -> None:
        return None

    def peer(self) -> str:
        return "ipv6:%5B::ffff:10.0.0.1%5D:4711"

    async def write(self, body: bytes) -> None:
        if len(self.said) == self._most:
            raise asyncio.CancelledError
        self.said.append(pb.ReceiveMessageResponse.FromString(body))


@pytest.mark.parametrize(
    ("said", "address"),
    [("ipv4:10.0.0.1:4711", "10.0.0.1"), ("ipv6:%5B::ffff:10.0.0.1%5D:4711", "10.0.0.1"), ("ipv6:[2001:db8::1]:1", "2001:db8::/64")],
)
def test_a_client_is_counted_by_its_address(said: str, address: str) -> None:
    class Peer(Context):
        def peer(self) -> str:
            return said

    assert _address(Peer()) == address


@pytest.fixture
def engine() -> Undelivering:
    return Undelivering()


@pytest.fixture
def exchange(engine: Undelivering) -> Exchange:
    common = Common(engine, Settings(), pb.Endpoints())  # type: ignore[arg-type]
    return Exchange(common, Metrics(dict))


class Gate(asyncio.Event):
    """Receives lease three messages once it is set."""

    leased = 0


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate()

    async def receive(call: Call, _: Any) -> Received:
        await gate.wait()
        gate.leased += len(DELIVERIES)
        return Received(DELIVERIES, "orders", fifo=False, lease_ms=1)

    monkeypatch.setattr(module, "receive_message", receive)
    return gate


async def test_what_was_said_is_not_given_back(exchange: Exchange, engine: Undelivering, gate: Gate) -> None:
    gate.set()
    context = Context()
    await exchange.receive(b"", context)
    assert len(context.said) == 5 and engine.undone == []


@pytest.mark.parametrize(("most", "undone"), [(0, 3), (1, 3), (2, 2), (3, 1), (4, 0)])
async def test_what_could_not_be_said_is_given_back(exchange: Exchange, engine: Undelivering, gate: Gate, most: int, undone: int) -> None:
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await exchange.receive(b"", Context(most))
    assert engine.undone == [f"handle{n}" for n in range(3)][3 - undone :]


async def test_a_client_that_goes_as_its_messages_come_leaves_them(exchange: Exchange, engine: Undelivering, gate: Gate) -> None:
    for rounds in range(1, 12):  # one of them is between the lease and the answer
        gate.clear()
        gate.leased = 0
        engine.undone.clear()
        context = Context()
        receiving = asyncio.create_task(exchange.receive(b"", context))
        await asyncio.sleep(0.001)
        gate.set()
        for _ in range(rounds):
            await asyncio.sleep(0)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        assert sum(one.HasField("message") for one in context.said) + len(engine.undone) == gate.leased, rounds


async def test_a_stop_answers_with_nothing(exchange: Exchange, engine: Undelivering, gate: Gate) -> None:
    context = Context()
    receiving = asyncio.create_task(exchange.receive(b"", context))
    await asyncio.sleep(0.01)
    exchange.stop()
    await receiving
    assert [one.status.code for one in context.said] == [Code.MESSAGE_NOT_FOUND] and engine.undone == []
    late = Context()
    await exchange.receive(b"", late)
    assert [one.status.code for one in late.said] == [Code.MESSAGE_NOT_FOUND]
