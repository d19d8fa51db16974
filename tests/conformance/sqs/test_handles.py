"""DeleteMessage, ChangeMessageVisibility, and their batches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.sqs.conftest import INVALID, Refused, counts, receive_all

BAD_HANDLE = ("ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", 404)


@pytest.fixture
def handles(sqs: Any, queue: str) -> list[str]:
    """The handles of three messages in flight."""
    sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(n), "MessageBody": str(n)} for n in range(3)])
    return [message["ReceiptHandle"] for message in receive_all(sqs, queue, 3)]


# DeleteMessage, DeleteMessageBatch


def test_a_deleted_message_is_gone_and_may_be_deleted_again(sqs: Any, queue: str, handles: list[str]) -> None:
    for _ in range(2):
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=handles[0])

    assert counts(sqs, queue) == (0, 2, 0)


def test_an_old_handle_deletes_nothing_and_is_no_error(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (old,) = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0)["Messages"]
    (new,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1)["Messages"]

    sqs.delete_message(QueueUrl=queue, ReceiptHandle=old["ReceiptHandle"])
    assert counts(sqs, queue) == (0, 1, 0)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=new["ReceiptHandle"])
    assert counts(sqs, queue) == (0, 0, 0)


def test_a_handle_that_was_never_issued_is_refused(sqs: Any, queue: str, refused: Refused) -> None:
    assert refused(sqs.delete_message, QueueUrl=queue, ReceiptHandle="nonsense") == BAD_HANDLE
    assert (
        refused(sqs.change_message_visibility, QueueUrl=queue, ReceiptHandle="nonsense", VisibilityTimeout=1)
        == BAD_HANDLE
    )
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.delete_message(QueueUrl=queue, ReceiptHandle="nonsense")


def test_the_handle_of_another_queue_is_refused(sqs: Any, name: str, handles: list[str], refused: Refused) -> None:
    other = sqs.create_queue(QueueName=f"{name}-other")["QueueUrl"]

    assert refused(sqs.delete_message, QueueUrl=other, ReceiptHandle=handles[0]) == BAD_HANDLE


def test_a_batch_deletes_what_it_can_and_tells_of_the_rest(sqs: Any, queue: str, handles: list[str]) -> None:
    entries = [{"Id": f"h{n}", "ReceiptHandle": handle} for n, handle in enumerate([*handles, "nonsense"])]
    found = sqs.delete_message_batch(QueueUrl=queue, Entries=entries)

    assert [one["Id"] for one in found["Successful"]] == ["h0", "h1", "h2"]
    assert [(one["Id"], one["Code"], one["SenderFault"]) for one in found["Failed"]] == [
        ("h3", "ReceiptHandleIsInvalid", True)
    ]
    assert counts(sqs, queue) == (0, 0, 0)


def test_a_batch_may_name_a_handle_twice(sqs: Any, queue: str, handles: list[str]) -> None:
    found = sqs.delete_message_batch(
        QueueUrl=queue, Entries=[{"Id": str(n), "ReceiptHandle": handles[0]} for n in range(2)]
    )

    assert [one["Id"] for one in found["Successful"]] == ["0", "1"]
    assert counts(sqs, queue) == (0, 2, 0)


@pytest.mark.parametrize("action", ["delete_message_batch", "change_message_visibility_batch"])
@pytest.mark.parametrize(("count", "shape"), [(0, "EmptyBatchRequest"), (11, "TooManyEntriesInBatchRequest")])
def test_a_batch_of_handles_has_one_to_ten(
    sqs: Any, queue: str, refused: Refused, action: str, count: int, shape: str
) -> None:
    entries = [{"Id": str(n), "ReceiptHandle": "x", "VisibilityTimeout": 1} for n in range(count)]
    entries = entries if "change" in action else [{"Id": e["Id"], "ReceiptHandle": "x"} for e in entries]

    assert refused(getattr(sqs, action), QueueUrl=queue, Entries=entries)[1] == shape


# ChangeMessageVisibility, ChangeMessageVisibilityBatch


def test_visibility_zero_makes_a_message_receivable_at_once(sqs: Any, queue: str, handles: list[str]) -> None:
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handles[1], VisibilityTimeout=0)

    assert counts(sqs, queue) == (1, 2, 0)
    assert len(receive_all(sqs, queue, 1)) == 1


def test_the_visibility_of_a_deleted_message_can_not_be_changed(
    sqs: Any, queue: str, handles: list[str], refused: Refused
) -> None:
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=handles[0])

    assert (
        refused(sqs.change_message_visibility, QueueUrl=queue, ReceiptHandle=handles[0], VisibilityTimeout=5) == INVALID
    )


def test_the_handle_of_an_earlier_receive_changes_nothing_and_is_no_error(
    sqs: Any, queue: str, refused: Refused
) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (old,) = sqs.receive_message(QueueUrl=queue, VisibilityTimeout=0)["Messages"]
    (new,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1)["Messages"]

    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=old["ReceiptHandle"], VisibilityTimeout=0)
    entries = [{"Id": "a", "ReceiptHandle": old["ReceiptHandle"], "VisibilityTimeout": 0}]
    assert [
        one["Id"] for one in sqs.change_message_visibility_batch(QueueUrl=queue, Entries=entries)["Successful"]
    ] == ["a"]
    assert counts(sqs, queue) == (0, 1, 0)
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=new["ReceiptHandle"])
    asked = {"QueueUrl": queue, "ReceiptHandle": old["ReceiptHandle"], "VisibilityTimeout": 5}
    assert refused(sqs.change_message_visibility, **asked) == INVALID


@pytest.mark.parametrize("seconds", [-1, 43_201])
def test_a_visibility_out_of_range_is_refused(
    sqs: Any, queue: str, handles: list[str], refused: Refused, seconds: int
) -> None:
    assert (
        refused(sqs.change_message_visibility, QueueUrl=queue, ReceiptHandle=handles[0], VisibilityTimeout=seconds)
        == INVALID
    )


def test_a_batch_of_changes_tells_of_each(sqs: Any, queue: str, handles: list[str]) -> None:
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=handles[2])
    wishes = [("good", handles[0], 0), ("range", handles[1], 43_201), ("gone", handles[2], 5), ("bad", "nonsense", 5)]
    entries = [{"Id": key, "ReceiptHandle": handle, "VisibilityTimeout": seconds} for key, handle, seconds in wishes]
    found = sqs.change_message_visibility_batch(QueueUrl=queue, Entries=entries)

    assert [one["Id"] for one in found["Successful"]] == ["good"]
    assert {one["Id"]: one["Code"] for one in found["Failed"]} == {
        "range": "InvalidParameterValue",
        "gone": "InvalidParameterValue",
        "bad": "ReceiptHandleIsInvalid",
    }
    assert counts(sqs, queue) == (1, 1, 0)
