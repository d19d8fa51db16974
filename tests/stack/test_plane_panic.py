"""A panic in the plane's thread ends its worker, with one line that names it; nothing hangs, and
the next worker serves.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.acceptance.traffic import Client
from tests.conftest import StartUp

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("library")]

# Runs in each Python of the stack, before its own code: a worker's next tick after the mark is
# there has the thread panic, by a function that only tests call.
SITE = """
import os, pathlib, sys, threading, time

MARK = pathlib.Path({mark!r})

def patch():
    while not hasattr(sys.modules.get("facade.http.sockets.library"), "NativeFront"):
        time.sleep(0.01)
    front = sys.modules["facade.http.sockets.library"].NativeFront
    tick = front.tick

    def panicking(self, *given):
        if MARK.exists():
            MARK.unlink()
            self._library.front_panic(self._front)
        return tick(self, *given)

    front.tick = panicking

threading.Thread(target=patch, daemon=True).start()
"""
WITHIN_S = 60.0


def test_a_panic_of_the_plane_ends_the_worker_with_a_line(leaseway_up: StartUp, tmp_path: Path) -> None:
    mark = tmp_path / "panic"
    (tmp_path / "sitecustomize.py").write_text(SITE.format(mark=str(mark)))
    up = leaseway_up("--workers", "1", environment={"PYTHONPATH": str(tmp_path), "LEASEWAY_PLANE": "auto"})
    up.wait_ready()
    (worker,) = up.workers
    client = Client(up.endpoint)
    assert client.call("POST", "/v1/queues", {"name": "q", "partitions": 1})[0] in (200, 201)
    assert client.call("POST", "/v1/queues/q/messages", {"messages": [{"body": "kept"}]})[0] == 200
    began = time.monotonic()
    mark.touch()
    # It waits for another message when its worker ends: the connection is cut, and nothing hangs.
    client.call("POST", "/v1/queues/none/receive", {"wait_seconds": 20})
    end = began + WITHIN_S
    while mark.exists() or (up.workers or [worker]) == [worker]:
        assert time.monotonic() < end, "the worker did not end"
        time.sleep(0.05)
    lines = "".join(file.read_text(errors="replace") for file in up.data.rglob("facade-*.log")).splitlines()
    told = [line for line in lines if "panic" in line]
    assert len(told) == 1, told
    assert re.search(r"action=panic part=native thread=plane at=src/\S+:\d+:\d+ error=a test asked for it", told[0]), (
        told
    )
    assert not [line for line in lines if "RUST_BACKTRACE" in line]
    assert "SIGABRT" in up.text, up.text
    while True:
        status, found = client.call("POST", "/v1/queues/q/receive", {"wait_seconds": 1})
        if status == 200 and found["messages"]:
            break
        assert time.monotonic() < end, f"{status} {found}"
    assert [message["body"] for message in found["messages"]] == ["kept"]
    client.close()
