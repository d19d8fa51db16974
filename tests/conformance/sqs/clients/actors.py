"""Actors of dramatiq over SQS, as its users write them. Runs in a process with dramatiq's own
packages, not with ours.

`python actors.py NAMESPACE` does each thing once and prints what came of it as JSON. The endpoint
is AWS_ENDPOINT_URL's.
"""

from __future__ import annotations

import collections
import json
import sys
import time
from typing import Any

import dramatiq
from dramatiq.middleware import AgeLimit, Callbacks, Pipelines, Retries, TimeLimit
from dramatiq_sqs import SQSBroker

MANY = 200
DELAY_MS = 2000
PREFETCH = 4

middleware = [
    AgeLimit(),
    TimeLimit(),
    Callbacks(),
    Pipelines(),
    Retries(max_retries=2, min_backoff=1000, max_backoff=1000),
]
broker = SQSBroker(
    namespace=sys.argv[1], middleware=middleware, dead_letter=True, tags={"team": "shop"}, visibility_timeout=60
)
dramatiq.set_broker(broker)

done: collections.Counter[int] = collections.Counter()
tries: collections.Counter[int] = collections.Counter()
early: list[float] = []
piped: list[int] = []


@dramatiq.actor(queue_name="work")  # type: ignore[untyped-decorator]
def work(number: int) -> None:
    done[number] += 1


@dramatiq.actor(queue_name="fragile")  # type: ignore[untyped-decorator]
def fragile(number: int) -> None:
    """Succeeds the third time, or never (odd numbers)."""
    tries[number] += 1
    if number % 2 or tries[number] < 3:
        raise RuntimeError(number)


@dramatiq.actor(queue_name="later")  # type: ignore[untyped-decorator]
def later(due: float) -> None:
    early.append(due - time.time())


@dramatiq.actor(queue_name="piped")  # type: ignore[untyped-decorator]
def add(one: int, other: int) -> int:
    piped.append(one + other)
    return one + other


def given_back() -> list[int]:
    """Numbers that a second consumer gets at once, though a first had fetched them: it gave them
    back when it was closed.
    """
    broker.declare_queue("back")
    for number in range(PREFETCH):
        message: Any = dramatiq.Message(queue_name="back", actor_name="none", args=(number,), kwargs={}, options={})
        broker.enqueue(message)
    first = broker.consume("back", prefetch=PREFETCH, timeout=1000)
    taken = next(first)
    first.requeue([taken])
    first.close()
    second = broker.consume("back", prefetch=10, timeout=1000)
    found: list[int] = []
    end = time.monotonic() + 20
    while len(found) < PREFETCH and time.monotonic() < end:
        if (message := next(second)) is not None:
            found.append(message.args[0])
            second.ack(message)
    return sorted(found)


def main() -> None:
    # Before there is a worker: one consumes every queue that is declared.
    back = given_back()
    worker = dramatiq.Worker(broker, worker_threads=8, worker_timeout=200)
    worker.queue_prefetch = 10
    for number in range(MANY):
        work.send(number)
    for number in range(4):
        fragile.send(number)
    later.send_with_options(args=(time.time() + DELAY_MS / 1000,), delay=DELAY_MS)
    (add.message(1, 2) | add.message(4)).run()
    worker.start()
    for name in ("work", "fragile", "later", "piped"):
        broker.join(name, timeout=60)
    worker.stop()
    dead = broker.dead_letter_queues["fragile"]
    dead.load()
    print(
        json.dumps(
            {
                "done": dict(done),
                "tries": dict(tries),
                "dead": int(dead.attributes["ApproximateNumberOfMessages"]),
                "early": early,
                "piped": piped,
                "given_back": back,
                "labels": broker.sqs.meta.client.list_queue_tags(QueueUrl=dead.url)["Tags"],
            }
        )
    )


if __name__ == "__main__":
    main()
