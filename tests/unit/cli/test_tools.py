"""`leaseway doctor`, `top` and `bench`."""

from __future__ import annotations

import io
import socket
import sys
import time
from typing import Any

import pytest

from facade.programs.cli.nouns.queue import COLUMNS
from facade.programs.cli.tools import doctor
from tests.unit.cli.service import Cli

HEALTHY = {"status": "ok", "alarms": {}, "native": "on", "plane": "on"}


@pytest.fixture
def well(cli: Cli) -> Cli:
    cli.service.on("GET /live", (200, {"status": "ok"}))
    cli.service.on("GET /ready", (200, {"status": "ok", "parts": {"kafka": "ok", "redis": "ok"}}))
    cli.service.on("GET /health", (200, HEALTHY))
    cli.service.on("GET /v1/queues", (200, {"queues": [], "next": None}))
    return cli


def test_doctor_says_that_all_is_right(well: Cli) -> None:
    ran = well("doctor", "-o", "json")

    assert (ran.code, ran.err) == (0, "")
    assert [(check["check"], check["status"]) for check in ran.json] == [
        ("reachable", "ok"),
        ("ready", "ok"),
        ("healthy", "ok"),
        ("key", "ok"),
    ]
    assert ran.json[0]["note"].startswith(f"{well.service.endpoint}, no key; answered in ")
    assert ran.json[1]["note"] == "kafka, redis"


@pytest.mark.parametrize(
    ("request_", "answer", "check", "status", "note"),
    [
        (
            "GET /ready",
            (503, {"status": "x", "parts": {"kafka": "away", "redis": "ok"}}),
            "ready",
            "failed",
            "kafka: away",
        ),
        ("GET /health", (200, {**HEALTHY, "status": "alarm", "alarms": {"near": 2}}), "healthy", "alarm", "near (2)"),
        ("GET /v1/queues", (401, {"detail": "A key is needed."}), "key", "failed", "A key is needed"),
        ("GET /live", (500, None), "reachable", "failed", "GET /live answers 500"),
    ],
)
def test_doctor_ends_with_10_and_names_what_is_wrong(
    request_: str, answer: tuple[int, Any], check: str, status: str, note: str, well: Cli
) -> None:
    well.service.on(request_, answer)

    ran = well("doctor", "-o", "json")

    found = {one["check"]: one for one in ran.json}
    assert (ran.code, found[check]["status"]) == (10, status)
    assert note in found[check]["note"]
    assert ran.err == f"leaseway doctor: not all is right: {check}\n"


def test_doctor_notes_a_clock_that_differs(well: Cli) -> None:
    well.service.ahead_s = -600

    assert "s behind this machine's" in well("doctor", "-o", "json").json[0]["note"]


def test_doctor_of_a_service_that_is_not_there_ends_with_5(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    ran = cli("doctor", "--endpoint", f"http://127.0.0.1:{port}", "-o", "json")

    assert (ran.code, ran.json[0]["status"]) == (5, "unreachable")


def test_doctor_takes_no_longer_than_its_timeout_and_stops_where_nothing_answers(well: Cli) -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = well(
            "doctor", "--endpoint", f"http://127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.4", "-o", "json"
        )

    assert time.monotonic() - began < 1.2
    assert (ran.code, [(check["check"], check["status"]) for check in ran.json]) == (5, [("reachable", "unreachable")])


def test_doctor_waits_until_all_is_right_and_no_longer_than_it_may(well: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "POLL_S", 0.01)
    well.service.on("GET /ready", *[(503, {"parts": {"kafka": "away"}})] * 3, (200, {"parts": {"kafka": "ok"}}))
    assert well("doctor", "--wait").code == 0

    well.service.on("GET /ready", (503, {"parts": {"kafka": "away"}}))
    began = time.monotonic()
    assert well("doctor", "--wait", "--timeout", "0.2").code == 10
    assert time.monotonic() - began < 5


def test_top_once_asks_for_the_worst_alone(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, {"queues": ["c"], "counts": [{"name": "c"}, {"name": "a"}], "next": "x"}))

    assert cli("top", "--once", "--limit", "2", "--sort", "oldest", "-o", "name").out == "c\na\n"
    assert cli.service.asked == [("GET", "/v1/queues?counts=true&sort=oldest&limit=2", None)]


def test_top_is_drawn_at_a_terminal_alone(cli: Cli) -> None:
    ran = cli("top")

    assert (ran.code, ran.err) == (2, "leaseway top: it is drawn at a terminal; --once prints it\n")


@pytest.mark.parametrize("every", ["nan", "inf"])
def test_top_looks_at_times_that_can_be(every: str, cli: Cli) -> None:
    ran = cli("top", "--every", every)

    assert (ran.code, cli.service.asked) == (2, [])
    assert "is at most 86400, given" in ran.err


def test_top_draws_until_it_is_interrupted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def interrupted(_s: float) -> None:
        raise KeyboardInterrupt

    row = dict.fromkeys(COLUMNS, 82) | {"name": "orders"}
    cli.service.on("GET /v1/queues", (200, {"queues": ["orders"], "counts": [row], "next": None}))
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    monkeypatch.setattr("time.sleep", interrupted)

    assert cli("top").code == 130
    assert "orders" in screen.getvalue()
    assert "82" in screen.getvalue()


def test_bench_counts_what_it_has_sent_and_received_and_deletes_its_queue(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _n: "x")
    cli.service.on("POST /v1/queues", (201, {"name": "bench-x"}))
    cli.service.on("POST /v1/queues/bench-x/messages", (200, {"messages": []}))
    cli.service.on("POST /v1/queues/bench-x/receive", (200, {"messages": [{"handle": "h"}] * 5}))
    cli.service.on("POST /v1/queues/bench-x/ack", (200, {"results": []}))
    cli.service.on("DELETE /v1/queues/bench-x", (204, None))

    ran = cli(
        "bench", "--messages", "12", "--batch", "5", "--bytes", "3", "--senders", "1", "--receivers", "1", "-o", "json"
    )

    assert ran.code == 0
    assert (ran.json["sent"]["messages"], ran.json["received"]["messages"]) == (12, 15)
    sends = [body["messages"] for _, path, body in cli.service.asked if path.endswith("/messages")]
    assert sends == [[{"body": "xxx"}] * 5, [{"body": "xxx"}] * 5, [{"body": "xxx"}] * 2]
    assert cli.service.asked[-1][:2] == ("DELETE", "/v1/queues/bench-x")


def test_bench_that_fails_deletes_its_queue_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_hex", lambda _n: "x")
    cli.service.on("POST /v1/queues", (201, {"name": "bench-x"}))
    cli.service.on("POST /v1/queues/bench-x/messages", (429, {"detail": "Too many."}))
    cli.service.on("POST /v1/queues/bench-x/receive", (200, {"messages": []}))
    cli.service.on("DELETE /v1/queues/bench-x", (204, None))

    ran = cli("bench", "--messages", "10")

    assert (ran.code, ran.out, ran.err) == (1, "", "leaseway bench: Too many\n")
    assert cli.service.asked[-1][:2] == ("DELETE", "/v1/queues/bench-x")
