"""TagQueue, UntagQueue, ListQueueTags; and the tags of ours, `orders@billing`, made and deleted as
queues.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.conformance.sqs.conftest import ABSENT, EXISTS, INVALID, Refused, counts, receive_all, text
from tests.services import Up

NO_NAME = ("InvalidAttributeName", "InvalidAttributeName", 400)
NO_VALUE = ("InvalidAttributeValue", "InvalidAttributeValue", 400)


def test_a_new_queue_has_no_tags_but_those_it_was_made_with(sqs: Any, name: str, queue: str) -> None:
    tagged = sqs.create_queue(QueueName=f"{name}-tagged", tags={"team": "billing", "empty": ""})["QueueUrl"]

    assert "Tags" not in sqs.list_queue_tags(QueueUrl=queue)
    assert sqs.list_queue_tags(QueueUrl=tagged)["Tags"] == {"team": "billing", "empty": ""}


def test_tags_are_added_overwritten_and_removed(sqs: Any, queue: str) -> None:
    sqs.tag_queue(QueueUrl=queue, Tags={"a": "1", "b": "2", "Käse + Co.": "x@y/z:+=-_ 9"})
    sqs.tag_queue(QueueUrl=queue, Tags={"b": "3", "A": "4"})
    sqs.untag_queue(QueueUrl=queue, TagKeys=["a", "nothing"])

    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"b": "3", "Käse + Co.": "x@y/z:+=-_ 9", "A": "4"}


def test_tags_set_at_once_are_all_kept(sqs: Any, queue: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: sqs.tag_queue(QueueUrl=queue, Tags={f"t{n}": "x"}), range(8)))

    assert len(sqs.list_queue_tags(QueueUrl=queue)["Tags"]) == 8


@pytest.mark.parametrize(
    "bad",
    [
        {"aws:x": "v"},
        {"AWS:x": "v"},
        {"": "v"},
        {"k" * 129: "v"},
        {"k": "v" * 257},
        {"k": "\x07"},
        {str(n): "" for n in range(51)},
    ],
)
def test_a_bad_tag_is_refused(sqs: Any, name: str, queue: str, refused: Refused, bad: dict[str, str]) -> None:
    assert refused(sqs.tag_queue, QueueUrl=queue, Tags=bad) == INVALID
    assert refused(sqs.create_queue, QueueName=f"{name}-b", tags=bad) == INVALID
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=queue)


def test_a_queue_has_fifty_tags_at_most(sqs: Any, queue: str, refused: Refused) -> None:
    sqs.tag_queue(QueueUrl=queue, Tags={str(n): "" for n in range(50)})

    assert refused(sqs.tag_queue, QueueUrl=queue, Tags={"one more": ""}) == INVALID
    sqs.tag_queue(QueueUrl=queue, Tags={"7": "seven"})


def test_tags_of_a_queue_that_is_not_there_are_refused(sqs: Any, queue: str, refused: Refused) -> None:
    for action, more in (
        (sqs.list_queue_tags, {}),
        (sqs.tag_queue, {"Tags": {"a": "b"}}),
        (sqs.untag_queue, {"TagKeys": ["a"]}),
    ):
        assert refused(action, QueueUrl=f"{queue}-nowhere", **more) == ABSENT


# orders@billing


@pytest.fixture
def billing(sqs: Any, name: str, queue: str) -> str:
    """The URL of tag `billing` of the queue."""
    return str(sqs.create_queue(QueueName=f"{name}@billing")["QueueUrl"])


def test_a_tag_is_a_queue_of_its_own_to_its_consumers(sqs: Any, queue: str, billing: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="a")
    sqs.send_message(QueueUrl=billing, MessageBody="b")
    mine = receive_all(sqs, billing, 2)
    sqs.delete_message(QueueUrl=billing, ReceiptHandle=mine[0]["ReceiptHandle"])
    sqs.change_message_visibility(QueueUrl=billing, ReceiptHandle=mine[1]["ReceiptHandle"], VisibilityTimeout=0)

    assert sorted(message["Body"] for message in mine) == ["a", "b"]
    assert (counts(sqs, queue), counts(sqs, billing)) == ((2, 0, 0), (1, 0, 0))


def test_a_tag_gets_what_its_filter_lets_through_from_now_on(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    retail = {"MessageAttributes": {"kind": text("retail")}}
    sqs.send_message(QueueUrl=queue, MessageBody="before", **retail)
    policy = json.dumps({"kind": ["retail", "trade"]})
    tag = sqs.create_queue(QueueName=f"{name}@some", Attributes={"FilterPolicy": policy})["QueueUrl"]
    for body, more in (("after", retail), ("other", {"MessageAttributes": {"kind": text("own")}}), ("none", {})):
        sqs.send_message(QueueUrl=queue, MessageBody=body, **more)

    assert [message["Body"] for message in receive_all(sqs, tag, 2)] == ["after"]
    assert counts(sqs, queue)[0] == 4
    assert sqs.get_queue_attributes(QueueUrl=tag, AttributeNames=["FilterPolicy"])["Attributes"] == {
        "FilterPolicy": policy
    }
    assert sqs.create_queue(QueueName=f"{name}@some", Attributes={"FilterPolicy": policy})["QueueUrl"] == tag
    assert sqs.create_queue(QueueName=f"{name}@some")["QueueUrl"] == tag
    assert (
        refused(sqs.create_queue, QueueName=f"{name}@some", Attributes={"FilterPolicy": '{"kind": ["own"]}'}) == EXISTS
    )


@pytest.mark.parametrize(
    "policy", ["{", "[]", "{}", '{"a": "b"}', '{"a": [null]}', '{"a": ["x", "y"], "b": ["z"]}', '{"a b": ["x"]}']
)
def test_a_bad_filter_is_refused(sqs: Any, name: str, queue: str, refused: Refused, policy: str) -> None:
    assert refused(sqs.create_queue, QueueName=f"{name}@t", Attributes={"FilterPolicy": policy})[0].startswith(
        "Invalid"
    )


def test_a_tag_has_no_attributes_of_a_queue(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    assert refused(sqs.create_queue, QueueName=f"{name}@t", Attributes={"VisibilityTimeout": "5"}) == NO_NAME
    assert refused(sqs.create_queue, QueueName=f"{name}@t", tags={"a": "b"}) == INVALID
    assert refused(sqs.create_queue, QueueName=f"{name}-nowhere@t") == ABSENT
    assert refused(sqs.create_queue, QueueName=f"{name}@t t") == INVALID


def test_a_deleted_tag_is_gone_and_its_queue_stays(
    sqs: Any, name: str, queue: str, billing: str, refused: Refused
) -> None:
    sqs.delete_queue(QueueUrl=billing)

    assert refused(sqs.get_queue_url, QueueName=f"{name}@billing") == ABSENT
    assert refused(sqs.delete_queue, QueueUrl=billing) == ABSENT
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == queue


def test_a_tag_of_the_native_api_is_one_too(sqs: Any, up: Up, name: str, queue: str) -> None:
    httpx.post(f"{up.endpoint}/v1/queues/{name}/tags", json={"name": "native"}).raise_for_status()

    assert sqs.get_queue_url(QueueName=f"{name}@native")["QueueUrl"] == f"{queue}@native"


def test_a_tag_that_is_not_there_is_no_queue(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    assert refused(sqs.get_queue_url, QueueName=f"{name}@nobody") == ABSENT
    assert refused(sqs.receive_message, QueueUrl=f"{queue}@nobody") == ABSENT
    assert refused(sqs.receive_message, QueueUrl=f"{queue}@") == ABSENT
    assert refused(sqs.get_queue_attributes, QueueUrl=f"{queue}@nobody", AttributeNames=["All"]) == ABSENT


@pytest.mark.parametrize(
    ("action", "more"),
    [
        ("purge_queue", {}),
        ("tag_queue", {"Tags": {"a": "b"}}),
        ("set_queue_attributes", {"Attributes": {"DelaySeconds": "1"}}),
    ],
)
def test_what_would_hit_the_whole_queue_is_not_done_to_a_tag(
    sqs: Any, billing: str, refused: Refused, action: str, more: dict[str, Any]
) -> None:
    assert refused(getattr(sqs, action), QueueUrl=billing, **more)[1] == "UnsupportedOperation"
