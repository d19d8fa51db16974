"""The AWS CLI: each verb that docs/reference/sqs.md names, typed as its users type it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from facade.dialects.sqs.actions import ACTIONS
from tests.clients import NotFetched, environment, fetched
from tests.conformance.conftest import Running
from tests.conftest import absent
from tests.services import Up

HERE = Path(__file__).parent
Aws = Callable[..., Any]


@pytest.fixture(scope="module")
def used() -> set[str]:
    """The verbs that were typed."""
    return set()


@pytest.fixture(scope="module")
def aws(up: Up | Running, used: set[str], tmp_path_factory: pytest.TempPathFactory) -> Aws:
    """Types a command; what it prints, from JSON."""
    try:
        folder = fetched(HERE / "awscli.lock")
    except NotFetched as error:
        absent(str(error))
    home = tmp_path_factory.mktemp("home")
    keys = {
        "AWS_ACCESS_KEY_ID": "shop",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "HOME": str(home),
    }

    def call(verb: str, *arguments: str) -> Any:
        used.add("".join(word.capitalize() for word in verb.split("-")))
        command = [
            sys.executable,
            str(folder / "bin" / "aws"),
            "--endpoint-url",
            up.endpoint,
            "--output",
            "json",
            "sqs",
            verb,
            *arguments,
        ]
        done = subprocess.run(
            command, env={**environment(folder), **keys}, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{verb}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout else None

    return call


def test_every_verb_of_the_cli_works(aws: Aws, sqs: Any, used: set[str], name: str) -> None:
    dead = aws("create-queue", "--queue-name", f"{name}-dead", "--tags", "team=shop")["QueueUrl"]
    dead_arn = aws("get-queue-attributes", "--queue-url", dead, "--attribute-names", "All")["Attributes"]["QueueArn"]
    policy = json.dumps({"RedrivePolicy": json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": "1"})})
    url = aws("create-queue", "--queue-name", name, "--attributes", policy)["QueueUrl"]
    at = ("--queue-url", url)

    assert aws("get-queue-url", "--queue-name", name)["QueueUrl"] == url
    assert aws("list-queues", "--queue-name-prefix", name)["QueueUrls"] == sorted([url, dead])
    assert aws("list-dead-letter-source-queues", "--queue-url", dead)["queueUrls"] == [url]
    aws("set-queue-attributes", *at, "--attributes", "VisibilityTimeout=0")
    aws("tag-queue", *at, "--tags", "a=b,c=d")
    aws("untag-queue", *at, "--tag-keys", "a")
    assert aws("list-queue-tags", *at)["Tags"] == {"c": "d"}
    aws("add-permission", *at, "--label", "l", "--aws-account-ids", "123456789012", "--actions", "SendMessage")
    aws("remove-permission", *at, "--label", "l")

    aws(
        "send-message",
        *at,
        "--message-body",
        "a",
        "--message-attributes",
        '{"k": {"DataType": "String", "StringValue": "v"}}',
    )
    (got,) = aws("receive-message", *at, "--message-attribute-names", "All", "--attribute-names", "All")["Messages"]
    assert (got["Body"], got["MessageAttributes"]["k"]["StringValue"]) == ("a", "v")
    assert aws("receive-message", *at) is None
    # So many that the task still runs when the CLI has started once more.
    for _ in range(12):
        sqs.send_message_batch(QueueUrl=dead, Entries=[{"Id": str(n), "MessageBody": "x"} for n in range(10)])
    other = sqs.create_queue(QueueName=f"{name}-other")["QueueUrl"]
    other_arn = sqs.get_queue_attributes(QueueUrl=other, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    between = ("--source-arn", dead_arn, "--destination-arn", other_arn)
    task = aws("start-message-move-task", *between, "--max-number-of-messages-per-second", "1")["TaskHandle"]
    assert aws("list-message-move-tasks", "--source-arn", dead_arn)["Results"][0]["SourceArn"] == dead_arn
    aws("cancel-message-move-task", "--task-handle", task)

    aws("purge-queue", *at)
    aws("set-queue-attributes", *at, "--attributes", "VisibilityTimeout=30")
    entries = [{"Id": str(n), "MessageBody": "x"} for n in range(3)]
    assert len(aws("send-message-batch", *at, "--entries", json.dumps(entries))["Successful"]) == 3
    handles: list[str] = []
    while len(handles) < 3:
        got = aws("receive-message", *at, "--max-number-of-messages", "10", "--wait-time-seconds", "2")
        handles += [one["ReceiptHandle"] for one in got["Messages"]]
    aws("change-message-visibility", *at, "--receipt-handle", handles[0], "--visibility-timeout", "60")
    changes = [{"Id": "a", "ReceiptHandle": handles[1], "VisibilityTimeout": 60}]
    assert aws("change-message-visibility-batch", *at, "--entries", json.dumps(changes))["Successful"] == [{"Id": "a"}]
    aws("delete-message", *at, "--receipt-handle", handles[0])
    deletes = [{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(handles[1:])]
    assert len(aws("delete-message-batch", *at, "--entries", json.dumps(deletes))["Successful"]) == 2
    aws("delete-queue", *at)

    assert used == set(ACTIONS)
