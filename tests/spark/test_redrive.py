"""`leaseway redrive`, run as its users run it against the real stack: what the SQL chooses moves, nothing moves twice."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from typing import Any

import pytest
from pyspark.sql import SparkSession

from facade.cli import main
from spark.choose import chosen_of
from spark.columns import DEAD_LETTERS
from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.spark.rows import at, frame, rows_of

BAD, GOOD = 25, 15
# One process for all runs: a JVM takes seconds to start.
SCRIPT = """
import json, sys
from facade.cli import main
for arguments in json.loads(sys.argv[1]):
    print("status", main(arguments), flush=True)
"""


def done(client: Client, method: str, path: str, body: Any = None) -> Any:
    status, answer = client.call(method, path, body)
    assert 200 <= status < 300, (status, answer)
    return answer


def received(client: Client, queue: str, count: int) -> list[dict[str, Any]]:
    """`count` messages of a queue, leased."""
    got: list[dict[str, Any]] = []
    end = time.monotonic() + 30
    while len(got) < count:
        assert time.monotonic() < end, f"{queue}: {len(got)} of {count}"
        body = {"max": 100, "wait_seconds": 1, "lease_seconds": 600}
        got += done(client, "POST", f"/v1/queues/{queue}/receive", body)["messages"]
    return got


def backlog(client: Client, queue: str) -> int:
    return int(done(client, "GET", f"/v1/queues/{queue}")["tags"][0]["backlog"])


def dead(client: Client) -> None:
    """40 dead letters of `orders` in `orders-dlq`, of which two were acked there; another in `other-dlq`."""
    for name in ("orders", "other"):
        done(client, "POST", "/v1/queues", {"name": f"{name}-dlq", "partitions": 2})
        policy = {"dead_letter_queue": f"{name}-dlq", "max_receive_count": 3}
        done(client, "POST", "/v1/queues", {"name": name, "redrive_policy": policy})
    bodies = [json.dumps({"n": n, "kind": "bad" if n < BAD else "good"}) for n in range(BAD + GOOD)]
    done(client, "POST", "/v1/queues/orders/messages", {"messages": [{"body": body} for body in bodies]})
    done(client, "POST", "/v1/queues/other/messages", {"messages": [{"body": '{"n": 99, "kind": "bad"}'}]})
    for queue, count in (("orders", BAD + GOOD), ("other", 1)):
        handles = [message["handle"] for message in received(client, queue, count)]
        done(client, "POST", f"/v1/queues/{queue}/kill", {"handles": handles})
    letters = {json.loads(letter["body"])["n"]: letter["handle"] for letter in received(client, "orders-dlq", BAD + GOOD)}
    done(client, "POST", "/v1/queues/orders-dlq/ack", {"handles": [letters.pop(0), letters.pop(1)]})
    done(client, "POST", "/v1/queues/orders-dlq/release", {"handles": list(letters.values())})
    time.sleep(0.5)  # The journal has what happened within 150 ms.


def test_redrive_by_sql_moves_what_is_chosen_and_a_second_run_moves_nothing(leaseway_up: StartUp) -> None:
    up = leaseway_up()
    up.wait_ready()
    chosen = ["redrive", "--data", str(up.data), "--where", "get_json_object(body_text, '$.kind') = 'bad'", "--queue", "orders-dlq"]
    runs = [[*chosen, "--dry-run"], [*chosen, "--rate", "500"], chosen, [*chosen[:4], "no_such_column = 1"]]
    with contextlib.closing(Client(up.endpoint)) as client:
        dead(client)

    ended = subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(runs)], capture_output=True, text=True, timeout=300, check=False)

    # A connection of its own: the service closes those that are silent for long.
    with contextlib.closing(Client(up.endpoint)) as client:
        assert ended.returncode == 0, ended.stderr[-3000:]
        assert ended.stdout.splitlines() == [
            "leaseway: orders-dlq: 23 letters chosen, none moved: a dry run",
            "status 0",
            "leaseway: orders-dlq: 23 letters chosen, 23 moved, 0 failed, 0 settled by others",
            "status 0",
            "leaseway: no letter at rest is chosen",
            "status 0",
            "status 2",
        ]
        assert "no_such_column" in ended.stderr
        back = [json.loads(message["body"]) for message in received(client, "orders", 23)]
        assert sorted(body["n"] for body in back) == list(range(2, BAD)) and {body["kind"] for body in back} == {"bad"}
        assert (backlog(client, "orders"), backlog(client, "orders-dlq"), backlog(client, "other-dlq")) == (23, GOOD, 1)


def test_letters_that_are_settled_or_have_no_address_are_not_chosen(spark_session: SparkSession) -> None:
    letters = frame(
        spark_session,
        DEAD_LETTERS,
        {"queue": "a", "address": "i/0/1", "reason": "killed"},
        {"queue": "a", "address": "i/0/2", "reason": "exhausted"},
        {"queue": "a", "address": "i/0/3", "reason": "killed", "settled_how": "moved", "settled_at": at(0)},
        {"queue": "b", "address": "j/0/1", "reason": "killed"},
        {"queue": "b", "address": None, "reason": "killed"},
        {"queue": "b", "address": "j/0/2", "reason": None},
    )

    assert rows_of(chosen_of(letters, "reason = 'killed'", None), "address") == [("i/0/1",), ("j/0/1",)]
    assert rows_of(chosen_of(letters, "reason = 'killed' OR reason IS NULL", "b"), "address") == [("j/0/1",), ("j/0/2",)]


def test_redrive_says_in_one_line_that_no_stack_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redrive", "--data", "/nowhere", "--where", "true"]) == 2
    assert capsys.readouterr().err == "leaseway redrive: no `leaseway up` runs in /nowhere (it has no run.json)\n"
