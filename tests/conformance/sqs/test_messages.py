"""SendMessage and SendMessageBatch. boto3 checks the MD5 of bodies by itself; attributes are
checked here.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.sqs.conftest import ATTRIBUTES, INVALID, SYSTEM_NAMES, Refused, counts, receive_all, text

# SendMessage


def test_a_message_comes_as_it_was_sent(sqs: Any, queue: str) -> None:
    body = "zwölf\n\t<&> \U0001f600"
    sent = sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=ATTRIBUTES)
    (got,) = sqs.receive_message(QueueUrl=queue, MessageAttributeNames=["All"])["Messages"]

    assert (got["MessageId"], got["Body"], got["MessageAttributes"]) == (sent["MessageId"], body, ATTRIBUTES)
    assert got["MD5OfBody"] == sent["MD5OfMessageBody"]
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert "Attributes" not in got


def test_a_send_says_what_it_must_and_no_more(sqs: Any, queue: str) -> None:
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x")

    assert set(sent) - {"ResponseMetadata"} == {"MessageId", "MD5OfMessageBody"}
    assert len(sent["ResponseMetadata"]["RequestId"]) == 36


def test_an_empty_body_is_missing(sqs: Any, queue: str, refused: Refused) -> None:
    found = refused(sqs.send_message, QueueUrl=queue, MessageBody="")

    assert found == ("MissingParameter", "MissingRequiredParameterException", 400)


def test_a_character_that_sqs_forbids_is_refused(sqs: Any, queue: str, refused: Refused) -> None:
    for bad in ("\x00", "a\x1f", "\ufffe"):
        assert refused(sqs.send_message, QueueUrl=queue, MessageBody=bad)[0] == "InvalidMessageContents"


def test_size_counts_bytes_of_body_and_attributes(sqs: Any, name: str, refused: Refused) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"MaximumMessageSize": "1024"})["QueueUrl"]
    attributes = {"ab": text("cd")}  # 2 + 6 + 2 bytes

    assert "MessageId" in sqs.send_message(QueueUrl=url, MessageBody="ü" * 507, MessageAttributes=attributes)
    assert refused(sqs.send_message, QueueUrl=url, MessageBody="ü" * 507 + "x", MessageAttributes=attributes) == INVALID


def test_a_message_of_one_mebibyte_is_taken(sqs: Any, queue: str, refused: Refused) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x" * 1_048_576)
    (got,) = sqs.receive_message(QueueUrl=queue)["Messages"]

    assert len(got["Body"]) == 1_048_576
    assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x" * 1_048_577) == INVALID


@pytest.mark.parametrize(
    "attributes",
    [
        {"AWS.x": text("v")},
        {"amazon.x": text("v")},
        {".x": text("v")},
        {"x.": text("v")},
        {"a..b": text("v")},
        {"a b": text("v")},
        {"x" * 257: text("v")},
        {"x": text("")},
        {"x": {"DataType": "Blob", "StringValue": "v"}},
        {"x": {"DataType": "string", "StringValue": "v"}},
        {"x": {"DataType": "Number", "StringValue": "twelve"}},
        {"x": {"DataType": "Number", "StringValue": "1" * 39}},
        {"x": {"DataType": "Number", "StringValue": "1e127"}},
        {"x": {"DataType": "Binary", "StringValue": "v"}},
        {"x": {"DataType": "String", "BinaryValue": b"v"}},
        {f"x{number}": text("v") for number in range(11)},
    ],
)
def test_a_bad_message_attribute_is_refused(sqs: Any, queue: str, refused: Refused, attributes: dict[str, Any]) -> None:
    assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageAttributes=attributes) == INVALID


def test_a_delay_of_the_message_goes_before_that_of_the_queue(sqs: Any, name: str, refused: Refused) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "900"})["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="late")
    sqs.send_message(QueueUrl=url, MessageBody="now", DelaySeconds=0)
    sqs.send_message(QueueUrl=url, MessageBody="soon", DelaySeconds=1)

    assert counts(sqs, url) == (1, 0, 2)
    assert [m["Body"] for m in receive_all(sqs, url, 2)] == ["now", "soon"]
    assert refused(sqs.send_message, QueueUrl=url, MessageBody="x", DelaySeconds=901) == INVALID


def test_what_belongs_to_fifo_is_refused(sqs: Any, queue: str, refused: Refused) -> None:
    assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageDeduplicationId="d") == INVALID
    (bad,) = sqs.send_message_batch(
        QueueUrl=queue, Entries=[{"Id": "a", "MessageBody": "x", "MessageDeduplicationId": "d"}]
    )["Failed"]
    assert (bad["Code"], bad["SenderFault"]) == (INVALID[0], True)
    assert counts(sqs, queue) == (0, 0, 0)


def test_a_group_of_a_standard_queue_is_shown_and_orders_nothing(sqs: Any, queue: str, refused: Refused) -> None:
    entries = [{"Id": str(n), "MessageBody": str(n), "MessageGroupId": "tenant"} for n in range(2)]
    assert "SequenceNumber" not in sqs.send_message_batch(QueueUrl=queue, Entries=entries)["Successful"][0]
    for _ in range(2):  # the second comes while the first is leased
        (got,) = sqs.receive_message(QueueUrl=queue, AttributeNames=["All"])["Messages"]
        assert got["Attributes"]["MessageGroupId"] == "tenant"
        assert not {"SequenceNumber", "MessageDeduplicationId"} & set(got["Attributes"])
    assert refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageGroupId="a b") == INVALID


def test_a_trace_header_does_not_count_into_the_size(sqs: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=name, Attributes={"MaximumMessageSize": "1024"})["QueueUrl"]
    trace = {
        "MessageBody": "x" * 1024,
        "MessageSystemAttributes": {"AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1")},
    }
    sqs.send_message(QueueUrl=queue, **trace)
    whole = sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": str(number), **trace} for number in range(2)])
    assert len(whole["Successful"]) == 2

    large = sqs.create_queue(QueueName=f"{name}-large")["QueueUrl"]
    entries = [{**trace, "Id": str(number), "MessageBody": "x" * (1_048_576 // 8)} for number in range(8)]
    assert len(sqs.send_message_batch(QueueUrl=large, Entries=entries)["Successful"]) == 8


def test_names_of_attributes_may_have_letters_beyond_ascii(sqs: Any, queue: str) -> None:
    given = {"größe": text("1"), "Ключ.数_2": {"DataType": "Number", "StringValue": "2"}}
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=given)
    (got,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=2, MessageAttributeNames=["All"])["Messages"]

    assert got["MessageAttributes"] == given
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


def test_a_trace_header_travels_as_a_system_attribute(sqs: Any, queue: str, refused: Refused) -> None:
    trace = {"AWSTraceHeader": text("Root=1-5759e988-bd862e3fe1be46a994272793")}
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x", MessageSystemAttributes=trace)
    asked = {SYSTEM_NAMES[-1]: ["AWSTraceHeader"], "MessageAttributeNames": ["All"]}
    (got,) = sqs.receive_message(QueueUrl=queue, **asked)["Messages"]

    assert "MD5OfMessageSystemAttributes" in sent and "MD5OfMessageAttributes" not in sent
    assert got["Attributes"] == {"AWSTraceHeader": trace["AWSTraceHeader"]["StringValue"]}
    assert "MessageAttributes" not in got
    assert (
        refused(sqs.send_message, QueueUrl=queue, MessageBody="x", MessageSystemAttributes={"Other": text("x")})
        == INVALID
    )


# SendMessageBatch


def test_a_batch_tells_of_each_entry(sqs: Any, queue: str) -> None:
    entries = [{"Id": f"e{n}", "MessageBody": f"b{n}", "MessageAttributes": {"n": text(str(n))}} for n in range(10)]
    found = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    got = receive_all(sqs, queue, 10)

    assert [one["Id"] for one in found["Successful"]] == [entry["Id"] for entry in entries]
    assert "Failed" not in found
    assert {one["MessageId"] for one in found["Successful"]} == {message["MessageId"] for message in got}
    assert all("MD5OfMessageAttributes" in one for one in found["Successful"])


def test_bad_entries_fail_alone(sqs: Any, name: str) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"MaximumMessageSize": "1024"})["QueueUrl"]
    entries = [
        {"Id": "good", "MessageBody": "x"},
        {"Id": "large", "MessageBody": "x" * 1025},
        {"Id": "attribute", "MessageBody": "x", "MessageAttributes": {"AWS.x": text("v")}},
        {"Id": "character", "MessageBody": "\x00"},
        {"Id": "delay", "MessageBody": "x", "DelaySeconds": 901},
    ]
    found = sqs.send_message_batch(QueueUrl=url, Entries=entries)

    assert [one["Id"] for one in found["Successful"]] == ["good"]
    assert {one["Id"]: (one["Code"], one["SenderFault"]) for one in found["Failed"]} == {
        "large": ("InvalidParameterValue", True),
        "attribute": ("InvalidParameterValue", True),
        "character": ("InvalidMessageContents", True),
        "delay": ("InvalidParameterValue", True),
    }
    assert counts(sqs, url) == (1, 0, 0)


@pytest.mark.parametrize(
    ("entries", "shape"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": f"e{n}", "MessageBody": "x"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a", "MessageBody": "x"}, {"Id": "a", "MessageBody": "y"}], "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([{"Id": "x" * 81, "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([{"Id": "a", "MessageBody": "x" * 600_000}, {"Id": "b", "MessageBody": "x" * 600_000}], "BatchRequestTooLong"),
    ],
)
def test_a_bad_batch_is_refused_as_a_whole(
    sqs: Any, queue: str, refused: Refused, entries: list[Any], shape: str
) -> None:
    assert refused(sqs.send_message_batch, QueueUrl=queue, Entries=entries) == (
        f"AWS.SimpleQueueService.{shape}",
        shape,
        400,
    )
    assert counts(sqs, queue) == (0, 0, 0)
