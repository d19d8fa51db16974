"""Standard queues: what is sent one after the other comes in that order, as peers have it and
clients' own tests ask for.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.sqs.conftest import bodies


def received(sqs: Any, queue: str, most: int, wait_s: int) -> list[str]:
    """What receives for `most` give, each deleted before the next is asked for."""
    found: list[str] = []
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=most, WaitTimeSeconds=wait_s).get("Messages"):
        found += bodies(messages)
        for message in messages:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return found


@pytest.mark.parametrize(("most", "wait_s"), [(1, 0), (1, 1), (3, 0), (10, 0), (10, 1)])
def test_messages_come_in_the_order_in_which_they_were_sent(sqs: Any, queue: str, most: int, wait_s: int) -> None:
    for turn in range(3):
        texts = [f"{turn}-{number}" for number in range(30)]
        for text in texts:
            sqs.send_message(QueueUrl=queue, MessageBody=text)
        assert received(sqs, queue, most, wait_s) == texts


def test_batches_come_in_the_order_of_their_entries(sqs: Any, queue: str) -> None:
    """25 batches, so that they are in several partitions."""
    texts = [f"{number:03d}" for number in range(250)]
    for at in range(0, 250, 10):
        sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": text, "MessageBody": text} for text in texts[at : at + 10]])

    assert received(sqs, queue, 7, 0) == texts
