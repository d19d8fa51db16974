"""Every error of SQS that can be caused here, through a real client: its code, its status, and its
text to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from facade.dialects.sqs.wire import errors
from tests.conformance.beside import ADMIN_SECRET
from tests.conformance.conftest import Running
from tests.conformance.sqs.conftest import client_of
from tests.conformance.sqs.error_rows import OLD, TABLE, Case
from tests.services import Up
from tests.unit.sqs.test_texts import CODES

SIGNATURE = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. "
    "Consult the service documentation for details."
)


@pytest.fixture(scope="module")
def unchecked(up: Up | Running) -> Iterator[Any]:
    """A client that sends what it is given."""
    config = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
    keys = {"aws_access_key_id": "shop", "aws_secret_access_key": "not-looked-at"}
    client = boto3.client("sqs", endpoint_url=up.endpoint, region_name="us-east-1", config=config, **keys)
    yield client
    client.close()


def told(error: ClientError) -> tuple[str, int, str]:
    response = error.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Message"]


@pytest.mark.parametrize("row", TABLE)
def test_an_error_has_the_code_the_status_and_the_text_of_aws(unchecked: Any, name: str, row: str) -> None:
    cause, code, status, wording = TABLE[row]
    if (
        "Fifo" in row
        or "fifo" in row
        or "dedup" in row
        or "group" in row
        or "Message" in row
        or "scope" in row
        or "type" in row
    ):
        fifo = unchecked.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    else:
        fifo = ""
    at = Case(unchecked, name, unchecked.create_queue(QueueName=name)["QueueUrl"], fifo)
    with pytest.raises(ClientError) as caught:
        cause(at)

    found = told(caught.value)
    expected = re.escape(wording).replace(r"\{name\}", name).replace(r"\{handle\}", r"[A-Za-z0-9_.=-]{20,}")
    assert found[:2] == (code, status)
    assert re.fullmatch(expected, found[2]), found[2]


ENTRIES = [
    row
    for row in TABLE
    if row.startswith(("a delay", "illegal", "an empty text", "a deduplication")) and "fifo" not in row
]


@pytest.mark.parametrize("row", ENTRIES)
def test_an_entry_of_a_batch_fails_with_the_same_text(unchecked: Any, queue: str, row: str) -> None:
    cause, code, _, wording = TABLE[row]
    sent: dict[str, Any] = {}

    class Recording:
        def send_message(self, **parameters: Any) -> None:
            sent.update(parameters)

    cause(Case(Recording(), "", "", ""))
    entry = {name: value for name, value in sent.items() if name != "QueueUrl"}
    done = unchecked.send_message_batch(
        QueueUrl=queue, Entries=[{"Id": "bad", **entry}, {"Id": "good", "MessageBody": "x"}]
    )

    assert [(one["Id"], one["Code"], one["Message"], one["SenderFault"]) for one in done["Failed"]] == [
        ("bad", code, wording, True)
    ]
    assert [one["Id"] for one in done["Successful"]] == ["good"]


def test_handles_of_a_batch_fail_with_the_texts_of_single_ones(unchecked: Any, queue: str) -> None:
    done = unchecked.delete_message_batch(
        QueueUrl=queue, Entries=[{"Id": "a", "ReceiptHandle": "fake-receipt-handle-1"}]
    )

    assert done["Failed"][0] == {
        "Id": "a",
        "SenderFault": True,
        "Code": "ReceiptHandleIsInvalid",
        "Message": 'The input receipt handle "fake-receipt-handle-1" is not a valid receipt handle.',
    }


# What needs the second service: signatures, rights, the minute after a purge or a deletion


def test_a_queue_that_was_purged_says_how_long_it_is_not_purged_again(admin: Any, name: str) -> None:
    url = admin.create_queue(QueueName=name)["QueueUrl"]
    admin.purge_queue(QueueUrl=url)
    with pytest.raises(ClientError) as caught:
        admin.purge_queue(QueueUrl=url)

    about = f"Only one PurgeQueue operation on {name} is allowed every 60 seconds."
    assert told(caught.value) == (f"{OLD}PurgeQueueInProgress", 403, about)


def test_a_name_that_is_not_free_yet_says_so(admin: Any, name: str) -> None:
    admin.delete_queue(QueueUrl=admin.create_queue(QueueName=name)["QueueUrl"])
    with pytest.raises(ClientError) as caught:
        admin.create_queue(QueueName=name)

    about = "You must wait 60 seconds after deleting a queue before you can create another with the same name."
    assert told(caught.value) == (f"{OLD}QueueDeletedRecently", 400, about)


def test_who_has_no_right_is_told_to_what(admin: Any, partner: Any, name: str) -> None:
    url = admin.create_queue(QueueName=name)["QueueUrl"]
    admin.add_permission(
        QueueUrl=url, Label="l", AWSAccountIds=["partner"], Actions=["ReceiveMessage"]
    )  # else there is no queue for it
    with pytest.raises(ClientError) as caught:
        partner.send_message(QueueUrl=url, MessageBody="x")

    assert told(caught.value) == ("AccessDenied", 403, "User: partner is not authorized to perform: sqs:sendmessage")


@pytest.mark.parametrize(
    ("key_id", "secret", "code", "about"),
    [
        ("admin", "wrong", "SignatureDoesNotMatch", SIGNATURE),
        ("nobody", ADMIN_SECRET, "InvalidClientTokenId", "The security token included in the request is invalid."),
    ],
)
def test_a_signature_that_does_not_fit_says_so(
    strict: Running, key_id: str, secret: str, code: str, about: str
) -> None:
    client = client_of(strict.endpoint, key_id, secret)
    with pytest.raises(ClientError) as caught:
        client.list_queues()
    client.close()

    assert told(caught.value) == (code, 403, about)


# What no client of AWS's makes

FORM = {"content-type": "application/x-www-form-urlencoded"}
RAW: dict[str, tuple[str, dict[str, str], bytes, str, int, str]] = {
    "an unknown action": (
        "/",
        {"x-amz-target": "AmazonSQS.Nothing"},
        b"{}",
        "UnknownOperationException",
        404,
        "The action Nothing is not valid for this endpoint.",
    ),
    "an unknown action in a form": (
        "/",
        FORM,
        b"Action=Nothing",
        "InvalidAction",
        400,
        "The action Nothing is not valid for this endpoint.",
    ),
    "a list where there is one value": (
        "/",
        FORM,
        b"Action=GetQueueUrl&QueueName.1=q",
        "MalformedInput",
        400,
        "Start of list found where not expected",
    ),
    "an action without a queue at a queue": (
        "/000000000000/q",
        FORM,
        b"Action=ListQueues",
        "InvalidAction",
        400,
        "The action ListQueues is not valid for this endpoint.",
    ),
    "no action": (
        "/",
        FORM,
        b"Version=2012-11-05",
        "MissingAction",
        400,
        "The request must contain the parameter Action.",
    ),
    "no url": (
        "/",
        {"x-amz-target": "AmazonSQS.PurgeQueue"},
        b"{}",
        "MissingParameter",
        400,
        "The request must contain the parameter QueueUrl.",
    ),
    "a text for an integer": (
        "/",
        {"x-amz-target": "AmazonSQS.SendMessage"},
        b'{"QueueUrl": "q", "MessageBody": "x", "DelaySeconds": "invalid"}',
        "SerializationException",
        400,
        "STRING_VALUE can not be converted to an Integer",
    ),
    "a number for a text": (
        "/",
        {"x-amz-target": "AmazonSQS.CreateQueue"},
        b'{"QueueName": "q", "Attributes": {"VisibilityTimeout": 30}}',
        "SerializationException",
        400,
        "NUMBER_VALUE can not be converted to a String",
    ),
    "a text for a list": (
        "/",
        {"x-amz-target": "AmazonSQS.SendMessageBatch"},
        b'{"QueueUrl": "q", "Entries": "x"}',
        "SerializationException",
        400,
        "Expected list or null",
    ),
    "a list for a text": (
        "/",
        {"x-amz-target": "AmazonSQS.SendMessage"},
        b'{"QueueUrl": "q", "MessageBody": ["x"]}',
        "SerializationException",
        400,
        "Start of list found where not expected",
    ),
    "no JSON": (
        "/",
        {"x-amz-target": "AmazonSQS.SendMessage"},
        b'{"QueueUrl": "\xff"}',
        "SerializationException",
        400,
        "The body can't be read: it is not UTF-8.",
    ),
    "an object for a text": (
        "/",
        {"x-amz-target": "AmazonSQS.SendMessage"},
        b'{"QueueUrl": "q", "MessageBody": {}}',
        "SerializationException",
        400,
        "Start of structure or map found where not expected.",
    ),
}


@pytest.mark.parametrize("row", RAW)
def test_a_request_of_no_client_is_refused_with_a_text_of_aws(up: Up | Running, row: str) -> None:
    path, headers, content, code, status, about = RAW[row]
    response = httpx.post(up.endpoint + path, headers=headers, content=content)
    if headers is FORM:
        found = tuple(
            (re.search(rf"<{part}>(.*?)</{part}>", response.text) or ["", ""])[1] for part in ("Code", "Message")
        )
    else:
        found = (response.headers["x-amzn-query-error"].partition(";")[0], response.json()["message"])

    assert (response.status_code, *found) == (status, code, about)


HERE = {"AWS.SimpleQueueService.PurgeQueueInProgress", "AWS.SimpleQueueService.QueueDeletedRecently", "AccessDenied"}


def test_every_error_that_the_dialect_knows_is_caused_by_a_test() -> None:
    caused = {row[1] for row in TABLE.values()} | {row[3] for row in RAW.values()} | HERE | CODES
    known = {shape.code for shape in vars(errors).values() if isinstance(shape, errors.Shape)}

    assert known - caused - {"SignatureDoesNotMatch", "InvalidClientTokenId"} == set()
