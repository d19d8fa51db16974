"""FIFO: order, repeats, handles, attempts; and what the native API says of the same messages."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.conformance.sqs.conftest import (
    HIGH,
    INVALID,
    SYSTEM_NAMES,
    MakeFifo,
    Refused,
    bodies,
    counts,
    put,
    receive_all,
    take,
)
from tests.services import Up

NOT_IN_FLIGHT = ("AWS.SimpleQueueService.MessageNotInflight", "MessageNotInflight", 400)


def delete(sqs: Any, queue: str, *messages: dict[str, Any]) -> None:
    for message in messages:
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def change(sqs: Any, queue: str, message: dict[str, Any], seconds: int) -> None:
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds)


# Order


def test_one_receive_takes_as_many_of_a_group_as_it_can_then_of_others(sqs: Any, fifo: str) -> None:
    for number in range(4):
        for group in "ab":
            put(sqs, fifo, group, f"{group}{number}")

    assert bodies(take(sqs, fifo, 6)) == ["a0", "a1", "a2", "a3", "b0", "b1"]


def test_a_group_in_flight_is_shut_until_all_of_it_is_deleted(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1", "2", "3")
    first = take(sqs, either, 2)
    assert bodies(first) == ["1", "2"] and counts(sqs, either) == (1, 2, 0)
    assert take(sqs, either) == []
    delete(sqs, either, first[0])
    assert take(sqs, either) == []
    delete(sqs, either, first[1])

    assert bodies(take(sqs, either)) == ["3"]


def test_another_group_goes_on_meanwhile(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "a1", "a2")
    assert bodies(take(sqs, either, 1)) == ["a1"]
    put(sqs, either, "b", "b1")

    assert bodies(take(sqs, either)) == ["b1"]


def test_what_was_not_deleted_comes_again_first_and_in_order(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1", "2", "3")
    took = take(sqs, either, 2, VisibilityTimeout=1)
    again = take(sqs, either, WaitTimeSeconds=5)

    assert (bodies(took), bodies(again)) == (["1", "2"], ["1", "2", "3"])
    assert [m["Attributes"]["ApproximateReceiveCount"] for m in again] == ["2", "2", "1"]


def test_visibility_zero_gives_a_group_back_at_once(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1", "2")
    for message in take(sqs, either):
        change(sqs, either, message, 0)

    assert bodies(take(sqs, either)) == ["1", "2"]


def test_what_is_given_back_ahead_of_what_is_in_flight_comes_again_and_nothing_behind_that(
    sqs: Any, either: str
) -> None:
    put(sqs, either, "a", "1", "2", "3", "4")
    first, second, third = take(sqs, either, 3)
    change(sqs, either, first, 0)
    change(sqs, either, third, 0)
    again = take(sqs, either)
    assert bodies(again) == ["1"] and take(sqs, either) == []
    delete(sqs, either, *again, second)

    assert bodies(take(sqs, either)) == ["3", "4"]


def test_groups_that_were_sent_in_one_batch_come_in_its_order(sqs: Any, fifo: str) -> None:
    """Ten times: the groups' names are hashed, so that one time might be chance."""
    for turn in range(10):
        names = [f"{turn}-{number}" for number in range(5)]
        ids = [
            {"Id": name, "MessageBody": name, "MessageGroupId": name, "MessageDeduplicationId": name} for name in names
        ]
        sqs.send_message_batch(QueueUrl=fifo, Entries=ids)
        one_by_one = [body for _ in range(2) for body in bodies(take(sqs, fifo, 1))]
        assert one_by_one + bodies(take(sqs, fifo)) == names


def test_a_longer_visibility_keeps_the_group_shut(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1", "2")
    (first,) = take(sqs, either, 1, VisibilityTimeout=1)
    change(sqs, either, first, 30)
    time.sleep(1.2)

    assert take(sqs, either) == []
    delete(sqs, either, first)
    assert bodies(take(sqs, either)) == ["2"]


def test_a_waiting_receive_gets_the_next_of_a_group_when_the_one_before_is_deleted(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1", "2", "3")
    seen = []
    for _ in range(3):
        began = time.monotonic()
        (one,) = take(sqs, either, 1, WaitTimeSeconds=10)
        assert time.monotonic() - began < 5
        seen.append(one["Body"])
        delete(sqs, either, one)

    assert seen == ["1", "2", "3"] and counts(sqs, either) == (0, 0, 0)


# Repeats


def test_a_repeat_is_answered_as_the_first_and_not_delivered(sqs: Any, either: str) -> None:
    (first,), (again,) = put(sqs, either, "a", "x"), put(sqs, either, "a", "x")
    (got,) = take(sqs, either)
    delete(sqs, either, got)
    (late,) = put(sqs, either, "a", "x")

    assert {(one["MessageId"], one["SequenceNumber"]) for one in (first, again, late)} == {
        (got["MessageId"], first["SequenceNumber"])
    }
    assert take(sqs, either) == [] and counts(sqs, either) == (0, 0, 0)


def test_repeats_within_one_batch_are_delivered_once(sqs: Any, either: str) -> None:
    ids = {"MessageGroupId": "a", "MessageDeduplicationId": "d"}
    found = sqs.send_message_batch(
        QueueUrl=either, Entries=[{"Id": str(n), "MessageBody": str(n), **ids} for n in range(3)]
    )["Successful"]

    assert len(found) == 3 and len({one["MessageId"] for one in found}) == 1
    assert bodies(receive_all(sqs, either, 2)) == ["0"]


@pytest.mark.parametrize(("scope", "delivered"), [({}, ["a"]), (HIGH, ["a", "b"])], ids=["queue scope", "group scope"])
def test_the_scope_says_whether_groups_share_ids(
    sqs: Any, make_fifo: MakeFifo, scope: dict[str, str], delivered: list[str]
) -> None:
    url = make_fifo(**scope)
    for group in "ab":
        sqs.send_message(QueueUrl=url, MessageBody=group, MessageGroupId=group, MessageDeduplicationId="same")

    assert sorted(bodies(receive_all(sqs, url, len(delivered) + 1))) == delivered


def test_content_makes_the_id_of_the_body_alone_and_a_given_id_wins(sqs: Any, make_fifo: MakeFifo) -> None:
    url = make_fifo(ContentBasedDeduplication="true")
    attribute = {"n": {"DataType": "Number", "StringValue": "1"}}
    first = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="a")
    second = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="b", MessageAttributes=attribute)
    third = sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="a", MessageDeduplicationId="own")

    assert first["MessageId"] == second["MessageId"] != third["MessageId"]
    assert bodies(receive_all(sqs, url, 3)) == ["x", "x"]


def test_a_purge_forgets_the_ids(sqs: Any, either: str) -> None:
    (old,) = put(sqs, either, "a", "x")
    sqs.purge_queue(QueueUrl=either)
    (new,) = put(sqs, either, "a", "x")

    assert old["MessageId"] != new["MessageId"]
    assert [m["MessageId"] for m in take(sqs, either, WaitTimeSeconds=2)] == [new["MessageId"]]


# Handles


def test_a_handle_whose_time_is_over_is_refused(sqs: Any, either: str, refused: Refused) -> None:
    put(sqs, either, "a", "1")
    (old,) = take(sqs, either, VisibilityTimeout=1)
    time.sleep(1.1)
    handle = {"QueueUrl": either, "ReceiptHandle": old["ReceiptHandle"]}

    assert refused(sqs.delete_message, **handle) == INVALID
    assert refused(sqs.change_message_visibility, **handle, VisibilityTimeout=9) == NOT_IN_FLIGHT
    assert counts(sqs, either) == (1, 0, 0)


def test_a_handle_of_a_message_received_again_is_refused(sqs: Any, either: str, refused: Refused) -> None:
    put(sqs, either, "a", "1")
    (old,) = take(sqs, either)
    change(sqs, either, old, 0)
    (new,) = take(sqs, either)
    handle = {"QueueUrl": either, "ReceiptHandle": old["ReceiptHandle"]}

    assert refused(sqs.delete_message, **handle) == INVALID
    assert refused(sqs.change_message_visibility, **handle, VisibilityTimeout=9) == INVALID
    delete(sqs, either, new)
    assert counts(sqs, either) == (0, 0, 0)


def test_a_handle_whose_time_was_extended_works(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1")
    (one,) = take(sqs, either, VisibilityTimeout=1)
    change(sqs, either, one, 30)
    time.sleep(1.1)
    delete(sqs, either, one)

    assert counts(sqs, either) == (0, 0, 0)


def test_a_deleted_message_may_be_deleted_again(sqs: Any, either: str, refused: Refused) -> None:
    put(sqs, either, "a", "1")
    (one,) = take(sqs, either)
    delete(sqs, either, one, one)

    handle = {"QueueUrl": either, "ReceiptHandle": one["ReceiptHandle"]}
    assert refused(sqs.change_message_visibility, **handle, VisibilityTimeout=9) == INVALID


def test_a_batch_of_deletes_tells_of_each(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1")
    put(sqs, either, "b", "2")
    put(sqs, either, "c", "3")
    late, old, good = sorted(take(sqs, either, VisibilityTimeout=30), key=lambda m: str(m["Body"]))
    change(sqs, either, late, 0)
    change(sqs, either, old, 0)
    assert len(take(sqs, either, 1)) == 1  # of one of the two groups: the message of the other is ready
    entries = [
        {"Id": key, "ReceiptHandle": m["ReceiptHandle"]} for key, m in (("late", late), ("old", old), ("good", good))
    ]
    found = sqs.delete_message_batch(QueueUrl=either, Entries=entries)

    assert [one["Id"] for one in found["Successful"]] == ["good"]
    assert {one["Id"]: (one["Code"], one["SenderFault"]) for one in found["Failed"]} == dict.fromkeys(
        ("late", "old"), (INVALID[0], True)
    )


# ReceiveRequestAttemptId


def test_a_repeated_attempt_gets_the_same_messages_and_handles(sqs: Any, either: str) -> None:
    put(sqs, either, "a", "1", "2", "3")
    first = take(sqs, either, 2, ReceiveRequestAttemptId="try")
    again = take(sqs, either, 2, ReceiveRequestAttemptId="try")

    assert again == first and bodies(first) == ["1", "2"]
    assert take(sqs, either, ReceiveRequestAttemptId="another") == []
    delete(sqs, either, first[0])
    assert take(sqs, either, ReceiveRequestAttemptId="try") == []
    delete(sqs, either, first[1])
    assert bodies(take(sqs, either, ReceiveRequestAttemptId="try")) == ["3"]


def test_a_repeated_attempt_after_a_change_of_visibility_is_a_receive_like_any_other(
    sqs: Any, fifo: str, refused: Refused
) -> None:
    put(sqs, fifo, "a", "1")
    (first,) = take(sqs, fifo, ReceiveRequestAttemptId="try")
    change(sqs, fifo, first, 0)
    (again,) = take(sqs, fifo, ReceiveRequestAttemptId="try")

    assert again["ReceiptHandle"] != first["ReceiptHandle"]
    assert refused(sqs.receive_message, QueueUrl=fifo, ReceiveRequestAttemptId="x" * 129) == INVALID


# The native API, tags


def test_the_native_api_agrees_on_ids_groups_and_counts(sqs: Any, up: Up, name: str, either: str) -> None:
    base = f"{up.endpoint}/v1/queues/{name}.fifo"
    (sent,) = put(sqs, either, "a", "1")
    message = {"body": "2", "group": "a", "dedup_id": "n"}
    native = httpx.post(f"{base}/messages", json={"messages": [message]}).json()["messages"][0]
    (one,) = take(sqs, either, 1)
    change(sqs, either, one, 0)
    got = httpx.post(f"{base}/receive", json={"max": 10}).json()["messages"]

    assert httpx.get(base).json()["fifo"] is True
    assert [(m["id"], m["group"], m["receive_count"]) for m in got] == [
        (sent["MessageId"], "a", 2),
        (native["id"], "a", 1),
    ]
    assert [m["sequence_number"] for m in got] == [sent["SequenceNumber"], native["sequence_number"]]
    httpx.post(f"{base}/ack", json={"handles": [got[0]["handle"]]})
    delete(sqs, either, {"ReceiptHandle": got[1]["handle"]})
    assert counts(sqs, either) == (0, 0, 0)


def test_a_tag_of_a_fifo_queue_has_an_order_of_its_own(sqs: Any, name: str, fifo: str) -> None:
    tag = sqs.create_queue(QueueName=f"{name}.fifo@audit")["QueueUrl"]
    put(sqs, fifo, "a", "1", "2")
    assert bodies(take(sqs, fifo, 1)) == ["1"]

    got = take(sqs, tag)
    assert bodies(got) == ["1", "2"] and {m["Attributes"]["MessageGroupId"] for m in got} == {"a"}
    assert sqs.get_queue_attributes(QueueUrl=tag, AttributeNames=["FifoQueue"])["Attributes"] == {"FifoQueue": "true"}


@pytest.mark.parametrize("parameter", SYSTEM_NAMES)
@pytest.mark.parametrize("asked", ["MessageGroupId", "MessageDeduplicationId", "SequenceNumber"])
def test_each_system_attribute_of_fifo_is_shown_alone_when_asked_for(
    sqs: Any, fifo: str, parameter: str, asked: str
) -> None:
    put(sqs, fifo, "a", "1")
    (got,) = sqs.receive_message(QueueUrl=fifo, **{parameter: [asked]})["Messages"]

    assert set(got["Attributes"]) == {asked}
