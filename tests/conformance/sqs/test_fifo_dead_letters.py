"""Dead letters of FIFO queues: kinds, what a letter keeps, and move tasks."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.conformance.sqs.conftest import HIGH, INVALID, MakeFifo, Refused, bodies, counts, put, take
from tests.conformance.sqs.test_dead_letters import arn, ended, wait_counts


def policy(dead: str, count: int = 1) -> dict[str, str]:
    return {
        "RedrivePolicy": json.dumps({"deadLetterTargetArn": arn(dead.rpartition("/")[2]), "maxReceiveCount": count})
    }


def kill(sqs: Any, url: str, most: int) -> list[dict[str, Any]]:
    """Receives once what then dies, in order; waits until the group has gone on."""
    got = take(sqs, url, most, WaitTimeSeconds=5)
    for message in got:
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    return got


def settle(sqs: Any, url: str, ready: int) -> None:
    """Receives until only `ready` messages are left: each receive lets the first of a group die."""
    for _ in range(60):
        assert take(sqs, url) == []
        if counts(sqs, url) == (ready, 0, 0):
            return
        time.sleep(0.1)
    raise AssertionError(counts(sqs, url))


@pytest.mark.parametrize(("source", "target"), [(".fifo", ""), ("", ".fifo")])
def test_a_dead_letter_queue_must_be_of_the_same_kind(
    sqs: Any, name: str, refused: Refused, source: str, target: str
) -> None:
    fifo = {"FifoQueue": "true"}
    dead = sqs.create_queue(QueueName=f"{name}-dead{target}", Attributes=fifo if target else {})["QueueUrl"]
    given = policy(dead)
    made = sqs.create_queue(QueueName=f"{name}{source}", Attributes=fifo if source else {})["QueueUrl"]

    assert refused(sqs.set_queue_attributes, QueueUrl=made, Attributes=given) == INVALID
    assert (
        refused(sqs.create_queue, QueueName=f"{name}-b{source}", Attributes={**given, **(fifo if source else {})})
        == INVALID
    )


def test_a_dead_letter_keeps_group_id_and_count_and_its_group_goes_on(sqs: Any, make_fifo: MakeFifo, name: str) -> None:
    dead = make_fifo("-dead")
    url = make_fifo(**policy(dead, 2))
    (sent, _) = put(sqs, url, "a", "1", "2")
    for _ in range(2):
        (before,) = kill(sqs, url, 1)
    time.sleep(0.05)
    (after,) = take(sqs, url, 1, WaitTimeSeconds=5)
    (letter,) = take(sqs, dead, WaitTimeSeconds=5)
    shown = letter["Attributes"]

    assert (before["Body"], after["Body"], letter["Body"], letter["MessageId"]) == ("1", "2", "1", sent["MessageId"])
    assert (before["Attributes"]["ApproximateReceiveCount"], shown["ApproximateReceiveCount"]) == ("2", "3")
    assert (shown["MessageGroupId"], shown["MessageDeduplicationId"]) == ("a", sent["MessageId"])
    assert shown["DeadLetterQueueSourceArn"] == arn(f"{name}.fifo")
    assert int(shown["SentTimestamp"]) > int(before["Attributes"]["SentTimestamp"])


def test_letters_of_a_group_come_in_order(sqs: Any, make_fifo: MakeFifo) -> None:
    dead = make_fifo("-dead", **HIGH)
    url = make_fifo(**policy(dead))
    for number in range(3):
        put(sqs, url, "a", f"a{number}")
        put(sqs, url, "b", f"b{number}")
    assert len(kill(sqs, url, 6)) == 6
    settle(sqs, url, 0)
    wait_counts(sqs, dead, 6)
    got = bodies(take(sqs, dead))

    assert [body for body in got if body[0] == "a"] == ["a0", "a1", "a2"]
    assert [body for body in got if body[0] == "b"] == ["b0", "b1", "b2"]


def test_a_redrive_allow_policy_holds_for_fifo_queues(
    sqs: Any, make_fifo: MakeFifo, name: str, refused: Refused
) -> None:
    allow = {"redrivePermission": "byQueue", "sourceQueueArns": [arn(f"{name}-a.fifo")]}
    dead = make_fifo("-dead", RedriveAllowPolicy=json.dumps(allow))
    url = make_fifo("-a", **policy(dead))

    assert refused(sqs.set_queue_attributes, QueueUrl=make_fifo("-b"), Attributes=policy(dead)) == INVALID
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]


def test_letters_go_back_each_to_its_own_source_in_order(sqs: Any, make_fifo: MakeFifo, name: str) -> None:
    dead = make_fifo("-dead")
    urls = [make_fifo(f"-s{n}", **policy(dead)) for n in range(2)]
    for n, url in enumerate(urls):
        put(sqs, url, "a", *(f"{n}.{number}" for number in range(3)))
        assert len(kill(sqs, url, 3)) == 3
        settle(sqs, url, 0)
    wait_counts(sqs, dead, 6)

    sqs.start_message_move_task(SourceArn=arn(f"{name}-dead.fifo"))
    task = ended(sqs, f"{name}-dead.fifo")

    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 6)
    for n, url in enumerate(urls):
        got = take(sqs, url, WaitTimeSeconds=5)
        assert bodies(got) == [f"{n}.{number}" for number in range(3)]
        assert {(m["Attributes"]["MessageGroupId"], m["Attributes"]["ApproximateReceiveCount"]) for m in got} == {
            ("a", "1")
        }
    assert counts(sqs, dead) == (0, 0, 0)


def test_a_task_needs_a_destination_of_the_same_kind(
    sqs: Any, make_fifo: MakeFifo, name: str, queue: str, refused: Refused
) -> None:
    dead = make_fifo("-dead")
    make_fifo(**policy(dead))

    asked = {"SourceArn": arn(f"{name}-dead.fifo"), "DestinationArn": arn(name)}
    assert refused(sqs.start_message_move_task, **asked) == INVALID
