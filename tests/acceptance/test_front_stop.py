"""A stop of the native front amid traffic: what it was asked it answers, and what was answered is
so when the service is back. Clients keep the book.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any

from tests.acceptance.test_front import NATIVE, Client, counts, eventually, metric
from tests.conftest import StartUp
from tests.services import Up

# Of each kind, and how many requests each has asked before it hears the first answer: the front
# answers those of a kind together, and all would be between two requests at once.
CLIENTS, AHEAD = 4, 5
HELD, ENOUGH, LEASE_S = 4_000, 100, 20


class Book:
    """What clients know, by the bodies of messages."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.deleted: set[str] = set()
        self.unanswered: set[str] = set()  # sends and deletes: done or not
        self.received = Counter[str]()
        self.refused: list[Any] = []
        self.last = Counter[str]()  # replies after which a connection ended, by their actions; a delivery is "Messages"
        self._lock = threading.Lock()

    def note(self, action: str, body: str, reply: tuple[int, dict[str, str], Any] | None) -> None:
        with self._lock:
            if reply is None:
                self.unanswered.add(body)
                return
            status, headers, found = reply
            if status != 200:
                self.refused.append(found)
                return
            if "connection" in headers:
                self.last["Messages" if "Messages" in found else action] += 1
            if action == "SendMessage":
                self.sent.add(body)
            elif action == "DeleteMessage":
                self.deleted.add(body)
            self.received.update(one["Body"] for one in found.get("Messages", []))


def talk(up: Up, book: Book, action: str, asked: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Asks on a connection, AHEAD of the answers, until it ends; each request is about a body."""
    client, requests = Client(up), iter(asked)
    waiting: list[str] = []
    with contextlib.suppress(OSError, AssertionError):  # it has ended
        while True:
            for body, fields in itertools.islice(requests, AHEAD - len(waiting)):
                waiting.append(body)
                client.says(client.request(action, **fields))
            reply = client.hears()
            book.note(action, waiting.pop(0), reply)
    for body in waiting:
        book.note(action, body, None)
    client.socket.close()


def bodies(client: int) -> Iterator[str]:
    number = 0
    while True:
        yield f"{client}-{number}"
        number += 1


def preloaded(client: Client, url: str, book: Book) -> list[tuple[str, str]]:
    """Sends messages, and receives them all: bodies and handles."""
    for begin in range(0, HELD, 10):
        entries = [{"Id": str(number), "MessageBody": f"held-{number}"} for number in range(begin, begin + 10)]
        assert len(client.asks("SendMessageBatch", QueueUrl=url, Entries=entries)["Successful"]) == 10
        book.sent.update(entry["MessageBody"] for entry in entries)
    held: list[tuple[str, str]] = []
    while len(held) < HELD:
        found = client.asks("ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
        held += [(one["Body"], one["ReceiptHandle"]) for one in found]
    book.received.update(body for body, _ in held)
    return held


def traffic(up: Up, url: str, book: Book, held: list[tuple[str, str]]) -> list[threading.Thread]:
    """Clients that send, that delete what is held, and that receive and keep what they get."""
    roles: list[tuple[str, Callable[[int], Iterable[tuple[str, dict[str, Any]]]]]] = [
        ("SendMessage", lambda place: ((body, {"QueueUrl": url, "MessageBody": body}) for body in bodies(place))),
        (
            "DeleteMessage",
            lambda place: (
                (body, {"QueueUrl": url, "ReceiptHandle": one}) for body, one in cycle(held[place::CLIENTS])
            ),
        ),
        ("ReceiveMessage", lambda place: (("", {"QueueUrl": url, "WaitTimeSeconds": 1}) for _ in bodies(place))),
    ]
    threads = [
        threading.Thread(target=talk, args=(up, book, action, asked(place)))
        for action, asked in roles
        for place in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    return threads


def drained(client: Client, url: str) -> dict[str, int]:
    """Receives and deletes until nothing is left: how often each message was received by then."""
    found: dict[str, int] = {}
    end = time.monotonic() + 4 * LEASE_S
    while counts(client, url) != ("0", "0"):
        assert time.monotonic() < end, counts(client, url)
        asked = {"MaxNumberOfMessages": 10, "WaitTimeSeconds": 2, "AttributeNames": ["ApproximateReceiveCount"]}
        for one in client.asks("ReceiveMessage", QueueUrl=url, **asked).get("Messages", []):
            assert one["Body"] not in found
            found[one["Body"]] = int(one["Attributes"]["ApproximateReceiveCount"])
            client.asks("DeleteMessage", QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
    return found


def test_a_stop_answers_what_is_asked_and_loses_nothing(library: None, leaseway_up: StartUp) -> None:
    up, book = leaseway_up(environment=NATIVE), Book()
    up.wait_ready()
    asking, waiting, idle = Client(up), Client(up), Client(up)
    url = asking.asks("CreateQueue", QueueName="stopped", Attributes={"VisibilityTimeout": str(LEASE_S)})["QueueUrl"]
    empty = idle.asks("CreateQueue", QueueName="empty")["QueueUrl"]
    idle.asks("ReceiveMessage", QueueUrl=empty)  # the first is Python's, and the next the plane's
    held = preloaded(asking, url, book)
    waiting.says(waiting.request("ReceiveMessage", QueueUrl=empty, WaitTimeSeconds=20))
    eventually(lambda: metric(up, "leaseway_receives_in_progress") >= 1, "the receive waits")
    threads = traffic(up, url, book, held)
    eventually(
        lambda: min(len(book.deleted), len(book.sent) - HELD, book.received.total() - HELD) > ENOUGH,
        "there is traffic",
        60,
    )
    stopper = threading.Thread(target=up.stop, args=(signal.SIGTERM,))
    stopper.start()
    assert idle.ended()
    status, headers, found = waiting.hears()
    assert (status, headers["connection"], found) == (200, "close", {})
    assert waiting.ended()
    for thread in (*threads, stopper):
        thread.join()
    print(
        {
            "last replies": book.last,
            "unanswered": len(book.unanswered),
            "sent": len(book.sent),
            "deleted": len(book.deleted),
        }
    )
    assert up.process.returncode == 0 and not book.refused
    # Something was in flight: a last reply says that it is one. On a full machine those of one
    # kind may all be between two requests: their connections are just closed.
    assert len(book.last) >= 2, book.last

    again = leaseway_up(data=up.data, environment=NATIVE, port=up.port)
    again.wait_ready()
    late = Client(again)
    left = drained(late, url)
    assert book.sent - book.deleted - book.unanswered <= left.keys()
    assert left.keys() <= (book.sent | book.unanswered) - book.deleted
    # What no answer has carried does not count.
    assert {body: number - 1 for body, number in left.items()} == {body: book.received[body] for body in left}
    for client in (asking, waiting, idle, late):
        client.socket.close()
