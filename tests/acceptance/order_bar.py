"""What is promised of the order in FIFO queues while consumers lose, forget and delay, and workers
are killed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from typing import Any

from tests.acceptance.fifo_bars import HIGH, make_fifo, send_all
from tests.acceptance.sqs_client import Refused, Sqs, in_threads
from tests.services import Up

# Where there are few messages all may be done soon.
FIRST_KILL_S = 0.3
# A worker that is killed between two records of an atomic batch leaves a torn one, and in a FIFO
# queue what is behind it waits until a worker has known that for 40 s; one that is killed meanwhile
# knows nothing any more.
STILL_S = 120.0


class Order:
    """Who has seen and deleted which message of which group. A message may be delivered only once
    all before it are being deleted, or come before it in the same answer."""

    def __init__(self, groups: int, each: int) -> None:
        self._lock = threading.Lock()
        # Two consumers may be at it with handles of different receives: one is refused, the other
        # done.
        self._deleting = Counter[tuple[int, int]]()
        self._missing = {(group, number) for group in range(groups) for number in range(each)}
        self.breaches: list[str] = []
        self.deliveries = 0
        self.refused = 0
        self._moved = time.monotonic()

    @property
    def left(self) -> list[tuple[int, int]]:
        """What is not deleted yet, in order."""
        with self._lock:
            return sorted(self._missing)

    def waits(self) -> bool:
        """Whether something is left, and the last kill or delete of a message is no longer ago than
        STILL_S: how long all of it takes is the machine's.
        """
        return bool(self._missing) and time.monotonic() - self._moved < STILL_S

    def note_kill(self) -> None:
        """What was on its way may have to be found again."""
        self._moved = time.monotonic()

    def delivered(self, messages: list[dict[str, Any]]) -> list[tuple[int, int]]:
        """Notes an answer; group and number of each message."""
        found = [
            (int(group), int(number)) for group, _, number in (message["Body"].partition("-") for message in messages)
        ]
        with self._lock:
            self.deliveries += len(found)
            here: dict[int, set[int]] = defaultdict(set)
            for group, number in found:
                before = [
                    n
                    for n in range(number)
                    if (group, n) in self._missing and not self._deleting[group, n] and n not in here[group]
                ]
                if before:
                    self.breaches.append(f"{group}-{number} came before {sorted(before)[:5]}")
                here[group].add(number)
        return found

    def deleting(self, key: tuple[int, int]) -> None:
        """From now on the message may be gone."""
        with self._lock:
            self._deleting[key] += 1

    def deleted(self, key: tuple[int, int]) -> None:
        with self._lock:
            self._deleting[key] -= 1
            if key in self._missing:
                self._missing.remove(key)
                self._moved = time.monotonic()

    def not_deleted(self, key: tuple[int, int]) -> None:
        """The service has refused: this handle did nothing."""
        with self._lock:
            self.refused += 1
            self._deleting[key] -= 1


def _consume(up: Up, url: str, order: Order, seed: int) -> None:
    rest, client = random.Random(seed), Sqs(up.endpoint)
    asked = {"QueueUrl": url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 1, "VisibilityTimeout": 2}
    while order.waits():
        if rest.random() < 0.02:
            client.abandon("ReceiveMessage", rest.random() * 0.02, **asked)
            continue
        try:
            messages = client.call("ReceiveMessage", **asked).get("Messages", [])
        except Refused:
            time.sleep(0.05)
            continue
        keys = order.delivered(messages)
        fate = rest.random()
        if fate < 0.03:
            continue  # never heard of again
        if fate < 0.06:
            time.sleep(2.2)  # too late: its deletes are refused
        kept = rest.randint(1, len(keys)) if keys and fate > 0.9 else len(keys)
        for key, message in list(zip(keys, messages, strict=True))[:kept]:
            _delete(client, url, order, key, message["ReceiptHandle"])
    client.close()


def _delete(client: Sqs, url: str, order: Order, key: tuple[int, int], handle: str) -> None:
    """Deletes; asks again while the outcome is in doubt, which a message that is gone answers as
    done.
    """
    order.deleting(key)
    try:
        client.insist("DeleteMessage", QueueUrl=url, ReceiptHandle=handle)
    except Refused as error:
        if error.status != 400:
            raise
        order.not_deleted(key)
        return
    order.deleted(key)


class Killer(threading.Thread):
    """Kills one worker after the other, hard, the first soon after the start, then every `every_s`
    seconds, `most` times; never the last that serves.
    """

    def __init__(self, up: Up, order: Order, every_s: float, most: int) -> None:
        super().__init__()
        self._up, self._order, self._every_s, self._most = up, order, every_s, most
        self._ended, self.kills = threading.Event(), 0

    def run(self) -> None:
        while self.kills < self._most and not self._ended.wait(self._every_s if self.kills else FIRST_KILL_S):
            pids = self._up.workers
            if len(pids) > 1:
                # What was killed before may still have been among them, and be gone now.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[self.kills % 2], signal.SIGKILL)
                    self.kills += 1
                    self._order.note_kill()

    def end(self) -> int:
        self._ended.set()
        self.join()
        return self.kills


def _counts(up: Up, url: str) -> dict[str, Any]:
    """What the service says of the queue: where a message is that did not come."""
    client = Sqs(up.endpoint)
    found = client.insist("GetQueueAttributes", QueueUrl=url, AttributeNames=["All"])["Attributes"]
    client.close()
    return {name: value for name, value in found.items() if name.startswith("ApproximateNumber")}


def order_under_kills(
    up: Up, groups: int, each: int, consumers: int, kill_every_s: float, kills: int
) -> dict[str, Any]:
    """Senders, consumers that lose, forget and delay, workers killed: breaches of order, and what
    never came.
    """
    url = make_fifo(up, f"order-{groups}-{each}.fifo", **HIGH)
    order = Order(groups, each)
    killer = Killer(up, order, kill_every_s, kills)
    senders = 4

    def send(number: int) -> None:
        client = Sqs(up.endpoint)
        for at in range(0, each, 5):
            for group in range(number, groups, senders * 2):
                pair = [group, *([group + senders] if group + senders < groups else [])]
                keys = [f"{g}-{n}" for g in pair for n in range(at, min(at + 5, each))]
                ids = [(key, f"g{key.partition('-')[0]}") for key in keys]
                send_all(
                    client,
                    url,
                    [
                        {"Id": key, "MessageBody": key, "MessageGroupId": group, "MessageDeduplicationId": key}
                        for key, group in ids
                    ],
                )
        client.close()

    killer.start()
    try:
        took = in_threads(senders + consumers, lambda n: send(n) if n < senders else _consume(up, url, order, n))
    finally:
        killed = killer.end()
    return {
        "messages": groups * each,
        "breaches": len(order.breaches),
        "first_breaches": order.breaches[:5],
        "lost": [order.left, _counts(up, url)] if order.left else [],
        "deliveries": order.deliveries,
        "deletes_refused": order.refused,
        "workers_killed": killed,
        "seconds": round(took, 1),
    }
