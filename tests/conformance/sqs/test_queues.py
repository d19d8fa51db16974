"""Actions on queues: create, find, list, attributes, delete, purge."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conformance.sqs.conftest import ABSENT, EXISTS, INVALID, Refused, counts
from tests.services import Up

# CreateQueue


def test_create_answers_a_url_that_the_client_can_reach(sqs: Any, up: Up, name: str) -> None:
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == f"{up.endpoint}/000000000000/{name}"


def test_create_again_without_attributes_or_with_the_same_answers_the_same_url(sqs: Any, name: str) -> None:
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "7"})["QueueUrl"]

    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "7"}, tags={"a": "b"})["QueueUrl"] == url


def test_create_again_with_the_defaults_named_answers_the_same_url(sqs: Any, name: str) -> None:
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    defaults = {
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "VisibilityTimeout": "30",
    }

    assert sqs.create_queue(QueueName=name, Attributes=defaults)["QueueUrl"] == url


def test_create_again_with_other_attributes_is_refused(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    assert refused(sqs.create_queue, QueueName=name, Attributes={"DelaySeconds": "5"}) == EXISTS


def test_a_redrive_policy_or_key_that_differs_makes_another_queue(
    sqs: Any, name: str, queue: str, refused: Refused
) -> None:
    assert refused(sqs.create_queue, QueueName=name, Attributes={"KmsMasterKeyId": "alias/x"}) == EXISTS


def test_many_clients_may_create_the_same_queue_at_once(sqs: Any, name: str) -> None:
    def create(number: int) -> str:
        return str(
            sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "5"}, tags={"by": str(number)})[
                "QueueUrl"
            ]
        )

    with ThreadPoolExecutor(8) as pool:
        urls = list(pool.map(create, range(8)))

    assert len(urls) == 8 and len(set(urls)) == 1


@pytest.mark.parametrize("bad", ["a b", "a.b", "x" * 81, "orders@bill.ing"])
def test_a_bad_name_is_refused(sqs: Any, refused: Refused, bad: str) -> None:
    assert refused(sqs.create_queue, QueueName=bad) == INVALID


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("DelaySeconds", "901"),
        ("DelaySeconds", "-1"),
        ("MaximumMessageSize", "1023"),
        ("MaximumMessageSize", "1048577"),
        ("MessageRetentionPeriod", "59"),
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("VisibilityTimeout", "43201"),
        ("VisibilityTimeout", "soon"),
        ("SqsManagedSseEnabled", "maybe"),
    ],
)
def test_an_attribute_out_of_range_is_refused(
    sqs: Any, refused: Refused, name: str, attribute: str, value: str
) -> None:
    found = refused(sqs.create_queue, QueueName=name, Attributes={attribute: value})

    assert found == ("InvalidAttributeValue", "InvalidAttributeValue", 400)


@pytest.mark.parametrize("attribute", ["Colour", "ContentBasedDeduplication", "QueueArn", "FilterPolicy"])
def test_an_attribute_that_can_not_be_set_is_refused(sqs: Any, refused: Refused, name: str, attribute: str) -> None:
    found = refused(sqs.create_queue, QueueName=name, Attributes={attribute: "true"})

    assert found == ("InvalidAttributeName", "InvalidAttributeName", 400)


# GetQueueUrl, ListQueues


def test_a_queue_is_found_by_its_name(sqs: Any, name: str, queue: str) -> None:
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == queue


def test_a_queue_that_is_not_there_has_a_typed_exception(sqs: Any, refused: Refused) -> None:
    assert refused(sqs.get_queue_url, QueueName="nowhere") == ABSENT
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.get_queue_url(QueueName="nowhere")


def test_list_pages_through_a_prefix(sqs: Any, name: str) -> None:
    urls = [sqs.create_queue(QueueName=f"{name}-page{number}")["QueueUrl"] for number in range(3)]

    first = sqs.list_queues(QueueNamePrefix=f"{name}-page", MaxResults=2)
    second = sqs.list_queues(QueueNamePrefix=f"{name}-page", MaxResults=2, NextToken=first["NextToken"])

    assert (first["QueueUrls"], second["QueueUrls"], "NextToken" in second) == (urls[:2], urls[2:], False)


def test_list_without_a_match_has_no_urls_and_without_a_size_no_token(sqs: Any, queue: str) -> None:
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="no-such-prefix")
    assert "NextToken" not in sqs.list_queues()


@pytest.mark.parametrize("arguments", [{"MaxResults": 0}, {"MaxResults": 1001}, {"MaxResults": 1, "NextToken": "%%"}])
def test_list_refuses_bad_pages(sqs: Any, refused: Refused, arguments: dict[str, Any]) -> None:
    assert refused(sqs.list_queues, **arguments) == INVALID


# GetQueueAttributes, SetQueueAttributes


def test_a_new_queue_has_the_defaults_of_sqs(sqs: Any, name: str, queue: str) -> None:
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    created, modified = int(found.pop("CreatedTimestamp")), int(found.pop("LastModifiedTimestamp"))

    assert abs(created - time.time()) < 30 and created <= modified
    assert found == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": f"arn:aws:sqs:us-east-1:000000000000:{name}",
        "ReceiveMessageWaitTimeSeconds": "0",
        "VisibilityTimeout": "30",
    }


def test_only_the_attributes_asked_for_are_shown(sqs: Any, queue: str, refused: Refused) -> None:
    asked = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["VisibilityTimeout", "FifoQueue", "Policy"])

    assert asked["Attributes"] == {"VisibilityTimeout": "30"}
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue)
    assert refused(sqs.get_queue_attributes, QueueUrl=queue, AttributeNames=["Colour"])[0] == "InvalidAttributeName"


def test_what_is_set_changes_and_the_rest_stays(sqs: Any, queue: str) -> None:
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "3", "KmsMasterKeyId": "alias/x"})
    sqs.set_queue_attributes(
        QueueUrl=queue, Attributes={"VisibilityTimeout": "0", "KmsDataKeyReusePeriodSeconds": "60"}
    )
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"KmsMasterKeyId": ""})

    assert (found["DelaySeconds"], found["VisibilityTimeout"], found["KmsMasterKeyId"]) == ("3", "0", "alias/x")
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["KmsMasterKeyId"])


def test_a_redrive_policy_is_set_shown_and_removed(sqs: Any, name: str, queue: str) -> None:
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    asked = {"deadLetterTargetArn": arn, "maxReceiveCount": "2"}

    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": json.dumps(asked)})
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])["Attributes"]
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": ""})

    assert json.loads(found["RedrivePolicy"]) == {"deadLetterTargetArn": arn, "maxReceiveCount": 2}
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])


@pytest.mark.parametrize(
    "policy",
    [
        "{",
        "[]",
        '{"maxReceiveCount": 3}',
        '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:nowhere", "maxReceiveCount": 3}',
        '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:nowhere", "maxReceiveCount": "x"}',
        '{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:nowhere", "maxReceiveCount": 1001}',
        '{"deadLetterTargetArn": "nowhere", "maxReceiveCount": 3}',
    ],
)
def test_a_bad_redrive_policy_is_refused(sqs: Any, queue: str, name: str, refused: Refused, policy: str) -> None:
    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes={"RedrivePolicy": policy}) == INVALID
    assert refused(sqs.create_queue, QueueName=f"{name}-b", Attributes={"RedrivePolicy": policy}) == INVALID


def test_attributes_of_a_queue_that_is_not_there_are_refused(sqs: Any, up: Up, refused: Refused) -> None:
    nowhere = f"{up.endpoint}/000000000000/nowhere"

    assert refused(sqs.get_queue_attributes, QueueUrl=nowhere, AttributeNames=["All"]) == ABSENT
    assert refused(sqs.set_queue_attributes, QueueUrl=nowhere, Attributes={"DelaySeconds": "1"}) == ABSENT


# DeleteQueue, PurgeQueue


def test_a_deleted_queue_is_gone_and_its_name_is_free(sqs: Any, name: str, queue: str, refused: Refused) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="old")
    sqs.delete_queue(QueueUrl=queue)

    assert refused(sqs.get_queue_url, QueueName=name) == ABSENT
    assert refused(sqs.delete_queue, QueueUrl=queue) == ABSENT
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == queue
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)


def test_a_purge_drops_what_is_ready_delayed_and_in_flight(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="flying")
    sqs.receive_message(QueueUrl=queue)
    sqs.send_message(QueueUrl=queue, MessageBody="ready")
    sqs.send_message(QueueUrl=queue, MessageBody="delayed", DelaySeconds=900)
    assert counts(sqs, queue) == (1, 1, 1)

    sqs.purge_queue(QueueUrl=queue)

    assert counts(sqs, queue) == (0, 0, 0)
