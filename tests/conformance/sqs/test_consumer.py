"""A program in JavaScript over the newest AWS SDK and sqs-consumer: long polls, batches,
heartbeats, retries, dead letters, FIFO.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.clients import NotFetched
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conformance.sqs.conftest import MakeFifo, bodies, receive_all
from tests.conftest import absent
from tests.node import node, with_packages
from tests.services import Up

PROGRAM = Path(__file__).parent / "clients" / "consumer"
MESSAGES = 500
MOST = 3


def ran(endpoint: str, *command: str, **variables: str) -> Any:
    """Returns what a program of the folder prints as JSON."""
    try:
        folder, program = with_packages(PROGRAM), node()
    except NotFetched as error:
        absent(str(error))
    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "shop",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    done = subprocess.run(
        [str(program), *command], cwd=folder, env={**os.environ, **settings, **variables},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_a_program_with_sqs_consumer_works_on_every_message_as_often_as_it_should(
    up: Up | Running, sqs: Any, name: str, make_fifo: MakeFifo
) -> None:
    dead = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": MOST})
    orders = sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})["QueueUrl"]

    with shared(up, "sqs-consumer", elsewhere=MESSAGES // 10):  # sends to the FIFO queue
        did = ran(up.endpoint, "consume.mjs", str(MESSAGES), ORDERS_URL=orders, GROUPS_URL=make_fifo("-groups"))

    assert did["errors"] == []
    poison = set(range(0, MESSAGES, 50))
    assert sorted(did["orders"]) == [n for n in range(MESSAGES) if n not in poison]
    assert {int(n): tries for n, tries in did["tries"].items()} == {
        n: MOST if n in poison else 2 if n % 10 == 0 else 1 for n in range(MESSAGES)
    }
    assert did["attributesRight"] == sum(did["tries"].values())
    assert did["beats"] >= 3, "the slow message was not kept by heartbeats"
    assert did["groups"] == {f"g{g}": list(range(g, MESSAGES, 7)) for g in range(7)}
    letters = receive_all(sqs, dead, len(poison))
    assert {json.loads(body)["n"] for body in bodies(letters)} == poison


def test_its_batches_events_and_stops_are_what_its_users_expect(up: Up | Running, sqs: Any, name: str) -> None:
    urls = {part: sqs.create_queue(QueueName=f"{name}-{part}")["QueueUrl"] for part in ("batches", "stopped", "empty")}
    missing = f"{urls['empty']}-not"

    did = ran(
        up.endpoint, "stop.mjs", **{f"{part.upper()}_URL": url for part, url in {**urls, "missing": missing}.items()}
    )

    assert did["errors"] == []
    assert did["tries"] == {str(n): 1 + n % 2 for n in range(10)}
    assert did["order"] == ["begun", "done", "stopped"]
    assert did["left"] == 4, "what was done before the stop is deleted, the rest is still there"
    assert did["abortMs"] < 5000 and did["aborted"].endswith("Request aborted")
    assert did["empty"] == urls["empty"]
    error, code, status, message, about = did["missing"]
    assert (error, code, status, message, about) == ("SQSError", "QueueDoesNotExist", 400, None, missing)
