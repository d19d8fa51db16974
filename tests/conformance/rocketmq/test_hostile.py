"""Hostile clients: what they send is refused with its code, and harms nobody else."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator

import grpc
import pytest

from facade.dialects.rocketmq.actions import ACTIONS
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from tests.conformance.rocketmq.conftest import Native
from tests.conformance.rocketmq.raw import CLIENT, Raw, connected, receiving, sending
from tests.services import Up

METHODS = sorted(ACTIONS)


@pytest.fixture
def raw(endpoints: str) -> Iterator[Raw]:
    with connected(endpoints) as raw:
        yield raw


@pytest.fixture(autouse=True)
def alive(rocketmq_up: Up, endpoints: str) -> Iterator[None]:
    """After each test the very workers from before serve."""
    before = [facade["pid"] for facade in rocketmq_up.run["facades"]]
    yield
    assert [facade["pid"] for facade in rocketmq_up.run["facades"]] == before
    with connected(endpoints) as other:
        assert other.ask("Heartbeat", pb.HeartbeatRequest()).status.code == Code.OK


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_request_are_refused(raw: Raw, method: str) -> None:
    chance = random.Random(method)
    bodies = [
        b"\xff",
        b"\x0a\xff",
        b"\x0a\x02\x0a\xff",
        b"\x0a\x04\x12\x02\xff\xfe",
        b"\x0b" * 10_000,
        *(chance.randbytes(50) for _ in range(30)),
    ]
    for body in bodies:
        answer = ACTIONS[method].response.FromString(raw.unary(method, body))
        assert answer.status.code != Code.OK or method in ("Heartbeat", "NotifyClientTermination"), body
    assert ACTIONS[method].response.FromString(raw.unary(method, b"\x0a\xff")).status.code == Code.BAD_REQUEST


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_request_is_refused_or_harmless(raw: Raw, method: str) -> None:
    status = ACTIONS[method].response.FromString(raw.unary(method, b"")).status
    assert status.code not in (Code.CODE_UNSPECIFIED, Code.INTERNAL_ERROR, Code.INTERNAL_SERVER_ERROR)
    assert (status.code == Code.OK) is (method in ("Heartbeat", "NotifyClientTermination"))


def test_bytes_that_are_no_command_end_their_stream_alone(raw: Raw) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        next(raw.telemetry(iter([b"\xff\xff"])))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert list(raw.telemetry(iter([b"", b""]))) == []  # commands that say nothing


def test_a_client_without_a_name_is_refused(raw: Raw) -> None:
    for metadata in ((), (("x-mq-client-id", ""),), (("x-mq-client-id", "x" * 256),)):
        assert raw.ask("Heartbeat", pb.HeartbeatRequest(), metadata).status.code == Code.CLIENT_ID_REQUIRED


def test_metadata_of_any_kind_does_no_harm(raw: Raw) -> None:
    odd = (
        *CLIENT,
        ("authorization", "MQv2-HMAC-SHA1 ="),
        ("x-mq-date-time", "~"),
        ("data-bin", b"\xff\x00"),
        ("x-mq-client-id", "other"),
    )
    assert raw.ask("Heartbeat", pb.HeartbeatRequest(), odd).status.code == Code.OK
    with pytest.raises(grpc.RpcError) as refused:
        raw.ask("Heartbeat", pb.HeartbeatRequest(), (*CLIENT, ("x-large", "x" * 100_000)))
    assert refused.value.code() in (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.INTERNAL,
    )


def test_a_request_that_is_too_large_is_refused(raw: Raw, topic: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        raw.ask("SendMessage", sending(topic, b"x" * 6_000_000))
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    answer = raw.ask("SendMessage", sending(topic, *[b"x"] * 101))
    assert answer.status.code == Code.BAD_REQUEST
    (nothing,) = raw.received(receiving(topic))
    assert nothing.status.code == Code.MESSAGE_NOT_FOUND


@pytest.mark.parametrize(
    "value", [{"seconds": 2**62}, {"seconds": -(2**62)}, {"seconds": 1, "nanos": -1}, {"nanos": 2**31 - 1}]
)
def test_times_out_of_range_are_refused(raw: Raw, topic: str, value: dict[str, int]) -> None:
    assert (
        raw.ask("SendMessage", sending(topic, b"m", delivery_timestamp=value)).status.code == Code.ILLEGAL_DELIVERY_TIME
    )
    (answer,) = raw.received(
        receiving(topic, invisible_duration={"seconds": value.get("seconds", 0), "nanos": value.get("nanos", 0)})
    )
    assert answer.status.code == Code.ILLEGAL_INVISIBLE_TIME
    born = raw.ask("SendMessage", sending(topic, b"m", born_timestamp=value)).status.code
    assert born == Code.BAD_REQUEST


def test_a_long_poll_is_within_the_deadline_of_the_client(raw: Raw, topic: str) -> None:
    began = time.monotonic()
    (answer,) = raw.received(receiving(topic, wait_s=3600), timeout=3)
    assert answer.status.code == Code.MESSAGE_NOT_FOUND and time.monotonic() - began < 3
    request = receiving(topic, wait_s=0)
    request.long_polling_timeout.seconds = -5
    (answer,) = raw.received(request)
    assert answer.status.code == Code.MESSAGE_NOT_FOUND


def test_a_client_that_goes_while_it_waits_takes_nothing_with_it(raw: Raw, topic: str, native: Native) -> None:
    for _ in range(20):
        raw.receive(receiving(topic, wait_s=20)).cancel()
    waiting = [raw.receive(receiving(topic, wait_s=20)) for _ in range(10)]
    time.sleep(1)
    for one in waiting:
        one.cancel()
    raw.ask("SendMessage", sending(topic, b"m"))
    answers = raw.received(receiving(topic, wait_s=5))
    (message,) = [one.message for one in answers if one.HasField("message")]
    assert message.system_properties.delivery_attempt == 1


def test_many_streams_of_one_connection_are_served(endpoints: str, topic: str) -> None:
    with connected(endpoints) as raw:
        waiting = [raw.receive(receiving(topic, wait_s=2)) for _ in range(300)]
        for one in waiting:
            assert pb.ReceiveMessageResponse.FromString(next(one)).status.code == Code.MESSAGE_NOT_FOUND


def test_bytes_that_are_no_http2_close_their_connection_alone(endpoints: str) -> None:
    host, _, port = endpoints.partition(":")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    junk = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01" + b"\x00" * 500,
        preface + b"\xff" * 5000,
        preface + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\x00\x40\x00\x01\x04\x00\x00\x00\x01" + b"\xff" * 16_384,
        preface[:10],
        b"",
    ]
    for data in junk * 5:
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(data)


def test_connections_that_say_nothing_do_not_keep_others_out(endpoints: str, topic: str) -> None:
    host, _, port = endpoints.partition(":")
    silent = [socket.create_connection((host, int(port)), timeout=10) for _ in range(200)]
    try:
        with connected(endpoints) as raw:
            assert raw.ask("SendMessage", sending(topic, b"m")).status.code == Code.OK
    finally:
        for connection in silent:
            connection.close()


def test_clients_at_once_do_no_harm(endpoints: str, topic: str) -> None:
    chance = random.Random(24)

    def hurt(number: int) -> None:
        with connected(endpoints) as raw:
            for _ in range(50):
                method = chance.choice(METHODS)
                raw.unary(method, chance.randbytes(chance.randrange(200)))
                raw.receive(receiving(topic, wait_s=5)).cancel()

    threads = [threading.Thread(target=hurt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
