"""What is promised of FIFO queues: each deduplication id once over a wipe of Redis, and the time to
the head of a group.

Each function makes its queue, runs, and answers figures.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import redis

from tests.acceptance.sqs_client import Sqs, in_threads
from tests.services import Up

HIGH = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


def make_fifo(up: Up, name: str, **attributes: str) -> str:
    client = Sqs(up.endpoint)
    url = str(client.insist("CreateQueue", QueueName=name, Attributes={"FifoQueue": "true", **attributes})["QueueUrl"])
    client.close()
    return url


def send_all(client: Sqs, url: str, entries: list[dict[str, str]]) -> None:
    """Sends a batch until each entry has been answered as sent; what is in doubt is sent again,
    with the same ids.
    """
    while entries:
        answer = client.insist("SendMessageBatch", QueueUrl=url, Entries=entries)
        again = {one["Id"] for one in answer.get("Failed", ())}
        entries = [entry for entry in entries if entry["Id"] in again]


def _batches(client: Sqs, url: str, keys: list[str], word: str) -> None:
    for at in range(0, len(keys), 10):
        ids = [(f"{word}{key}", key) for key in keys[at : at + 10]]
        send_all(
            client,
            url,
            [{"Id": one, "MessageBody": one, "MessageGroupId": key, "MessageDeduplicationId": one} for one, key in ids],
        )


def head_latency(up: Up, groups: int, rounds: int) -> dict[str, Any]:
    """Milliseconds from a send to a fresh group until a waiting receive has it, while `groups`
    groups with a message behind are shut.
    """
    url = make_fifo(up, f"head-{groups}.fifo")
    sender, receiver, keys = Sqs(up.endpoint), Sqs(up.endpoint), [f"g{n}" for n in range(groups)]
    _batches(sender, url, keys, "first-")
    leased = 0
    while leased < groups:
        answer = receiver.insist(
            "ReceiveMessage", QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=43_200, WaitTimeSeconds=20
        )
        assert "Messages" in answer, f"only {leased} of {groups} came"
        leased += len(answer["Messages"])
    _batches(sender, url, keys, "second-")
    times = sorted(_heads(sender, receiver, url, rounds))
    sender.close()
    receiver.close()
    return {
        "groups": groups,
        "p50_ms": round(statistics.median(times), 2),
        "p99_ms": round(times[int(len(times) * 0.99)], 2),
        "max_ms": round(times[-1], 2),
    }


def _heads(sender: Sqs, receiver: Sqs, url: str, rounds: int) -> Iterator[float]:
    for number in range(rounds):
        key = f"fresh-{number}"
        found: list[Any] = []

        def wait(_: int, found: list[Any] = found) -> None:
            messages = receiver.call("ReceiveMessage", QueueUrl=url, WaitTimeSeconds=10)["Messages"]
            found += [time.perf_counter(), *messages]

        waiting = threading.Thread(target=wait, args=(0,))
        waiting.start()
        time.sleep(0.02)
        began = time.perf_counter()
        sender.call("SendMessage", QueueUrl=url, MessageBody=key, MessageGroupId=key, MessageDeduplicationId=key)
        waiting.join()
        at, message = found
        assert message["Body"] == key, message["Body"]
        sender.call("DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        yield (at - began) * 1000


def dedup_over_a_wipe(up: Up, sends: int, senders: int) -> dict[str, Any]:
    """`sends` sends, each deduplication id twice, Redis emptied in the middle: how many came, and
    how often.
    """
    url = make_fifo(up, f"dedup-{sends}.fifo")
    names = [f"m{n}" for n in range(sends // 2)] * 2
    random.Random(5).shuffle(names)
    answered: dict[str, set[str]] = defaultdict(set)
    done, wiped, lock = Counter[str](), threading.Event(), threading.Lock()

    def send(number: int) -> None:
        client = Sqs(up.endpoint)
        for name in names[number::senders]:
            given = {"MessageBody": name, "MessageGroupId": f"g{int(name[1:]) % 50}", "MessageDeduplicationId": name}
            sent = client.insist("SendMessage", QueueUrl=url, **given)
            with lock:
                done["sends"] += 1
                answered[name].add(sent["MessageId"])
                wipe = done["sends"] >= sends // 2 and not wiped.is_set()
                if wipe:
                    wiped.set()
            if wipe:
                with redis.Redis.from_url(up.run["redis"]["url"]) as server:
                    server.flushall()
        client.close()

    took = in_threads(senders, send)
    seen = drain(up, url, sends // 2)
    return {
        "sends": done["sends"],
        "delivered": sum(seen.values()),
        "distinct": len(seen),
        "more_than_once": sum(1 for count in seen.values() if count > 1),
        "ids_with_two_answers": sum(1 for ids in answered.values() if len(ids) > 1),
        "seconds": round(took, 1),
    }


# A rebuild on a full machine took 12 s.
MISSING_S = 60.0


def drain(up: Up, url: str, expected: int, threads: int = 4, quiet_s: int = 3) -> Counter[str]:
    """Receives and deletes; how often each body came. When as many have come as are expected, until
    a receive finds nothing for `quiet_s`; else until nothing came for MISSING_S.
    """
    seen, lock, came_at = Counter[str](), threading.Lock(), time.monotonic()

    def work(_: int) -> None:
        client = Sqs(up.endpoint)
        asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": quiet_s, "VisibilityTimeout": 60}
        nonlocal came_at
        while True:
            messages = client.insist("ReceiveMessage", **asked).get("Messages")
            if not messages:
                with lock:
                    if seen.total() >= expected or time.monotonic() - came_at > MISSING_S:
                        break
                continue
            entries = [{"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]} for n, message in enumerate(messages)]
            answer = client.insist("DeleteMessageBatch", QueueUrl=url, Entries=entries)
            assert "Failed" not in answer, answer
            with lock:
                seen.update(message["Body"] for message in messages)
                came_at = time.monotonic()
        client.close()

    in_threads(threads, work)
    return seen
