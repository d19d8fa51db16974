"""What the clients of the hot queue do, by SQS JSON: send, receive and ack, and leave too early."""

from __future__ import annotations

import random

from tests.faults.client import Client
from tests.faults.queues import LEASE_MS
from tests.faults.sqs_client import SqsClient

QUEUE = "hot"
LEASES_S = (LEASE_MS // 1000, LEASE_MS // 1000, LEASE_MS // 1000, 2)


def sender(client: Client, rest: random.Random) -> float:
    """Sends one body or ten."""
    SqsClient(client).send(QUEUE, [client.uid(QUEUE) for _ in range(rest.choice((1, 10)))])
    return 0.02


def receiver(client: Client, rest: random.Random) -> float:
    """Acks what it gets, now and then in two requests, or not at all."""
    sqs = SqsClient(client)
    most, wait_s, lease_s = rest.choice((1, 10, 10)), rest.choice((0, 1, 1)), rest.choice(LEASES_S)
    leased = sqs.receive(QUEUE, most=most, wait_s=wait_s, lease_s=lease_s, counts=rest.random() < 0.2)
    if leased is None:
        return 0.1
    if rest.random() < 0.01:
        return 0.0
    at = rest.randrange(len(leased) + 1) if rest.random() < 0.1 else len(leased)
    sqs.ack(QUEUE, leased[:at])
    sqs.ack(QUEUE, leased[at:])
    return 0.0 if leased else 0.02


def leaver(client: Client, rest: random.Random) -> float:
    """Leaves before its long poll is answered, or while the answer is on its way."""
    SqsClient(client).leave(QUEUE, rest.choice((0.0, 0.001, 0.003, 0.05)))
    return rest.uniform(0.05, 0.3)
