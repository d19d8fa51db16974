"""Data that Kafka or Redis can't start with, by the real programs: what `leaseway up` says, and
that its command goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import time
from pathlib import Path

from tests.acceptance.test_bad_days import make_queue, wait_for
from tests.acceptance.test_kafka_bad_days import metric, send, take_all
from tests.acceptance.traffic import Client
from tests.conftest import StartUp
from tests.services import Up
from tests.stopping import stand_still


def command_in(line: str, option: str) -> list[str]:
    """The words of the one command in a line that has `option`."""
    (command,) = (found for found in re.findall(r"`(leaseway up [^`]*)`", line) if option in found)
    return shlex.split(command)


def refused(leaseway_up: StartUp, data: Path) -> str:
    """The line with which `leaseway up` ends at once."""
    up = leaseway_up(data=data)
    assert up.wait_end() == 2
    assert "Traceback" not in up.text
    return up.lines[-1]


def go_on(leaseway_up: StartUp, line: str, option: str) -> Up:
    """Runs the command that the line gives."""
    leaseway, verb, *options = command_in(line, option)
    assert (leaseway, verb, options[0], options[2:]) == ("leaseway", "up", "--data", [option])
    up = leaseway_up(option, data=Path(options[1]))
    up.wait_ready(120)
    return up


Handles = list[str]


def settle_some(up: Up, queue: str) -> Handles:
    """Ten messages: four acked, three leased for five minutes (their handles), three waiting; and
    the journal has it all.
    """
    make_queue(up, queue)
    with contextlib.closing(Client(up.endpoint)) as client:
        assert send(client, queue, *map(str, range(10)))[0] == 200
        got: list[dict[str, str]] = []
        while len(got) < 7:
            ask = {"max": 7 - len(got), "wait_seconds": 20, "lease_seconds": 300}
            got += client.call("POST", f"/v1/queues/{queue}/receive", ask)[1]["messages"]
        assert ack(client, queue, [m["handle"] for m in got[:4]]) == 200
    time.sleep(1)
    wait_for(lambda: metric(up, "journal_lag_seconds") == 0)  # so nothing of it may be forgotten
    return [m["handle"] for m in got[4:]]


def ack(client: Client, queue: str, handles: Handles) -> int:
    return client.call("POST", f"/v1/queues/{queue}/ack", {"handles": handles})[0]


def check_settled(up: Up, queue: str, leased: Handles) -> None:
    """Acks and leases are as they were: three messages come, once, and the handles of the three
    others hold.
    """
    with contextlib.closing(Client(up.endpoint)) as client:
        wait_for(lambda: ack(client, queue, leased) == 200, 60)
        assert len(take_all(client, queue, wait_s=10)) == 3


def appended(folder: Path) -> Path:
    """The file that Redis appends to: of 6.2 one for all, of newer ones the last of a folder."""
    return max(
        folder.glob("appendonlydir/*.incr.aof"),
        key=lambda file: file.stat().st_mtime,
        default=folder / "appendonly.aof",
    )


def break_in_the_middle(file: Path) -> None:
    data = file.read_bytes()
    command = data.index(b"\r\n*", len(data) // 2) + 2
    assert 500 < command < len(data) - 500
    with file.open("r+b") as opened:
        opened.seek(command)
        opened.write(b"?")


def test_a_broken_append_only_file_is_set_aside_and_the_state_rebuilt(leaseway_up: StartUp) -> None:
    up = leaseway_up()
    up.wait_ready(120)
    leased = settle_some(up, "orders")
    old = up.run["redis"]["pid"]
    stand_still(old)
    break_in_the_middle(appended(up.data / "redis"))
    os.kill(old, signal.SIGKILL)
    up.wait_line("--rebuild-redis", 60)  # said while it runs, too
    assert up.stop() == 0

    line = refused(leaseway_up, up.data)

    for part in (
        "Redis can't read its data",
        "Bad file format",
        "acks and leases of the last second",
        "not lost are all queues, messages",
    ):
        assert part in line, line
    broken = appended(up.data / "redis").read_bytes()
    again = go_on(leaseway_up, line, "--rebuild-redis")
    check_settled(again, "orders", leased)
    (aside,) = up.data.glob("redis.aside-*")
    assert appended(aside).read_bytes() == broken
    assert again.stop() == 0
    once_more = leaseway_up(data=up.data)  # without the option
    once_more.wait_ready(120)
    with contextlib.closing(Client(once_more.endpoint)) as client:
        assert take_all(client, "orders", wait_s=4) == []


def test_a_deleted_kafka_folder_is_put_back_or_done_without(leaseway_up: StartUp) -> None:
    up = leaseway_up()
    up.wait_ready(120)
    leased = settle_some(up, "orders")
    kafka, copy = up.data / "kafka", up.data / "kafka.copy"
    kafka.rename(copy)
    os.kill(up.run["kafka"]["pid"], signal.SIGKILL)
    up.wait_line("Kafka's data are gone", 60)  # said while it runs, too
    assert not kafka.exists(), "Kafka was started without its data"
    assert up.stop() == 0

    line = refused(leaseway_up, up.data)

    for part in ("has no meta.properties", "lost are all queues, messages and keys", "not lost are the secrets"):
        assert part in line, line
    secret = (up.data / "secret").read_text()
    shutil.copytree(copy, kafka)
    again = go_on(leaseway_up, line, "--rebuild-redis")
    check_settled(again, "orders", leased)
    assert again.stop() == 0
    shutil.rmtree(kafka)

    empty = go_on(leaseway_up, refused(leaseway_up, up.data), "--start-empty")

    with contextlib.closing(Client(empty.endpoint)) as client:
        assert client.call("GET", "/v1/queues")[1]["queues"] == []
        make_queue(empty, "orders")
        assert send(client, "orders", "new")[0] == 200
        assert take_all(client, "orders", wait_s=20) == ["new"]
    assert (up.data / "secret").read_text() == secret
    assert len(list(up.data.glob("redis.aside-*"))) == 2
