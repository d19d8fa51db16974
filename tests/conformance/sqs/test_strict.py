"""The second service: signatures are verified, limits are wide, the 60-second rules hold, account
and region are others.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.conformance.beside import ADMIN_SECRET
from tests.conformance.conftest import Running
from tests.conformance.sqs.conftest import INVALID, Refused, client_of

FORM = {"content-type": "application/x-www-form-urlencoded"}


def test_urls_and_arns_have_the_account_and_region_of_the_settings(admin: Any, strict: Running, name: str) -> None:
    url = admin.create_queue(QueueName=name)["QueueUrl"]
    found = admin.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]

    assert (url, found["QueueArn"]) == (
        f"{strict.endpoint}/123456789012/{name}",
        f"arn:aws:sqs:eu-west-1:123456789012:{name}",
    )


@pytest.mark.parametrize("region", ["us-east-1", "cn-north-1"])
def test_a_request_signed_for_any_region_is_let_in(strict: Running, region: str) -> None:
    client = client_of(strict.endpoint, "admin", ADMIN_SECRET, region)

    assert client.list_queues(QueueNamePrefix="no-such")["ResponseMetadata"]["HTTPStatusCode"] == 200
    client.close()


@pytest.mark.parametrize(
    ("key_id", "secret", "code"),
    [("admin", "wrong", "SignatureDoesNotMatch"), ("nobody", ADMIN_SECRET, "InvalidClientTokenId")],
)
def test_a_wrong_secret_or_key_is_refused(
    strict: Running, refused: Refused, key_id: str, secret: str, code: str
) -> None:
    client = client_of(strict.endpoint, key_id, secret)

    assert refused(client.list_queues)[::2] == (code, 403)
    client.close()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_presigned_url_is_a_request_by_itself(admin: Any, strict: Running, name: str, method: str) -> None:
    url = admin.create_queue(QueueName=name)["QueueUrl"]
    request = AWSRequest(method, f"{url}?Action=SendMessage&MessageBody=a%20b", headers=FORM)
    SigV4QueryAuth(Credentials("admin", ADMIN_SECRET), "sqs", "us-east-1", expires=60).add_auth(request)
    good = httpx.request(method, request.url, headers=FORM)
    bad = httpx.request(method, request.url.replace("a%20b", "other"), headers=FORM)

    assert (good.status_code, "SendMessageResult" in good.text) == (200, True)
    assert (bad.status_code, "SignatureDoesNotMatch" in bad.text) == (403, True)
    assert admin.receive_message(QueueUrl=url)["Messages"][0]["Body"] == "a b"


def test_an_unsigned_request_is_refused(strict: Running) -> None:
    response = httpx.post(strict.endpoint, data={"Action": "ListQueues"})

    assert (response.status_code, "MissingAuthenticationToken" in response.text) == (403, True)


def test_wide_limits_take_longer_delays_and_larger_batches(admin: Any, name: str, refused: Refused) -> None:
    attributes = {"DelaySeconds": "2592000", "ReceiveMessageWaitTimeSeconds": "60"}
    url = admin.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    entries = [{"Id": str(n), "MessageBody": "x", "DelaySeconds": 0} for n in range(100)]

    assert len(admin.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 100
    admin.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=2_592_000)
    got = admin.receive_message(QueueUrl=url, MaxNumberOfMessages=100, WaitTimeSeconds=0)["Messages"]
    assert len(got) > 10
    deletes = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(got)]
    assert len(admin.delete_message_batch(QueueUrl=url, Entries=deletes)["Successful"]) == len(got)
    assert refused(admin.send_message, QueueUrl=url, MessageBody="x", DelaySeconds=2_592_001) == INVALID
    assert refused(admin.receive_message, QueueUrl=url, WaitTimeSeconds=61) == INVALID
    assert (
        refused(admin.send_message_batch, QueueUrl=url, Entries=[*entries, {"Id": "a", "MessageBody": "x"}])[1]
        == "TooManyEntriesInBatchRequest"
    )


def test_a_queue_is_purged_once_a_minute(admin: Any, name: str, refused: Refused) -> None:
    url = admin.create_queue(QueueName=name)["QueueUrl"]
    admin.purge_queue(QueueUrl=url)

    expected = ("AWS.SimpleQueueService.PurgeQueueInProgress", "PurgeQueueInProgress", 403)
    assert refused(admin.purge_queue, QueueUrl=url) == expected


def test_a_name_is_free_a_minute_after_its_queue_was_deleted(admin: Any, name: str, refused: Refused) -> None:
    admin.delete_queue(QueueUrl=admin.create_queue(QueueName=name)["QueueUrl"])

    expected = ("AWS.SimpleQueueService.QueueDeletedRecently", "QueueDeletedRecently", 400)
    assert refused(admin.create_queue, QueueName=name) == expected
