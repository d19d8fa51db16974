"""Dead letters: what a message keeps, sources, RedriveAllowPolicy, and the three actions on move
tasks.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from typing import Any
from uuid import UUID

import pytest

from tests.conformance.sqs.conftest import ABSENT, EXISTS, INVALID, Refused, counts, receive_all, text

NO_RESOURCE = ("ResourceNotFoundException", "ResourceNotFoundException", 404)
EVERYTHING = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"]}


def arn(name: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{name}"


@pytest.fixture
def dead(sqs: Any, name: str) -> str:
    """The URL of a queue for dead letters, named after the queue."""
    return str(sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"])


def source(sqs: Any, name: str, dead: str, count: int = 1) -> str:
    policy = json.dumps({"deadLetterTargetArn": arn(dead.rpartition("/")[2]), "maxReceiveCount": count})
    return str(sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})["QueueUrl"])


def kill(sqs: Any, url: str, bodies: list[str]) -> list[dict[str, Any]]:
    """Sends messages and receives each until it is dead; what the first receive said of each."""
    sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)])
    found = receive_all(sqs, url, len(bodies), VisibilityTimeout=0, **EVERYTHING)
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    return found


def wait_counts(sqs: Any, url: str, ready: int) -> None:
    for _ in range(100):
        if counts(sqs, url)[0] == ready:
            return
        time.sleep(0.1)
    raise AssertionError(f"{counts(sqs, url)} in {url}, expected {ready} ready")


# What a message keeps


def test_a_dead_letter_keeps_its_id_its_time_and_its_count(sqs: Any, name: str, dead: str) -> None:
    url = source(sqs, name, dead, 2)
    sent = sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes={"a": text("b")})
    for _ in range(2):
        (before,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, VisibilityTimeout=0, **EVERYTHING)["Messages"]
    assert "Messages" not in sqs.receive_message(QueueUrl=url)
    (got,) = receive_all(sqs, dead, 1, **EVERYTHING)

    assert (got["MessageId"], got["Body"], got["MessageAttributes"]) == (sent["MessageId"], "x", {"a": text("b")})
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert got["Attributes"]["DeadLetterQueueSourceArn"] == arn(name)
    assert got["Attributes"]["SentTimestamp"] == before["Attributes"]["SentTimestamp"]
    assert (before["Attributes"]["ApproximateReceiveCount"], got["Attributes"]["ApproximateReceiveCount"]) == ("2", "3")


def test_a_queue_may_be_its_own_dead_letter_queue(sqs: Any, name: str) -> None:
    """What dies begins again behind the others, by the same id; only the count goes on."""
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    policy = json.dumps({"deadLetterTargetArn": arn(name), "maxReceiveCount": 2})
    for _ in range(2):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
    assert sqs.list_dead_letter_source_queues(QueueUrl=url)["queueUrls"] == [url]
    sent = sqs.send_message(QueueUrl=url, MessageBody="x")

    told = []
    for _ in range(6):
        (got,) = receive_all(sqs, url, 1, VisibilityTimeout=0, **EVERYTHING)
        told.append((got["MessageId"], got["Body"], int(got["Attributes"]["ApproximateReceiveCount"])))
    assert told == [(sent["MessageId"], "x", count) for count in range(1, 7)]
    assert got["Attributes"]["DeadLetterQueueSourceArn"] == arn(name)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
    wait_counts(sqs, url, 0)

    handle = sqs.start_message_move_task(SourceArn=arn(name))["TaskHandle"]
    assert UUID(json.loads(b64decode(handle))["taskId"])
    other = sqs.create_queue(QueueName=f"{name}-other")["QueueUrl"]
    with pytest.raises(sqs.exceptions.ClientError):
        sqs.set_queue_attributes(QueueUrl=other, Attributes={"RedrivePolicy": policy})


# ListDeadLetterSourceQueues, RedriveAllowPolicy


def test_the_sources_of_a_dead_letter_queue_are_listed_in_pages(
    sqs: Any, name: str, queue: str, dead: str, refused: Refused
) -> None:
    urls = [source(sqs, f"{name}-s{n}", dead) for n in range(3)]
    first = sqs.list_dead_letter_source_queues(QueueUrl=dead, MaxResults=2)
    second = sqs.list_dead_letter_source_queues(QueueUrl=dead, MaxResults=2, NextToken=first["NextToken"])

    assert (first["queueUrls"], second["queueUrls"], "NextToken" in second) == (urls[:2], urls[2:], False)
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == urls
    assert not sqs.list_dead_letter_source_queues(QueueUrl=queue).get("queueUrls")
    assert refused(sqs.list_dead_letter_source_queues, QueueUrl=f"{dead}-nowhere") == ABSENT
    assert refused(sqs.list_dead_letter_source_queues, QueueUrl=dead, MaxResults=1001) == INVALID


def allow(sqs: Any, dead: str, policy: Any) -> Any:
    sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": json.dumps(policy) if policy else ""})
    found = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["RedriveAllowPolicy"]).get("Attributes", {})
    return found.get("RedriveAllowPolicy")


def test_a_dead_letter_queue_says_who_may_be_its_source(sqs: Any, name: str, dead: str, refused: Refused) -> None:
    policy = json.dumps({"deadLetterTargetArn": arn(f"{name}-dead"), "maxReceiveCount": 1})
    only = {"redrivePermission": "byQueue", "sourceQueueArns": [arn(f"{name}-a")]}

    assert json.loads(allow(sqs, dead, only)) == only
    source(sqs, f"{name}-a", dead)
    assert refused(sqs.create_queue, QueueName=f"{name}-b", Attributes={"RedrivePolicy": policy}) == INVALID
    assert json.loads(allow(sqs, dead, {"redrivePermission": "denyAll"})) == {"redrivePermission": "denyAll"}
    assert refused(sqs.create_queue, QueueName=f"{name}-b", Attributes={"RedrivePolicy": policy}) == INVALID
    assert json.loads(allow(sqs, dead, {"redrivePermission": "allowAll"})) == {"redrivePermission": "allowAll"}
    source(sqs, f"{name}-b", dead)
    assert allow(sqs, dead, None) is None


def test_a_redrive_allow_policy_makes_another_queue(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    assert (
        refused(sqs.create_queue, QueueName=name, Attributes={"RedriveAllowPolicy": '{"redrivePermission": "denyAll"}'})
        == EXISTS
    )


@pytest.mark.parametrize(
    "policy",
    [
        "{",
        "[]",
        '{"redrivePermission": "some"}',
        '{"redrivePermission": "byQueue"}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": []}',
        '{"redrivePermission": "byQueue", "sourceQueueArns": ["nowhere"]}',
        '{"redrivePermission": "denyAll", "sourceQueueArns": ["arn:aws:sqs:us-east-1:000000000000:x"]}',
        json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [arn(f"q{n}") for n in range(11)]}),
    ],
)
def test_a_bad_redrive_allow_policy_is_refused(sqs: Any, queue: str, refused: Refused, policy: str) -> None:
    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes={"RedriveAllowPolicy": policy}) == INVALID


# StartMessageMoveTask, CancelMessageMoveTask, ListMessageMoveTasks


def ended(sqs: Any, name: str) -> dict[str, Any]:
    """The newest task of a source, when it has ended."""
    for _ in range(150):
        (task,) = sqs.list_message_move_tasks(SourceArn=arn(name))["Results"]
        if task["Status"] != "RUNNING":
            return dict(task)
        time.sleep(0.1)
    raise AssertionError(task)


def test_dead_letters_go_back_each_to_its_own_source(sqs: Any, name: str, dead: str) -> None:
    urls = [source(sqs, f"{name}-s{n}", dead) for n in range(2)]
    before = [kill(sqs, url, [f"{n}a", f"{n}b"]) for n, url in enumerate(urls)]
    wait_counts(sqs, dead, 4)
    began = time.time() * 1000

    handle = sqs.start_message_move_task(SourceArn=arn(f"{name}-dead"))["TaskHandle"]
    task = ended(sqs, f"{name}-dead")

    assert (
        handle
        and "TaskHandle" not in task
        and "DestinationArn" not in task
        and "MaxNumberOfMessagesPerSecond" not in task
    )
    assert (task["Status"], task["SourceArn"], task["ApproximateNumberOfMessagesMoved"]) == (
        "COMPLETED",
        arn(f"{name}-dead"),
        4,
    )
    assert task["ApproximateNumberOfMessagesToMove"] == 4
    assert abs(task["StartedTimestamp"] - began) < 30_000
    for n, url in enumerate(urls):
        got = receive_all(sqs, url, 2, **EVERYTHING)
        assert sorted(message["Body"] for message in got) == [f"{n}a", f"{n}b"]
        assert not {message["MessageId"] for message in got} & {message["MessageId"] for message in before[n]}
        assert {message["Attributes"]["ApproximateReceiveCount"] for message in got} == {"1"}
        assert all("DeadLetterQueueSourceArn" not in message["Attributes"] for message in got)
    assert counts(sqs, dead) == (0, 0, 0)


def test_a_task_at_a_rate_can_be_cancelled_and_another_waits_for_its_end(
    sqs: Any, name: str, dead: str, refused: Refused
) -> None:
    source(sqs, name, dead)
    target = sqs.create_queue(QueueName=f"{name}-target")["QueueUrl"]
    sqs.send_message_batch(QueueUrl=dead, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(10)])
    asked = {"SourceArn": arn(f"{name}-dead"), "DestinationArn": arn(f"{name}-target")}

    handle = sqs.start_message_move_task(**asked, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    assert refused(sqs.start_message_move_task, **asked) == INVALID
    (task,) = sqs.list_message_move_tasks(SourceArn=arn(f"{name}-dead"))["Results"]
    assert (task["Status"], task["TaskHandle"], task["DestinationArn"]) == ("RUNNING", handle, arn(f"{name}-target"))
    assert (task["MaxNumberOfMessagesPerSecond"], task["ApproximateNumberOfMessagesToMove"]) == (1, 10)
    assert "ApproximateNumberOfMessagesMoved" in sqs.cancel_message_move_task(TaskHandle=handle)
    assert ended(sqs, f"{name}-dead")["Status"] == "CANCELLED"
    assert refused(sqs.cancel_message_move_task, TaskHandle=handle) == INVALID

    sqs.start_message_move_task(**asked)
    wait_counts(sqs, target, 10)
    found = sqs.list_message_move_tasks(SourceArn=arn(f"{name}-dead"), MaxResults=10)["Results"]
    assert [one["Status"] for one in found][1:] == ["CANCELLED"]


def test_a_task_whose_destination_was_deleted_fails(sqs: Any, name: str, dead: str) -> None:
    source(sqs, name, dead)
    target = sqs.create_queue(QueueName=f"{name}-target")["QueueUrl"]
    sqs.send_message_batch(QueueUrl=dead, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(10)])
    asked = {"SourceArn": arn(f"{name}-dead"), "DestinationArn": arn(f"{name}-target")}
    sqs.start_message_move_task(**asked, MaxNumberOfMessagesPerSecond=1)
    sqs.delete_queue(QueueUrl=target)
    task = ended(sqs, f"{name}-dead")

    assert (task["Status"], task["FailureReason"]) == ("FAILED", ABSENT[0])


def test_who_has_no_task_has_no_results(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    assert not sqs.list_message_move_tasks(SourceArn=arn(name)).get("Results")
    assert refused(sqs.list_message_move_tasks, SourceArn=arn(f"{name}-nowhere")) == NO_RESOURCE
    assert refused(sqs.list_message_move_tasks, SourceArn=arn(name), MaxResults=11) == INVALID


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"SourceArn": arn("nowhere")}, NO_RESOURCE),
        ({"DestinationArn": arn("nowhere")}, NO_RESOURCE),
        ({"SourceArn": "nowhere"}, INVALID),
        ({"MaxNumberOfMessagesPerSecond": 0}, INVALID),
        ({"MaxNumberOfMessagesPerSecond": 501}, INVALID),
    ],
)
def test_a_bad_task_is_refused(
    sqs: Any, name: str, dead: str, refused: Refused, change: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    source(sqs, name, dead)

    assert refused(sqs.start_message_move_task, **{"SourceArn": arn(f"{name}-dead"), **change}) == expected


def test_a_queue_that_is_nobodys_dead_letter_queue_is_no_source(
    sqs: Any, name: str, queue: str, refused: Refused
) -> None:
    assert refused(sqs.start_message_move_task, SourceArn=arn(name)) == INVALID


@pytest.mark.parametrize(
    ("handle", "expected"),
    [
        ("%%", INVALID),
        ("e30=", INVALID),
        (b64encode(json.dumps({"taskId": "x", "sourceArn": arn("q")}).encode()).decode(), NO_RESOURCE),
    ],
)
def test_a_task_that_is_not_there_can_not_be_cancelled(
    sqs: Any, refused: Refused, handle: str, expected: tuple[str, str, int]
) -> None:
    assert refused(sqs.cancel_message_move_task, TaskHandle=handle) == expected
