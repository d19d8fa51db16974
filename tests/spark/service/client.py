"""A client that counts what it does to queues that are purged, deleted and made again, FIFO sends
that repeat, and stale acks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.spark.drive import Person

NAMES = ("purged", "gone", "ordered", "ordered-purged")


class Client:
    """Counts what it does: messages by (queue, what), and handles of which it was told they are
    stale.
    """

    def __init__(self, endpoint: str) -> None:
        self.olga, self.alice = Person(endpoint, "olga"), Person(endpoint, "alice")
        self.messages: Counter[tuple[str, str]] = Counter()
        self.requests: Counter[tuple[str, str]] = Counter()
        self.stale: Counter[tuple[str, str]] = Counter()

    def close(self) -> None:
        self.olga.close()
        self.alice.close()

    def make(self, queue: str, **settings: Any) -> None:
        self.olga.call("POST", "/v1/queues", {"name": queue, "partitions": 1, **settings})

    def send(self, queue: str, bodies: list[str], *, repeats: bool = False, **fields: Any) -> None:
        messages = [{"body": body, **fields} for body in bodies]
        self.alice.call("POST", f"/v1/queues/{queue}/messages", {"messages": messages})
        self.requests[queue, "sent"] += 1
        self.messages[queue, "sent"] += 0 if repeats else len(bodies)

    def receive(self, queue: str, most: int) -> list[str]:
        got: list[str] = []
        while len(got) < most:
            answer = self.olga.call("POST", f"/v1/queues/{queue}/receive", {"max": most - len(got), "wait_seconds": 5})
            assert answer["messages"]
            got += [message["handle"] for message in answer["messages"]]
            self.requests[queue, "received"] += 1
        self.messages[queue, "leased"] += most
        return got

    def ack(self, queue: str, handles: list[str]) -> None:
        for result in self.olga.call("POST", f"/v1/queues/{queue}/ack", {"handles": handles})["results"]:
            if result["status"] == "ok":
                self.messages[queue, "acked"] += 1
            else:
                self.stale[queue, result["reason"]] += 1


def use_up(client: Client) -> None:
    """The whole of what it does; three messages of another life are left at the end."""
    fifo = {"fifo": True, "content_dedup": True}
    for name in NAMES:
        client.make(name, **(fifo if name.startswith("ordered") else {}))
    for number in range(4):
        client.send("purged", [f"message {number} {n}" for n in range(25)])
    handles = client.receive("purged", 40)
    client.ack("purged", handles[:30])
    client.send("gone", [f"message {n}" for n in range(12)])
    client.ack("gone", client.receive("gone", 5))
    for name in NAMES[2:]:
        for text in ("a", "b", "c", "d"):
            client.send(name, [text], group="g")
        for text in ("b", "a", "b"):
            client.send(name, [text], group="g", repeats=True)
        client.ack(name, client.receive(name, 1))
    for name in ("purged", "ordered-purged"):
        client.olga.call("POST", f"/v1/queues/{name}/purge")
    client.olga.call("DELETE", "/v1/queues/gone")
    # Settled by their acks, and by the purge; one by one and together.
    for handle in handles[:6]:
        client.ack("purged", [handle])
    client.ack("purged", handles[25:])
    for number in range(20):
        client.send("purged", [f"later {number}"])
    client.make("gone")
    client.send("gone", ["another life"] * 3)
