"""Account and region as namespaces: a queue of the same name elsewhere is another queue; and URLs
behind a trusted proxy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config

from tests.conformance.beside import ADMIN_SECRET
from tests.conformance.conftest import Running
from tests.conformance.sqs.conftest import (
    ABSENT,
    INVALID,
    Refused,
    bodies,
    client_of,
    receive_all,
    secret_of,
)

ClientAt = Callable[..., Any]
# Each process of the suite has accounts of its own: keys can't be made twice.
ACCOUNTS = [f"{os.getpid():011d}{n}" for n in (1, 2)]
EUROPE, AMERICA = "eu-west-1", "us-east-1"


@pytest.fixture(scope="module")
def at(spaces: Running) -> Iterator[ClientAt]:
    """The client of an account (0 or 1) in a region."""
    secrets = [secret_of(spaces, account, account) for account in ACCOUNTS]
    clients: dict[tuple[int, str], Any] = {}

    def client(which: int, region: str = EUROPE) -> Any:
        if (which, region) not in clients:
            clients[which, region] = client_of(spaces.endpoint, ACCOUNTS[which], secrets[which], region)
        return clients[which, region]

    yield client
    for made in clients.values():
        made.close()


def arn(account: int, name: str, region: str = EUROPE) -> str:
    return f"arn:aws:sqs:{region}:{ACCOUNTS[account]}:{name}"


def test_a_name_in_another_account_or_region_is_another_queue(
    at: ClientAt, spaces: Running, name: str, refused: Refused
) -> None:
    places = [(0, EUROPE), (0, AMERICA), (1, EUROPE)]
    urls = [at(*place).create_queue(QueueName=name)["QueueUrl"] for place in places]
    for place, url in zip(places, urls, strict=True):
        at(*place).send_message(QueueUrl=url, MessageBody=str(place))

    assert urls == [f"{spaces.endpoint}/{ACCOUNTS[account]}/{name}" for account, _ in places]
    for place, url in zip(places, urls, strict=True):
        assert bodies(receive_all(at(*place), url, 2)) == [str(place)]
        found = at(*place).get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        assert found["QueueArn"] == arn(place[0], name, place[1])
        assert at(*place).get_queue_url(QueueName=name)["QueueUrl"] == url
    assert refused(at(1, AMERICA).get_queue_url, QueueName=name) == ABSENT
    assert refused(at(1, AMERICA).send_message, QueueUrl=urls[2], MessageBody="x") == ABSENT


def test_only_the_queues_of_the_account_and_region_are_listed(at: ClientAt, name: str) -> None:
    made = [at(0).create_queue(QueueName=f"{name}-{n}")["QueueUrl"] for n in range(3)]
    at(0, AMERICA).create_queue(QueueName=f"{name}-america")
    first = at(0).list_queues(QueueNamePrefix=name, MaxResults=2)
    second = at(0).list_queues(QueueNamePrefix=name, MaxResults=2, NextToken=first["NextToken"])

    assert first["QueueUrls"] + second["QueueUrls"] == made
    assert not at(1).list_queues(QueueNamePrefix=name).get("QueueUrls")


def test_a_deleted_queue_leaves_its_namesake_alone(at: ClientAt, name: str, refused: Refused) -> None:
    urls = [at(account).create_queue(QueueName=name)["QueueUrl"] for account in (0, 1)]
    at(0).delete_queue(QueueUrl=urls[0])

    assert refused(at(0).get_queue_url, QueueName=name) == ABSENT
    assert at(1).get_queue_url(QueueName=name)["QueueUrl"] == urls[1]


def test_names_are_as_long_as_elsewhere_and_fifo_and_tags_work(at: ClientAt, name: str, refused: Refused) -> None:
    longest = f"{name:-<80}"
    url = at(0).create_queue(QueueName=longest)["QueueUrl"]
    fifo = at(0).create_queue(QueueName=f"{name:-<75}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    tagged = at(0).create_queue(QueueName=f"{longest}@billing")["QueueUrl"]
    at(0).send_message(QueueUrl=url, MessageBody="both")
    at(0).send_message(QueueUrl=fifo, MessageBody="fifo", MessageGroupId="g", MessageDeduplicationId="d")

    assert (url.rpartition("/")[2], tagged) == (longest, f"{url}@billing")
    assert bodies(receive_all(at(0), url, 1)) == bodies(receive_all(at(0), tagged, 1)) == ["both"]
    assert bodies(receive_all(at(0), fifo, 1)) == ["fifo"]
    assert refused(at(0).create_queue, QueueName=f"{longest}x") == INVALID


def _policy(target: str) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1})}


def test_dead_letters_go_to_the_queue_of_the_arn_and_back(at: ClientAt, name: str, refused: Refused) -> None:
    for account in (0, 1):
        at(account).create_queue(QueueName=f"{name}-dead")
    url = at(0).create_queue(QueueName=name, Attributes=_policy(arn(0, f"{name}-dead")))["QueueUrl"]
    dead = at(0).get_queue_url(QueueName=f"{name}-dead")["QueueUrl"]
    at(0).send_message(QueueUrl=url, MessageBody="x")
    receive_all(at(0), url, 1, VisibilityTimeout=0)
    assert "Messages" not in at(0).receive_message(QueueUrl=url)
    (letter,) = receive_all(at(0), dead, 1, AttributeNames=["All"], VisibilityTimeout=0)

    found = at(0).get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]
    assert json.loads(found["RedrivePolicy"])["deadLetterTargetArn"] == arn(0, f"{name}-dead")
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == arn(0, name)
    assert at(0).list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [url]
    assert (
        refused(at(0).set_queue_attributes, QueueUrl=url, Attributes=_policy(arn(0, f"{name}-dead", AMERICA)))
        == INVALID
    )
    at(0).start_message_move_task(SourceArn=arn(0, f"{name}-dead"))
    (again,) = receive_all(at(0), url, 1)
    assert again["Body"] == "x"
    (task,) = at(0).list_message_move_tasks(SourceArn=arn(0, f"{name}-dead"))["Results"]
    assert task["SourceArn"] == arn(0, f"{name}-dead")


def test_another_account_needs_a_permission_and_names_the_owner(at: ClientAt, name: str, refused: Refused) -> None:
    url = at(0).create_queue(QueueName=name)["QueueUrl"]
    at(1).create_queue(QueueName=name)
    denied = refused(at(1).send_message, QueueUrl=url, MessageBody="x")
    at(0).add_permission(QueueUrl=url, Label="l", AWSAccountIds=[ACCOUNTS[1]], Actions=["SendMessage", "GetQueueUrl"])
    at(1).send_message(QueueUrl=url, MessageBody="from the other")
    policy = json.loads(at(0).get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"])["Attributes"]["Policy"])

    assert (denied[0], denied[2]) == (
        "AWS.SimpleQueueService.NonExistentQueue",
        400,
    )  # who has no right at all is not told of it
    assert policy["Statement"][0]["Resource"] == arn(0, name)
    assert bodies(receive_all(at(0), url, 1)) == ["from the other"]
    assert at(1).get_queue_url(QueueName=name, QueueOwnerAWSAccountId=ACCOUNTS[0])["QueueUrl"] == url


def test_the_native_api_sees_the_whole_name(at: ClientAt, spaces: Running, name: str) -> None:
    url = at(0).create_queue(QueueName=name)["QueueUrl"]
    path = f"{spaces.endpoint}/v1/queues/{ACCOUNTS[0]}.{EUROPE}.{name}/messages"
    sent = httpx.post(path, json={"messages": [{"body": "native"}]}, auth=("admin", ADMIN_SECRET))

    assert sent.status_code == 200, sent.text
    assert bodies(receive_all(at(0), url, 1)) == ["native"]


def test_an_account_in_the_path_is_the_account_of_who_has_none(spaces: Running, name: str) -> None:
    config = Config(retries={"total_max_attempts": 1})
    keys = {"aws_access_key_id": "admin", "aws_secret_access_key": ADMIN_SECRET}
    endpoint = f"{spaces.endpoint}/{ACCOUNTS[0]}"
    client = boto3.client("sqs", endpoint_url=endpoint, region_name=EUROPE, config=config, **keys)
    url = client.create_queue(QueueName=name)["QueueUrl"]

    assert url == f"{spaces.endpoint}/{ACCOUNTS[0]}/{name}"
    client.close()


@pytest.mark.parametrize(
    ("headers", "base"),
    [
        (
            {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "queues.example", "X-Forwarded-Port": "443"},
            "https://queues.example",
        ),
        (
            {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "queues.example", "X-Forwarded-Port": "8443"},
            "https://queues.example:8443",
        ),
        (
            {"X-Forwarded-Proto": "https, http", "X-Forwarded-Host": "queues.example:8443, inner"},
            "https://queues.example:8443",
        ),
    ],
)
def test_urls_behind_a_trusted_proxy_are_the_proxys(
    at: ClientAt, spaces: Running, name: str, headers: dict[str, str], base: str
) -> None:
    """As a proxy that ends TLS: the client signs for the proxy's address, what arrives here has
    another.
    """
    outside = boto3.client(
        "sqs",
        endpoint_url=base,
        region_name=EUROPE,
        aws_access_key_id="admin",
        aws_secret_access_key=ADMIN_SECRET,
        config=Config(retries={"total_max_attempts": 1}),
    )

    def forward(request: Any, **_: Any) -> Any:
        sent = {**{key: _text(value) for key, value in request.headers.items()}, **headers, "Host": "127.0.0.1:9400"}
        answer = httpx.post(spaces.endpoint + "/", content=request.body, headers=sent)
        return _answer(request.url, answer)

    outside.meta.events.register("before-send.sqs", forward)
    url = outside.create_queue(QueueName=name)["QueueUrl"]

    assert url == f"{base}/000000000000/{name}"
    outside.close()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


class Raw:
    """A body as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._content


def _answer(url: str, answer: httpx.Response) -> AWSResponse:
    return AWSResponse(url, answer.status_code, HTTPHeaders.from_dict(dict(answer.headers)), Raw(answer.content))


def test_nothing_is_forwarded_where_no_proxy_is_trusted(strict: Running, admin: Any, name: str) -> None:
    def pretend(params: dict[str, Any], **_: Any) -> None:
        params["headers"]["X-Forwarded-Proto"] = "https"
        params["headers"]["X-Forwarded-Host"] = "elsewhere.example"

    admin.meta.events.register("before-call.sqs.CreateQueue", pretend, unique_id="pretend")
    try:
        assert admin.create_queue(QueueName=name)["QueueUrl"] == f"{strict.endpoint}/123456789012/{name}"
    finally:
        admin.meta.events.unregister("before-call.sqs.CreateQueue", unique_id="pretend")
