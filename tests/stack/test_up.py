"""`leaseway up` for real: start, kill -9 of each part and of itself, stop, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import pytest

from facade.programs.stack.data.leftovers import leftovers
from tests.conftest import StartUp
from tests.services import Up
from tests.stopping import stand_still

TINY = {"LW_APP": "tests.stack.tiny_app:create_app"}


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def reachable(address: str) -> bool:
    try:
        if address.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(unquote(address.removeprefix("unix://").partition("?")[0]))
        else:
            host, port = address.split(":")
            socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module("--workers", "2", environment=TINY)
    # The target on 2 cores is 15 s; the test's machine may be busy with more than this.
    started.wait_ready()
    started.wait_line("the endpoint is")
    return started


def test_run_file_names_every_part_and_nothing_else(up: Up) -> None:
    run = up.run

    assert set(run) == {"endpoint", "kafka", "redis", "facades"}
    assert set(run["kafka"]) == {"pid", "bootstrap", "service", "config"}
    assert set(run["redis"]) == {"pid", "url"}
    assert [set(facade) for facade in run["facades"]] == [{"pid"}, {"pid"}]
    assert run["endpoint"] == up.endpoint
    assert reachable(run["kafka"]["bootstrap"]) and reachable(run["kafka"]["service"])
    assert reachable(run["redis"]["url"])


def test_up_prints_the_endpoint_and_three_commands_when_ready(up: Up) -> None:
    lines = [line.strip() for line in up.lines]

    assert f"leaseway: the endpoint is {up.endpoint}" in lines
    assert f'export LEASEWAY_ENDPOINT="{up.endpoint}"' in lines
    assert [" ".join(line.split()[1:3]) for line in lines if re.match(r"\S*leaseway (queue|message) ", line)] == [
        "queue create",
        "message send",
        "message receive",
    ]


def test_up_keeps_a_made_secret_for_its_owner_only(up: Up) -> None:
    secret = up.data / "secret"

    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert len(secret.read_text().strip()) >= 32


@pytest.mark.parametrize(("part", "name", "address"), [("kafka", "Kafka", "bootstrap"), ("redis", "Redis", "url")])
def test_a_killed_service_is_back_with_its_port_and_a_new_pid(up: Up, part: str, name: str, address: str) -> None:
    before = up.run[part]

    os.kill(before["pid"], signal.SIGKILL)

    up.wait_line(f"{name} (pid {before['pid']}) was ended by SIGKILL; starting it again")
    up.wait_line(f"{name} is back")
    after = up.run[part]
    assert after["pid"] != before["pid"]
    assert after[address] == before[address]
    assert reachable(after[address])


def test_a_killed_worker_is_back_and_the_other_one_serves_meanwhile(up: Up) -> None:
    before = [facade["pid"] for facade in up.run["facades"]]

    os.kill(before[0], signal.SIGKILL)

    up.wait_line("facade worker 0 is back")
    after = [facade["pid"] for facade in up.run["facades"]]
    assert after[0] != before[0]
    assert after[1] == before[1]
    assert up.status("/ready") == 200


def test_a_second_up_of_the_same_folder_is_refused_in_one_line(up: Up, leaseway_up: StartUp) -> None:
    second = leaseway_up(data=up.data, environment=TINY)

    assert second.wait_end() == 2
    assert second.text == (
        f"leaseway up: data folder {up.data} is in use by another `leaseway up`; stop that one, or give "
        "--data another\n"
    )
    assert up.status("/ready") == 200


def test_a_taken_port_is_refused_in_one_line(up: Up, leaseway_up: StartUp) -> None:
    second = leaseway_up(port=up.port, environment=TINY)

    assert second.wait_end() == 2
    assert len(second.lines) == 1
    assert f"port {up.port} of 127.0.0.1 is in use or not permitted" in second.text


@pytest.mark.parametrize("name", ["controller_port", "service_port"])
def test_a_port_that_somebody_takes_before_kafka_has_it_is_replaced(
    leaseway_up: StartUp, tmp_path: Path, name: str
) -> None:
    up = leaseway_up(data=tmp_path, environment=TINY)
    up.wait_line("starting Kafka")  # which listens a second later
    port = json.loads((tmp_path / "stack.json").read_text())[name]
    with socket.create_server(("127.0.0.1", port)):
        up.wait_ready()
        assert f"{name.replace('_', ' ')} {port} was taken meanwhile" in up.text
        assert json.loads((tmp_path / "stack.json").read_text())[name] != port
    assert up.stop() == 0


def test_up_survives_its_own_kill_and_stops_cleanly(leaseway_up: StartUp, tmp_path: Path) -> None:
    # A path of no meaning to the shell, the properties file or redis.conf must not break any of
    # them.
    data = tmp_path / "a folder"
    first = leaseway_up(data=data, environment=TINY)
    first.wait_ready()
    run, identity = first.run, json.loads((data / "stack.json").read_text())
    stand_still(run["redis"]["pid"])  # can't follow its parent by itself: the next start must end it

    first.process.kill()
    first.wait_end()
    wait_until(lambda: leftovers(data) == [run["redis"]["pid"]], 20, "all but the stopped part end with the supervisor")
    os.kill(run["redis"]["pid"], signal.SIGCONT)
    wait_until(lambda: leftovers(data) == [], 20, "no orphan is left")

    second = leaseway_up(data=data, environment=TINY)
    second.wait_ready()
    assert json.loads((data / "stack.json").read_text()) == identity
    assert second.run["kafka"]["bootstrap"] == run["kafka"]["bootstrap"]

    assert second.stop(signal.SIGINT) == 0
    assert leftovers(data) == []
    assert not (data / "run.json").exists()


def test_up_ends_what_an_earlier_supervisor_left(leaseway_up: StartUp, tmp_path: Path) -> None:
    first = leaseway_up(data=tmp_path, environment=TINY)
    first.wait_ready()
    redis = first.run["redis"]["pid"]
    stand_still(redis)
    first.process.kill()
    first.wait_end()

    second = leaseway_up(data=tmp_path, environment=TINY)

    # SIGTERM is pending; the stopped process only ends when it is continued, or by SIGKILL after
    # the grace.
    second.wait_line("of an earlier run of this folder")
    os.kill(redis, signal.SIGCONT)
    second.wait_ready()
    assert second.run["redis"]["pid"] != redis


def test_a_facade_that_does_not_start_ends_up_with_one_line(leaseway_up: StartUp, tmp_path: Path) -> None:
    up = leaseway_up(data=tmp_path, environment={"LW_APP": "tests.stack.no_such_app:create_app"})

    assert up.wait_end() == 2
    assert "facade worker 0 ended at once with status 1" in up.lines[-1]
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "environment", "line"),
    [
        (["--host", "0.0.0.0"], {}, "auth is open and the address 0.0.0.0 is not loopback"),
        ([], {"PATH": "/nonexistent", "JAVA_HOME": ""}, "java is missing: none in PATH; Kafka needs Java 17 or newer"),
        ([], {"LW_JARS": "/nonexistent"}, "Kafka's jars are missing in"),
        ([], {"LEASEWAY_COLOUR": "red"}, "LEASEWAY_COLOUR is not a setting of Leaseway"),
        ([], {"LEASEWAY_WINDOW_MESSAGES": "1"}, "LEASEWAY_WINDOW_MESSAGES must be 10 to 1000000, given 1"),
    ],
)
def test_up_refuses_in_one_line_and_starts_nothing(
    leaseway_up: StartUp, options: list[str], environment: dict[str, str], line: str
) -> None:
    up = leaseway_up(*options, environment=environment)

    assert up.wait_end() == 2
    assert len(up.lines) == 1
    assert line in up.text
    assert leftovers(up.data) == []
