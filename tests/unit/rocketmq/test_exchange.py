"""What becomes of messages that were leased for a receive whose client has gone, or whose worker
stops.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from engine.rules.limits import MAX_BATCH
from engine.settings import EngineSettings
from engine.shapes import Delivery, Principal
from facade.config import Settings
from facade.dialects.rocketmq import exchange as module
from facade.dialects.rocketmq.actions import ACTIONS
from facade.dialects.rocketmq.exchange import Exchange
from facade.dialects.rocketmq.http2.framing import CallEnded, GrpcStatus
from facade.dialects.rocketmq.http2.rpc import Rpc
from facade.dialects.rocketmq.messages.receive import Received
from facade.dialects.rocketmq.queues.call import Common
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from facade.http.metrics import Metrics
from schemas.records import Message
from tests.unit.facade.double import RecordingAudit

DELIVERIES = [Delivery(f"id{n}", f"handle{n}", Message(b"body"), 1, 1, 1, 1, 0, n) for n in range(3)]


class Undelivering:
    """The part of an engine that a receive uses: notes what is given back."""

    settings = EngineSettings()

    def __init__(self) -> None:
        self.callers = self.messages = self
        self.audit = RecordingAudit()
        self.undone: list[str] = []

    def authenticate(self, key_id: str | None, secret: str | None) -> Principal:
        return Principal("anonymous")

    def undelivered(self, deliveries: list[Delivery]) -> None:
        self.undone += [delivery.handle for delivery in deliveries]


class Call:
    """A call of a client; it breaks after `most` answers."""

    def __init__(self, most: int = 100) -> None:
        self.said: list[pb.ReceiveMessageResponse] = []
        self.metadata = {"x-mq-client-id": "c"}
        self.peer = "10.0.0.1"
        self.holder = ""
        self._most = most

    def left_s(self) -> None:
        return None

    def identify(self, holder: str) -> None:
        self.holder = holder

    async def message(self, *, first: bool = True) -> bytes:
        assert self.holder, "a body came before anybody knew whose it is"
        return b""

    async def write(self, body: bytes) -> None:
        if len(self.said) == self._most:
            raise asyncio.CancelledError
        self.said.append(pb.ReceiveMessageResponse.FromString(body))


class Unread(Call):
    """A call whose body nobody may ask for."""

    async def message(self, *, first: bool = True) -> bytes:
        raise AssertionError("the body of a stranger was read")


class Sends(Call):
    """A call with a body."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body

    async def message(self, *, first: bool = True) -> bytes:
        return self.body


MESSAGE = pb.Message(topic=pb.Resource(name="t"), body=b"x", system_properties=pb.SystemProperties(message_id="i"))


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("SendMessage", pb.SendMessageRequest(messages=[MESSAGE] * (MAX_BATCH + 1))),
        (
            "AckMessage",
            pb.AckMessageRequest(
                topic=pb.Resource(name="t"), group=pb.Resource(name="g"), entries=[pb.AckMessageEntry()] * 101
            ),
        ),
    ],
)
async def test_a_request_of_too_many_is_refused_before_any_is_looked_at(
    engine: Undelivering, method: str, request_: Any
) -> None:
    exchange, action = Exchange(Common(engine, Settings(), pb.Endpoints()), Metrics(dict)), ACTIONS[method]  # type: ignore[arg-type]
    answer = action.response.FromString(await exchange.unary(method, action, rpc(Sends(request_.SerializeToString()))))
    assert (answer.status.code, answer.status.message) == (
        Code.BAD_REQUEST,
        "a request has 100 entries at most, given 101",
    )


async def test_no_body_is_read_before_who_asks_is_known(engine: Undelivering) -> None:
    engine.settings = EngineSettings(auth="required", secret="s" * 32)
    exchange = Exchange(Common(engine, Settings(), pb.Endpoints()), Metrics(dict))  # type: ignore[arg-type]
    for name, action in ACTIONS.items():
        answer = action.response.FromString(await exchange.unary(name, action, rpc(Unread())))
        assert answer.status.code == Code.UNAUTHORIZED
    call = Unread()
    await exchange.receive(rpc(call))
    assert [one.status.code for one in call.said] == [Code.UNAUTHORIZED]
    with pytest.raises(CallEnded) as ended:
        await exchange.telemetry(rpc(Unread()))
    assert ended.value.status == GrpcStatus.UNAUTHENTICATED


def rpc(call: Call) -> Rpc:
    return cast(Rpc, call)


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

    async def receive(call: Any, _: Any) -> Received:
        await gate.wait()
        gate.leased += len(DELIVERIES)
        return Received(DELIVERIES, "orders", fifo=False, lease_ms=1)

    monkeypatch.setattr(module, "receive_message", receive)
    return gate


async def test_what_was_said_is_not_given_back(exchange: Exchange, engine: Undelivering, gate: Gate) -> None:
    gate.set()
    context = Call()
    await exchange.receive(rpc(context))
    assert len(context.said) == 5 and engine.undone == []


@pytest.mark.parametrize(("most", "undone"), [(0, 3), (1, 3), (2, 2), (3, 1), (4, 0)])
async def test_what_could_not_be_said_is_given_back(
    exchange: Exchange, engine: Undelivering, gate: Gate, most: int, undone: int
) -> None:
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await exchange.receive(rpc(Call(most)))
    assert engine.undone == [f"handle{n}" for n in range(3)][3 - undone :]


async def test_a_client_that_goes_as_its_messages_come_leaves_them(
    exchange: Exchange, engine: Undelivering, gate: Gate
) -> None:
    for rounds in range(1, 12):  # one of them is between the lease and the answer
        gate.clear()
        gate.leased = 0
        engine.undone.clear()
        context = Call()
        receiving = asyncio.create_task(exchange.receive(rpc(context)))
        await asyncio.sleep(0.001)
        gate.set()
        for _ in range(rounds):
            await asyncio.sleep(0)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        assert sum(one.HasField("message") for one in context.said) + len(engine.undone) == gate.leased, rounds


async def test_a_stop_answers_with_nothing(exchange: Exchange, engine: Undelivering, gate: Gate) -> None:
    context = Call()
    receiving = asyncio.create_task(exchange.receive(rpc(context)))
    await asyncio.sleep(0.01)
    exchange.stop()
    await receiving
    assert [one.status.code for one in context.said] == [Code.MESSAGE_NOT_FOUND] and engine.undone == []
    late = Call()
    await exchange.receive(rpc(late))
    assert [one.status.code for one in late.said] == [Code.MESSAGE_NOT_FOUND]
