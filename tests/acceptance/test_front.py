"""The native front of a real service: what clients do to it, and what becomes of their messages.

The conformance cases run with LEASEWAY_NATIVE too.
"""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.conftest import StartUp
from tests.services import Up

NATIVE = {"LEASEWAY_NATIVE": "require", "LEASEWAY_PLANE": "auto"}


@pytest.fixture(scope="module")
def up(library: None, leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module(environment=NATIVE)
    started.wait_ready()
    return started


class Client:
    """One connection, by hand."""

    def __init__(self, up: Up, at: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", up.port), 20, (at, 0))
        self._rest = b""
        self.host = f"127.0.0.1:{up.port}"

    def request(self, action: str, *lines: str, **fields: Any) -> bytes:
        body = json.dumps(fields).encode()
        head = [
            "POST / HTTP/1.1",
            f"Host: {self.host}",
            f"X-Amz-Target: AmazonSQS.{action}",
            f"Content-Length: {len(body)}",
            *lines,
        ]
        return "\r\n".join([*head, "", ""]).encode() + body

    def says(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hears(self) -> tuple[int, dict[str, str], Any]:
        """Status, headers and JSON of the next reply."""
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        size = int(headers["content-length"])
        while len(self._rest) < size:
            self._more()
        body, self._rest = self._rest[:size], self._rest[size:]
        return int(first.split(" ")[1]), headers, json.loads(body) if body.startswith(b"{") else body

    def _more(self) -> None:
        piece = self.socket.recv(1_000_000)
        assert piece, f"closed after {self._rest!r}"
        self._rest += piece

    def asks(self, action: str, **fields: Any) -> Any:
        self.says(self.request(action, **fields))
        status, _, found = self.hears()
        assert status == 200, found
        return found

    def ended(self) -> bool:
        """Whether the service closes, and says nothing before."""
        self.socket.settimeout(10)
        return not self._rest and self.socket.recv(1) == b""


@pytest.fixture
def client(up: Up) -> Iterator[Client]:
    one = Client(up)
    yield one
    one.socket.close()


_numbers = iter(range(10_000))


@pytest.fixture
def url(client: Client) -> str:
    """A queue of the test's own; the client has asked the long way."""
    found: str = client.asks(
        "CreateQueue", QueueName=f"front-{next(_numbers)}", Attributes={"VisibilityTimeout": "600"}
    )["QueueUrl"]
    return found


def health(up: Up) -> Any:
    with urllib.request.urlopen(f"{up.endpoint}/health", timeout=10) as answer:
        return json.load(answer)


def metric(up: Up, name: str) -> float:
    with urllib.request.urlopen(f"{up.endpoint}/metrics", timeout=10) as answer:
        found = re.search(rf"^{re.escape(name)} (.*)$", answer.read().decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def counts(client: Client, url: str) -> tuple[str, str]:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = client.asks("GetQueueAttributes", QueueUrl=url, AttributeNames=names)["Attributes"]
    return found[names[0]], found[names[1]]


def eventually(check: Any, what: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def ways(up: Up) -> dict[str, float]:
    """How many requests went to Python, by why; "" = the plane has served them."""
    with urllib.request.urlopen(f"{up.endpoint}/metrics", timeout=10) as answer:
        rows = re.findall(
            r'^leaseway_plane_requests_total\{reason="(\w*)",way="(\w+)"(?:,worker="\d+")?\} (.*)$',
            answer.read().decode(),
            re.MULTILINE,
        )
    assert all(way == ("python" if reason else "plane") for reason, way, _ in rows)
    return {reason: float(number) for reason, _, number in rows}


def plane_serves(up: Up, client: Client, url: str) -> None:
    """Returns when the plane serves a queue: the first request of a queue is Python's, and those
    that come while it is being created.
    """
    before = ways(up).get("", 0)
    eventually(
        lambda: (
            client.asks("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1) is not None and ways(up).get("", 0) > before
        ),
        url,
    )


def test_health_says_who_reads_the_sockets(up: Up) -> None:
    assert health(up)["native"] == "on"


def test_one_connection_asks_plainly_and_the_long_way_in_turn(up: Up, client: Client, url: str) -> None:
    plane_serves(up, client, url)
    before = metric(up, 'leaseway_plane_requests_total{reason="",way="plane"}')
    ids = set()
    for number in range(5):
        ids.add(client.asks("SendMessage", QueueUrl=url, MessageBody=f"é{number}\n")["MessageId"])
        client.asks("GetQueueUrl", QueueName=url.rpartition("/")[2])
    got: list[Any] = []
    while len(got) < 5:
        got += client.asks("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5).get(
            "Messages", []
        )
    assert {one["MessageId"] for one in got} == ids
    assert {one["Body"] for one in got} == {f"é{number}\n" for number in range(5)}
    entries = [{"Id": str(place), "ReceiptHandle": one["ReceiptHandle"]} for place, one in enumerate(got)]
    done = client.asks("DeleteMessageBatch", QueueUrl=url, Entries=entries)
    assert [one["Id"] for one in done["Successful"]] == [entry["Id"] for entry in entries]
    assert counts(client, url) == ("0", "0")
    assert metric(up, 'leaseway_plane_requests_total{reason="",way="plane"}') >= before + 7


def test_each_request_is_counted_by_who_serves_it_and_why(up: Up, client: Client, url: str) -> None:
    numbers = iter(range(100))

    def queue(**attributes: str) -> str:
        name = f"ways-{next(numbers)}" + (".fifo" if "FifoQueue" in attributes else "")
        found: str = client.asks("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"]
        return found

    def why(action: str, *lines: str, **fields: Any) -> str:
        before = ways(up)
        client.says(client.request(action, *lines, **fields))
        client.hears()
        after = ways(up)
        after["verb"] -= 1  # the look at the metrics before
        changed = [reason for reason in after if after[reason] > before.get(reason, 0)]
        assert len(changed) == 1, changed
        return changed[0]

    plane_serves(up, client, url)
    assert why("SendMessage", QueueUrl=url, MessageBody="x") == ""
    assert why("GetQueueUrl", QueueName=url.rpartition("/")[2]) == "verb"
    assert why("SendMessage", "X-Amzn-Trace-Id: Root=1", QueueUrl=url, MessageBody="x") == "head"
    assert why("SendMessage", QueueUrl=url, MessageBody="x", Nonsense=1) == "fields"
    assert why("SendMessage", QueueUrl=url, MessageBody="x" * 3_000_000) == "size"
    assert why("SendMessage", QueueUrl=url + "-missing", MessageBody="x") == "refused"
    fifo = queue(FifoQueue="true", ContentBasedDeduplication="true")
    assert why("ReceiveMessage", QueueUrl=fifo) == "fifo"
    late = queue(DelaySeconds="900")
    plane_serves(up, client, late)
    assert why("SendMessage", QueueUrl=late, MessageBody="x") == "delay"
    assert why("ReceiveMessage", QueueUrl=late) == "empty"
    assert why("DeleteMessage", QueueUrl=late, ReceiptHandle="none") == "handle"


def test_pipelined_requests_are_answered_in_their_order(client: Client, url: str) -> None:
    asked = b""
    for number in range(20):
        asked += client.request("SendMessage", QueueUrl=url, MessageBody=str(number))
        asked += client.request("GetQueueUrl", QueueName=url.rpartition("/")[2])
        asked += client.request("SendMessage", QueueUrl=url)  # no body: refused in SQS's words
    client.says(asked)
    for _ in range(20):
        assert "MessageId" in client.hears()[2]
        assert client.hears()[2] == {"QueueUrl": url}
        status, _, found = client.hears()
        assert (status, found["__type"]) == (400, "com.amazonaws.sqs#MissingParameter") or (
            status == 400 and "MessageBody" in str(found)
        )


def test_heads_are_those_of_the_python_server(client: Client, url: str) -> None:
    client.says(
        client.request("SendMessage", QueueUrl=url, MessageBody="a")
        + client.request("GetQueueUrl", QueueName=url.rpartition("/")[2])
    )
    plain, long = client.hears()[1], client.hears()[1]
    assert list(plain) == list(long)
    assert plain["content-type"] == long["content-type"]
    prefix = len("00000000-0000-0000-0000-")
    assert plain["x-amzn-requestid"][:prefix] == long["x-amzn-requestid"][:prefix]
    assert re.fullmatch(r"[a-z]{3}, \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt", plain["date"])


def test_another_hosts_name_is_refused_also_for_plain_requests(client: Client, url: str) -> None:
    client.host = "elsewhere.example"
    client.says(client.request("SendMessage", QueueUrl=url, MessageBody="a"))
    assert client.hears()[0] == 421


def test_what_a_client_that_has_gone_was_to_get_is_not_counted(up: Up, client: Client, url: str) -> None:
    client.asks("ReceiveMessage", QueueUrl=url)  # the first is Python's, and the next the plane's
    gone = Client(up)
    gone.says(gone.request("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20))
    eventually(lambda: metric(up, "leaseway_receives_in_progress") >= 1, "the receive waits")
    gone.socket.close()
    client.asks("SendMessage", QueueUrl=url, MessageBody="a")
    names = ["ApproximateReceiveCount"]
    (one,) = client.asks("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=10, AttributeNames=names)["Messages"]
    assert one["Attributes"] == {"ApproximateReceiveCount": "1"}


def test_a_large_request_in_small_pieces_is_plain_and_whole(client: Client, url: str) -> None:
    body = "€" * 60_000
    whole = client.request("SendMessage", QueueUrl=url, MessageBody=body)
    for at in range(0, len(whole), 20_000):
        client.says(whole[at : at + 20_000])
        time.sleep(0.01)
    assert client.hears()[0] == 200
    (one,) = client.asks("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert one["Body"] == body


def test_a_part_of_a_request_that_stays_one_is_pythons_after_a_second(client: Client, url: str) -> None:
    whole = client.request("SendMessage", QueueUrl=url, MessageBody="late")
    client.says(whole[:-5])
    time.sleep(2)
    client.says(whole[-5:])
    assert client.hears()[0] == 200
    assert "MessageId" in client.asks("SendMessage", QueueUrl=url, MessageBody="plain again")


def test_many_clients_that_do_not_read_hold_nobody_up(up: Up, client: Client, url: str) -> None:
    for place in range(8):
        client.asks("SendMessage", QueueUrl=url, MessageBody=str(place) * 200_000)
    deaf = [Client(up) for _ in range(20)]
    for one in deaf:
        one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.says(one.request("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0) * 20)
    began = time.monotonic()
    client.asks("GetQueueUrl", QueueName=url.rpartition("/")[2])
    client.asks("SendMessage", QueueUrl=url, MessageBody="on")
    assert time.monotonic() - began < 10
    for one in deaf:
        one.socket.close()


# Where keys count, the front reads what a key has signed.


@pytest.fixture(scope="module")
def guarded(library: None, leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module("--auth", "required", environment=NATIVE)
    started.wait_ready()
    return started


class Signer:
    """One connection whose requests are signed by a key of a new principal."""

    def __init__(self, up: Up, key_id: str) -> None:
        self._up = up
        self.admin = ("admin", (up.data / "admin_secret").read_text().strip())
        self.key_id = key_id
        made = httpx.post(f"{up.endpoint}/v1/keys", json={"key_id": key_id, "principal": key_id}, auth=self.admin)
        self.secret = made.json()["secret"]
        self.client = Client(up)

    def request(self, action: str, **fields: Any) -> bytes:
        body = json.dumps(fields).encode()
        headers = {
            "X-Amz-Target": f"AmazonSQS.{action}",
            "Content-Type": "application/x-amz-json-1.0",
            "Host": self.client.host,
        }
        asked = AWSRequest("POST", f"http://{self.client.host}/", headers=headers, data=body)
        SigV4Auth(Credentials(self.key_id, self.secret), "sqs", "us-east-1").add_auth(asked)
        lines = [f"{name}: {value}" for name, value in asked.headers.items()]
        return "\r\n".join(["POST / HTTP/1.1", *lines, f"Content-Length: {len(body)}", "", ""]).encode() + body

    def comes_from(self, address: str) -> None:
        """Asks from another address from now on."""
        self.client.socket.close()
        self.client = Client(self._up, address)

    def asks(self, action: str, **fields: Any) -> tuple[int, Any]:
        self.client.says(self.request(action, **fields))
        status, _, found = self.client.hears()
        return status, found

    def change(self, method: str, path: str, body: Any = None) -> Any:
        reply = httpx.request(method, f"{self._up.endpoint}{path}", json=body, auth=self.admin)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None


Signers = Callable[[str], Signer]


@pytest.fixture
def signers(guarded: Up) -> Iterator[Signers]:
    """Makes them by the ids of their keys."""
    made: list[Signer] = []

    def make(key_id: str) -> Signer:
        made.append(Signer(guarded, key_id))
        return made[-1]

    yield make
    for one in made:
        one.client.socket.close()


def test_signed_requests_are_read_by_the_front(guarded: Up, signers: Signers) -> None:
    signer = signers("plain")
    url = signer.asks("CreateQueue", QueueName="signed")[1]["QueueUrl"]
    assert signer.asks("SendMessage", QueueUrl=url, MessageBody="0")[0] == 200  # now the front knows the key
    before = metric(guarded, 'leaseway_plane_requests_total{reason="",way="plane"}')
    for number in range(1, 5):
        assert signer.asks("SendMessage", QueueUrl=url, MessageBody=str(number))[0] == 200
    got: list[Any] = []
    while len(got) < 5:
        got += signer.asks("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5)[1].get(
            "Messages", []
        )
    for one in got:
        assert signer.asks("DeleteMessage", QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])[0] == 200
    assert sorted(one["Body"] for one in got) == list("01234")
    # Of sends the first ones are Python's, which takes bytes of the day from the quota.
    assert metric(guarded, 'leaseway_plane_requests_total{reason="",way="plane"}') >= before + 7


def test_bytes_of_a_day_are_counted_exactly_though_the_plane_sends(guarded: Up, signers: Signers) -> None:
    signer, by_plane = signers("counted"), 'leaseway_plane_requests_total{reason="",way="plane"}'
    signer.change("PUT", "/v1/users/counted/quota", {"read_qps": 0, "write_qps": 0, "queues": 0, "daily_bytes": 40_000})
    urls = [signer.asks("CreateQueue", QueueName=name)[1]["QueueUrl"] for name in ("counted-1", "counted-2")]
    before = metric(guarded, by_plane)
    stored = 0
    # What the plane may still send to the first is taken back before a send to the second fails.
    for url, most in ((urls[0], 200), (urls[1], 1_000)):
        for _ in range(most):
            status, found = signer.asks("SendMessage", QueueUrl=url, MessageBody="x" * 100)
            if status != 200:
                assert "RequestThrottled" in found["__type"], found
                break
            stored += 1
    assert stored == 400
    assert metric(guarded, by_plane) > before


def test_what_is_not_signed_well_is_refused_in_the_words_of_sqs(signers: Signers) -> None:
    signer = signers("bad")
    url = signer.asks("CreateQueue", QueueName="unsigned")[1]["QueueUrl"]
    assert signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[0] == 200
    good = signer.request("SendMessage", QueueUrl=url, MessageBody="a")
    for bad, kind in (
        (good.replace(b'"a"', b'"b"'), "SignatureDoesNotMatch"),
        (good.replace(b"SendMessage", b"ReceiveMessage"), "SignatureDoesNotMatch"),
        (re.sub(rb"Signature=....", b"Signature=0000", good), "SignatureDoesNotMatch"),
        (re.sub(rb"Credential=bad", b"Credential=bax", good), "InvalidClientTokenId"),
        (re.sub(rb"Authorization: [^\r]*\r\n", b"", good), "MissingAuthenticationToken"),
        (re.sub(rb"X-Amz-Date: 2026", b"X-Amz-Date: 2025", good), "Signature"),
    ):
        bad = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(bad.partition(b"\r\n\r\n")[2]), bad)
        signer.client.says(bad)
        status, _, found = signer.client.hears()
        assert status in (400, 403) and kind in found["__type"] + found["message"], (kind, found)
    unused = signers("unused")
    for _ in range(3):
        unused.client.says(
            re.sub(rb"Signature=....", b"Signature=0000", unused.request("SendMessage", QueueUrl=url, MessageBody="a"))
        )
        assert unused.client.hears()[0] == 403
    keys = {key["key_id"]: key["last_used_at_ms"] for key in signer.change("GET", "/v1/keys")["keys"]}
    assert keys["unused"] == 0 < keys["bad"]
    other = signers("stranger")
    for _ in range(3):  # also when the front knows the key
        assert "QueueDoesNotExist" in other.asks("SendMessage", QueueUrl=url, MessageBody="x")[1]["__type"]


def test_a_right_secret_waits_where_too_many_were_wrong(guarded: Up, signers: Signers) -> None:
    signer = signers("guessed")
    url = signer.asks("CreateQueue", QueueName="guessed")[1]["QueueUrl"]
    before = metric(guarded, 'leaseway_plane_requests_total{reason="",way="plane"}')
    assert [signer.asks("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=1)[0] for _ in range(5)] == [200] * 5
    assert metric(guarded, 'leaseway_plane_requests_total{reason="",way="plane"}') > before
    right = signer.secret
    signer.comes_from("127.0.0.2")
    for number in range(10):
        signer.secret = f"wrong {number}"
        assert "SignatureDoesNotMatch" in signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[1]["__type"]
    signer.secret = right
    assert "RequestThrottled" in signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[1]["__type"]
    signer.comes_from("127.0.0.1")
    assert signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[0] == 200


def test_a_key_that_is_withdrawn_opens_nothing_any_more(signers: Signers) -> None:
    signer = signers("gone")
    url = signer.asks("CreateQueue", QueueName="withdrawn")[1]["QueueUrl"]
    for _ in range(3):
        assert signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[0] == 200
    while signer.asks("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)[1].get("Messages"):
        pass
    old = signer.secret
    signer.secret = signer.change("POST", "/v1/keys/gone/rotate", {"grace_seconds": 0})["secret"]
    eventually(lambda: signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[0] == 200, "the new secret counts")
    signer.secret, new = old, signer.secret
    assert signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[0] == 403
    signer.secret = new
    while signer.asks("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10)[1].get("Messages"):
        pass
    began = time.monotonic()
    signer.client.says(signer.request("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20))
    time.sleep(0.5)
    signer.change("PATCH", "/v1/keys/gone", {"disabled": True})
    status, _, found = signer.client.hears()
    assert status == 403, found
    assert found["__type"].partition("#")[2] in ("AccessDeniedException", "InvalidClientTokenId"), (
        found
    )  # the latter: it was asked anew
    assert time.monotonic() - began < 10
    assert signer.asks("SendMessage", QueueUrl=url, MessageBody="x")[0] == 403
