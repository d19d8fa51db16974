"""Twenty tags of EMQ with filters of their own over 100,000 messages: each gets exactly its own,
counted by the clients.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated

from tests.conformance.emq.thrift_client import ThriftClient
from tests.services import Up

MESSAGES = 100_000
SENDERS = 4
WITHIN_S = 240  # 42 were seen at load average 40 (benchmarks/README.md)


def fast(up: Up) -> ThriftClient:
    """A client by the library's C codec: the others take longer than the service."""
    client = ThriftClient(up.endpoint)
    client._make = TBinaryProtocolAccelerated
    return client


def string(text: str) -> dict[str, str]:
    return {"type": "string", "stringValue": text}


def attributes_of(number: int) -> dict[str, Any]:
    """Residues of a message's number, so that filters overlap; every seventh has a mark."""
    found = {
        "by10": string(str(number % 10)),
        "by4": string(str(number % 4)),
        "by3": {"type": "string.Sub", "stringValue": str(number % 3)},
    }
    return found | ({"seventh": string("yes")} if number % 7 == 0 else {})


def several(operator: int, **values: dict[str, str]) -> dict[str, Any]:
    return {"attributesFilter": {"attributes": values, "logicalOperator": operator}}


# Tag -> its filter, and which numbers are its own.
TAGS: dict[str, tuple[dict[str, Any], Any]] = {
    **{
        f"ten{d}": ({"attributeName": "by10", "attributeValue": string(str(d))}, lambda n,
                    d=d: n % 10 == d) for d in range(10)
    },
    **{
        f"both{d}": (several(0, by10=string(str(d)), by4=string(str(d % 4))), lambda n,
                     d=d: n % 10 == d and n % 4 == d % 4)
        for d in range(5)
    },
    "marked": ({"attributeName": "seventh", "attributeValue": {"type": "empty"}}, lambda n: n % 7 == 0),
    "either": (several(1, by10=string("3"), seventh={"type": "empty"}), lambda n: n % 10 == 3 or n % 7 == 0),
    "three": (several(0, by10=string("1"), by4=string("1"), seventh={"type": "empty"}),
              lambda n: n % 10 == n % 4 == 1 and n % 7 == 0),
    "sub": (several(0, by3={"type": "string.Sub", "stringValue": "1"}, by10=string("7")),
            lambda n: n % 3 == 1 and n % 10 == 7),
    "nobody": ({"attributeName": "by3", "attributeValue": string("1")}, lambda n: False),  # another type
}  # fmt: skip


def send(client: ThriftClient, queue: str, numbers: range) -> None:
    for first in range(0, len(numbers), 100):
        entries = [
            {"entryId": str(n), "messageBody": str(n), "messageAttributes": attributes_of(n)}
            for n in islice(numbers, first, first + 100)
        ]
        told = client.call("sendMessageBatch", queueName=queue, sendMessageBatchRequestEntryList=entries)
        assert len(told["successful"]) == len(entries)


def read(client: ThriftClient, queue: str, tag: str, done: threading.Event) -> Counter[int]:
    """All that a tag gets until the senders are done and nothing comes for 2 s."""
    got: Counter[int] = Counter()
    while True:
        was_done = done.is_set()
        some = client.call(
            "receiveMessage", queueName=queue, tagName=tag, maxReceiveMessageNumber=100, maxReceiveMessageWaitSeconds=2
        )
        got.update(int(one["messageBody"]) for one in some)
        if some:
            entries = [{"receiptHandle": one["receiptHandle"]} for one in some]
            told = client.call("deleteMessageBatch", queueName=queue, deleteMessageBatchRequestEntryList=entries)
            assert len(told["successful"]) == len(entries)
        elif was_done:
            return got


@pytest.mark.timeout(600)
def test_each_of_twenty_tags_gets_exactly_its_own_of_a_hundred_thousand(up: Up) -> None:
    assert len(TAGS) == 20
    control = fast(up)
    queue = control.call("createQueue", queueName="tags", queueAttribute={"invisibilitySeconds": 600})["queueName"]
    for tag, (filter_, _) in TAGS.items():
        control.call("createTag", queueName=queue, tagName=tag, **filter_)
    clients = [fast(up) for _ in range(SENDERS + len(TAGS))]
    began, done = time.monotonic(), threading.Event()
    with ThreadPoolExecutor(len(clients)) as pool:
        try:
            reads = {
                tag: pool.submit(read, client, queue, tag, done) for tag, client in zip(TAGS, clients, strict=False)
            }
            sends = [
                pool.submit(send, client, queue, range(first, MESSAGES, SENDERS))
                for first, client in enumerate(clients[len(TAGS) :])
            ]
            for sent in sends:
                sent.result()
        finally:
            done.set()
        sent_s = time.monotonic() - began
        got = {tag: one.result() for tag, one in reads.items()}
    took_s = time.monotonic() - began
    print(f"sent in {sent_s:.1f} s, read in {took_s:.1f} s: {sum(map(len, got.values()))} deliveries")
    for tag, (_, is_own) in TAGS.items():
        wanted = Counter(n for n in range(MESSAGES) if is_own(n))
        assert got[tag] == wanted, (
            f"{tag}: {len(got[tag])} of {len(wanted)}, {sum(got[tag].values()) - len(got[tag])} twice"
        )
        state = control.call("getTagInfo", queueName=queue, tagName=tag)["tagState"]
        assert state["approximateMessageNumber"] == 0, tag
    for client in (control, *clients):
        client.close()
    assert took_s < WITHIN_S
