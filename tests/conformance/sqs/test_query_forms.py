"""Forms of the query protocol that no SDK writes, but AWS's reference and old programs do: lists
and maps under their member's name, and one element without a number. What is not understood is
refused.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.sqs.conftest import take
from tests.services import Up

Post = Callable[..., tuple[int, str]]


@pytest.fixture
def post(up: Up | Running) -> Post:
    """Posts a form; the status, and the code of an error."""

    def call(action: str, path: str = "/", **fields: str) -> tuple[int, str]:
        form = {
            "Action": action,
            "Version": "2012-11-05",
            **{name.replace("_", "."): value for name, value in fields.items()},
        }
        answer = httpx.post(up.endpoint + path, data=form, timeout=60)
        return answer.status_code, next(
            (node.text or "" for node in ET.fromstring(answer.text).iter() if node.tag.endswith("}Code")), ""
        )

    return call


DONE = (200, "")
BAD = (400, "MalformedInput")


def test_tags_by_each_spelling(sqs: Any, queue: str, post: Post) -> None:
    assert post("TagQueue", QueueUrl=queue, Tags_1_Key="a", Tags_1_Value="1", Tags_2_Key="b", Tags_2_Value="2") == DONE
    assert post("TagQueue", QueueUrl=queue, Tag_Key="c", Tag_Value="3") == DONE
    assert post("TagQueue", QueueUrl=queue, Tags_Key="d", Tags_Value="4") == DONE
    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"a": "1", "b": "2", "c": "3", "d": "4"}

    assert post("UntagQueue", QueueUrl=queue, TagKeys_1="a", TagKeys_2="b") == DONE
    assert post("UntagQueue", QueueUrl=queue, TagKey="c") == DONE
    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"d": "4"}


def test_attributes_of_queues_by_each_spelling(sqs: Any, name: str, queue: str, post: Post) -> None:
    assert post("SetQueueAttributes", QueueUrl=queue, Attribute_Name="VisibilityTimeout", Attribute_Value="35") == DONE
    assert post("SetQueueAttributes", QueueUrl=queue, Attributes_1_Name="DelaySeconds", Attributes_1_Value="3") == DONE
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout", "DelaySeconds"])["Attributes"]
    assert found == {"VisibilityTimeout": "35", "DelaySeconds": "3"}

    made = {"Attributes_1_Name": "VisibilityTimeout", "Attributes_1_Value": "7"}
    assert post("CreateQueue", QueueName=f"{name}-2", Tags_1_Key="a", Tags_1_Value="b", **made) == DONE
    other = sqs.get_queue_url(QueueName=f"{name}-2")["QueueUrl"]
    assert sqs.get_queue_attributes(QueueUrl=other, AttributeNames=["VisibilityTimeout"])["Attributes"] == {
        "VisibilityTimeout": "7"
    }
    assert sqs.list_queue_tags(QueueUrl=other)["Tags"] == {"a": "b"}


@pytest.mark.parametrize(
    "start", ["MessageAttribute.1", "MessageAttributes.1", "MessageAttribute", "MessageAttributes"]
)
def test_attributes_of_messages_by_each_spelling(sqs: Any, queue: str, post: Post, start: str) -> None:
    given = {f"{start}.Name": "k", f"{start}.Value.DataType": "String", f"{start}.Value.StringValue": "v"}
    assert post("SendMessage", QueueUrl=queue, MessageBody="one", **given) == DONE
    for entries in ("SendMessageBatchRequestEntry.1", "SendMessageBatchRequestEntry", "Entries.1", "Entries"):
        entry = {
            f"{entries}.Id": "a",
            f"{entries}.MessageBody": "many",
            **{f"{entries}.{key}": value for key, value in given.items()},
        }
        assert post("SendMessageBatch", QueueUrl=queue, **entry) == DONE

    found = take(sqs, queue, MessageAttributeNames=["All"], WaitTimeSeconds=1)
    assert [one["MessageAttributes"] for one in found] == [{"k": {"DataType": "String", "StringValue": "v"}}] * 5


def test_a_trace_header_and_handles_by_their_members_names(sqs: Any, queue: str, post: Post) -> None:
    start = "MessageSystemAttributes.1"
    trace = {
        f"{start}.Name": "AWSTraceHeader",
        f"{start}.Value.DataType": "String",
        f"{start}.Value.StringValue": "Root=1",
    }
    assert post("SendMessage", QueueUrl=queue, MessageBody="x", **trace) == DONE
    (found,) = take(sqs, queue, WaitTimeSeconds=1)
    assert found["Attributes"]["AWSTraceHeader"] == "Root=1"

    entry = {"Entries.1.Id": "a", "Entries.1.ReceiptHandle": found["ReceiptHandle"]}
    assert post("ChangeMessageVisibilityBatch", QueueUrl=queue, **entry, Entries_1_VisibilityTimeout="0") == DONE
    (found,) = take(sqs, queue, WaitTimeSeconds=1)
    assert (
        post("DeleteMessageBatch", QueueUrl=queue, Entries_Id="a", Entries_ReceiptHandle=found["ReceiptHandle"]) == DONE
    )
    assert take(sqs, queue) == []


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("TagQueue", {"Tags.entry.1.key": "a", "Tags.entry.1.value": "b"}),
        ("TagQueue", {"Tag.1.Name": "a", "Tag.1.Value": "b"}),
        ("TagQueue", {"Tag.0.Key": "a", "Tag.0.Value": "b"}),
        ("TagQueue", {"Tag.1.Key": "a", "Tag.1.Value": "b", "Tag.2.Key": "a", "Tag.2.Value": "c"}),
        ("SetQueueAttributes", {"Attribute.1.Name": "DelaySeconds", "Attribute.1.Value": "0", "DelaySeconds": "1"}),
        ("SendMessage", {"MessageBody": "x", "DelaySecond": "5"}),
        ("SendMessage", {"MessageBody": "x", "Id": "5"}),
        ("ReceiveMessage", {"AttributeNames.member.1": "All"}),
        ("DeleteMessage", {"ReceiptHandle": "x", "VisibilityTimeout": "5"}),
        ("PurgeQueue", {"Force": "true"}),
    ],
)
def test_what_is_not_understood_is_refused(
    sqs: Any, queue: str, post: Post, action: str, fields: dict[str, str]
) -> None:
    assert post(action, QueueUrl=queue, **fields) == BAD
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=queue)
    assert take(sqs, queue) == []


def test_a_queue_path_without_an_action_is_an_unknown_operation(up: Up | Running, queue: str) -> None:
    answer = httpx.get(queue)

    assert (answer.status_code, answer.text) == (404, "<UnknownOperationException/>\n")
