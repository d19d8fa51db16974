"""The programs in examples/ do what they say, run as their users run them, against the real
`leaseway up`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.acceptance.traffic import Client
from tests.services import Up

EXAMPLES = Path(__file__).parents[2] / "examples"


def done(client: Client, method: str, path: str, body: Any = None) -> Any:
    status, answer = client.call(method, path, body)
    assert 200 <= status < 300, (status, answer)
    return answer


def command(name: str, *options: str) -> list[str]:
    return [sys.executable, "-W", "error", str(EXAMPLES / name), *options]


def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(name, *options), capture_output=True, text=True, timeout=60, check=False)


def backlog(client: Client, queue: str) -> int:
    return int(done(client, "GET", f"/v1/queues/{queue}")["tags"][0]["backlog"])


def wait_backlog(client: Client, queue: str, wanted: int) -> None:
    end = time.monotonic() + 10
    while (found := backlog(client, queue)) != wanted:
        assert time.monotonic() < end, f"{queue}: {found} are left, expected {wanted}"
        time.sleep(0.05)


def bodies(client: Client, queue: str) -> list[str]:
    return [message["body"] for message in done(client, "GET", f"/v1/queues/{queue}/messages?limit=100")["messages"]]


def test_the_worker_acks_what_works_and_gives_back_what_fails_until_it_is_dead(up: Up, client: Client) -> None:
    done(client, "POST", "/v1/queues", {"name": "jobs-dlq"})
    policy = {"dead_letter_queue": "jobs-dlq", "max_receive_count": 2}
    done(client, "POST", "/v1/queues", {"name": "jobs", "redrive_policy": policy})
    texts = ["one\n", "two\n", "broken\n", "three\n"]
    done(client, "POST", "/v1/queues/jobs/messages", {"messages": [{"body": text} for text in texts]})

    found = run(
        "worker.py",
        *(
            "--endpoint",
            up.endpoint,
            "--queue",
            "jobs",
            "--wait-seconds",
            "1",
            "--retry-seconds",
            "0.2",
            "--idle-exit",
            "2",
        ),
        *("--", "grep", "-v", "broken"),
    )

    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.split()) == ["one", "three", "two"]
    assert found.stderr.count("done, ack: ok") == 3
    assert "(delivery 1), released for 0.2 s: ok" in found.stderr
    assert "(delivery 2), released for 0.4 s: ok" in found.stderr
    assert bodies(client, "jobs-dlq") == ["broken\n"]
    wait_backlog(client, "jobs", 0)


def test_the_worker_keeps_a_message_whose_work_takes_longer_than_its_lease(up: Up, client: Client) -> None:
    done(client, "POST", "/v1/queues", {"name": "slow"})
    done(client, "POST", "/v1/queues/slow/messages", {"messages": [{"body": "3"}, {"body": "0"}]})

    worker = subprocess.Popen(
        command(
            "worker.py",
            *(
                "--endpoint",
                up.endpoint,
                "--queue",
                "slow",
                "--lease-seconds",
                "1",
                "--wait-seconds",
                "1",
                "--idle-exit",
                "1",
            ),
            *("--", "xargs", "sleep"),
        ),
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(1.5)
    stolen = done(client, "POST", "/v1/queues/slow/receive", {"max": 10, "wait_seconds": 1.2})["messages"]
    _, said = worker.communicate(timeout=30)

    assert stolen == []
    assert (worker.returncode, said.count("done, ack: ok")) == (0, 2), said
    wait_backlog(client, "slow", 0)


def test_a_stopped_worker_finishes_its_work_and_gives_the_rest_back(up: Up, client: Client) -> None:
    done(client, "POST", "/v1/queues", {"name": "stopped"})
    done(client, "POST", "/v1/queues/stopped/messages", {"messages": [{"body": "2"} for _ in range(5)]})

    worker = subprocess.Popen(
        command(
            "worker.py", "--endpoint", up.endpoint, "--queue", "stopped", "--", "sh", "-c", "echo begun; xargs sleep"
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None and worker.stdout.readline() == "begun\n"
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate(timeout=30)

    assert worker.returncode == 0, said
    acked, given_back = said.count("done, ack: ok"), said.count("given back: ok")
    assert (acked, acked + given_back) == (1, len(said.splitlines())), said
    rest = done(client, "POST", "/v1/queues/stopped/receive", {"max": 10, "wait_seconds": 1})["messages"]
    assert len(rest) == 4, "what was given back is receivable at once"


def test_the_worker_says_in_one_line_why_it_was_refused(up: Up) -> None:
    found = run("worker.py", "--endpoint", up.endpoint, "--queue", "nowhere", "--", "true")

    assert found.returncode == 1
    assert "queue_not_found" in found.stderr and len(found.stderr.splitlines()) == 1


def test_a_transfer_and_its_message_are_both_there_or_neither_though_its_producer_dies(
    up: Up, client: Client, tmp_path: Path
) -> None:
    done(client, "POST", "/v1/queues", {"name": "transfers"})
    common = ("--endpoint", up.endpoint, "--database", str(tmp_path / "bank.db"), "--immunity", "0")

    made = run("transfer.py", "pay", *common, "--amount", "40")
    refused = run("transfer.py", "pay", *common, "--amount", "400")
    died = [run("transfer.py", "pay", *common, "--amount", amount, "--die").returncode for amount in ("7", "700")]
    checked = run("transfer.py", "check", *common, "--wait", "6")

    assert (made.stdout.split()[-1], refused.stdout.split()[-1], died) == ("committed", "rolled_back", [-9, -9]), (
        made.stderr
    )
    assert sorted(line.split()[-1] for line in checked.stdout.splitlines()) == ["committed", "rolled_back"], (
        checked.stderr
    )
    assert sorted(json.loads(body)["amount"] for body in bodies(client, "transfers")) == [7, 40]


def test_a_stock_avro_consumer_reads_what_http_clients_and_plain_producers_sent(up: Up, client: Client) -> None:
    done(client, "POST", "/v1/queues", {"name": "both"})
    sent = [f"order {n}" for n in range(20)]
    done(
        client,
        "POST",
        "/v1/queues/both/messages",
        {"messages": [{"body": body, "attributes": {"kind": "retail"}} for body in sent]},
    )
    bootstrap = up.run["kafka"]["bootstrap"]
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("lw.q.both", b"raw bytes", headers=[("kind", b"native")])
    assert producer.flush(10) == 0

    found = run(
        "native_consumer.py",
        *("--bootstrap", bootstrap, "--endpoint", up.endpoint, "--queue", "both", "--count", "21", "--idle-exit", "30"),
    )

    assert (found.returncode, found.stderr) == (0, "")
    lines = [json.loads(line) for line in found.stdout.splitlines()]
    by_http = [line for line in lines if not line["native"]]
    assert sorted(line["body"] for line in by_http) == sorted(sent)
    assert {json.dumps(line["attributes"]) for line in by_http} == {'{"kind": "retail"}'}
    assert [(line["body"], line["attributes"]) for line in lines if line["native"]] == [
        ("raw bytes", {"kind": "native"})
    ]
    # It took nothing from the queue.
    wait_backlog(client, "both", 21)


def test_spark_counts_the_messages_in_the_topic(up: Up, client: Client) -> None:
    done(client, "POST", "/v1/queues", {"name": "counted"})
    kinds = ["a", "b", "a", None, "a"]
    messages = [{"body": "x", "attributes": {"kind": kind} if kind else {}} for kind in kinds]
    done(client, "POST", "/v1/queues/counted/messages", {"messages": messages})
    command = [
        sys.executable,
        "-m",
        "facade",
        "spark",
        str(EXAMPLES / "count_messages.py"),
        up.run["kafka"]["bootstrap"],
        "counted",
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.splitlines()[-3:] == ["-\t1", "a\t3", "b\t1"]
    assert " INFO " not in ended.stderr
