"""What no client of EMQ sends, over plain connections: the service refuses it and goes on."""

from __future__ import annotations

import random
import socket
from itertools import islice

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Refused
from tests.conformance.emq.thrift_client import ThriftClient
from tests.services import Up
from tests.unit.emq.hostile import MOST, cut, damaged, deep, large, noise
from tests.unit.emq.values import message, struct

PATH = "/v1/api/message"
TYPE = {"content-type": "application/x-thrift-binary"}
VERSION = message("binary", "getServiceVersion", struct())


def exchange(up: Up | Running, sent: bytes, answers: int = 1) -> list[tuple[int, bytes]]:
    """What a connection gets for some bytes: (status, body) of so many answers."""
    host, _, port = up.endpoint.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(sent)
        stream = connection.makefile("rb")
        found = []
        for _ in range(answers):
            status = int(stream.readline().split()[1])
            length = 0
            while line := stream.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            found.append((status, stream.read(length)))
        stream.close()
        return found


def post(*headers: str, path: str = PATH) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/x-thrift-binary", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_body_over_half_a_megabyte_is_413_before_it_is_sent(up: Up | Running) -> None:
    ((status, text),) = exchange(up, post(f"Content-Length: {MOST + 1}"))
    assert status == 413 and str(MOST).encode() in text


def test_a_body_that_grows_over_half_a_megabyte_is_413_while_it_comes(up: Up | Running) -> None:
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    ((status, _),) = exchange(up, post("Transfer-Encoding: chunked") + chunk * 17)  # and no end
    assert status == 413


@pytest.mark.parametrize(
    ("path", "size", "status"), [(PATH, MOST, 400), ("/v1/queues", MOST + 1, 400)], ids=["the most", "native"]
)
def test_the_bound_is_emqs_own(up: Up | Running, path: str, size: int, status: int) -> None:
    kind = TYPE if path == PATH else {"content-type": "application/json"}
    assert httpx.post(up.endpoint + path, content=b"x" * size, headers=kind).status_code == status


def test_requests_that_do_not_wait_are_answered_in_their_order(up: Up | Running) -> None:
    one = post(f"Content-Length: {len(VERSION)}") + VERSION
    unreadable = post("Content-Length: 3") + b"abc"
    found = exchange(up, one + unreadable + one, 3)
    assert [status for status, _ in found] == [200, 400, 200] and found[0] == found[2]


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("POST", "application/json"),
        ("POST", "text/plain"),
        ("POST", "application/x-thrift-bin"),
        ("POST", ""),
        ("GET", "application/x-thrift-binary"),
        ("PUT", "application/x-thrift-binary"),
    ],
)
def test_what_is_not_thrift_is_not_taken_for_it(up: Up | Running, method: str, kind: str) -> None:
    answer = httpx.request(method, up.endpoint + PATH, content=VERSION, headers={"content-type": kind})
    assert 400 <= answer.status_code < 500


def test_a_method_of_another_service_is_unknown(up: Up | Running) -> None:
    answer = httpx.post(up.endpoint + PATH, content=message("binary", "createQueue", struct()), headers=TYPE)
    assert answer.status_code == 200 and b"createQueue" in answer.content
    assert answer.content[:4] == b"\x80\x01\x00\x03"  # an exception of Thrift itself


def test_no_damage_is_a_fault_of_the_service(up: Up | Running) -> None:
    chance = random.Random(7)
    cases = [*cut(), *chance.sample(list(damaged()), 600), *islice(noise(), 300), *deep(), *large()]
    with httpx.Client(timeout=60) as client:
        for case in cases:
            answer = client.post(
                up.endpoint + PATH, content=case.body, headers={"content-type": f"application/x-thrift-{case.protocol}"}
            )
            assert answer.status_code in ({200, 400} if len(case.body) <= MOST else {413}), case.label
    alive = ThriftClient(up.endpoint)
    assert alive.ask("getServiceVersion")["major"] == 1
    alive.close()


def test_a_huge_list_of_handles_is_refused_quickly(up: Up | Running, queue: str) -> None:
    client = ThriftClient(up.endpoint)
    handles = [{"receiptHandle": f"{n:05}"} for n in range(25_000)]
    answer = client.call("deleteMessageBatch", queueName=queue, deleteMessageBatchRequestEntryList=handles[:100])
    assert len(answer["failed"]) == 100
    for method, field in (
        ("deleteMessageBatch", "deleteMessageBatchRequestEntryList"),
        ("deadMessageBatch", "deadMessageBatchRequestEntryList"),
    ):
        with pytest.raises(Refused, match="1 to 100"):
            client.call(method, queueName=queue, **{field: [*handles, handles[-1]]})
    client.close()
