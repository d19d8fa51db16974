"""RocketMQ's Python client for tests: calls of one child process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.clients import environment, fetched

HERE = Path(__file__).parent


class Refused(Exception):
    """What the client has raised; `code` is the status of the service, None = there was none."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['kind']} {error['code']}: {error['text']}")
        self.kind: str = error["kind"]
        self.code: int | None = error["code"]


class Rocketmq:
    """Calls with one key; any thread may call. Raises Refused."""

    def __init__(self, endpoints: str, key: str = "", secret: str = "") -> None:
        self._about = {"endpoints": endpoints, "key": key, "secret": secret}
        self._lock = threading.Lock()
        self._home = tempfile.TemporaryDirectory(prefix="rocketmq-")
        self._child = subprocess.Popen(
            [sys.executable, "child.py"],
            cwd=HERE / "clients", env={**environment(fetched(HERE / "rocketmq.lock")), "HOME": self._home.name},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._open: list[int] = []

    def ask(self, call: str, **about: Any) -> Any:
        """One call."""
        with self._lock:
            assert self._child.stdin is not None and self._child.stdout is not None
            self._child.stdin.write(json.dumps({**self._about, "call": call, **about}) + "\n")
            self._child.stdin.flush()
            told = json.loads(self._child.stdout.readline())
        if "error" in told:
            raise Refused(told["error"])
        return told["answer"]

    def started(self, call: str, **about: Any) -> int:
        """A producer or consumer, shut down at the end if it is not before."""
        number: int = self.ask(call, **about)
        self._open.append(number)
        return number

    def producer(self, **about: Any) -> int:
        return self.started("producer", **about)

    def simple(self, group: str, topic: str, expression: str = "*", **about: Any) -> int:
        return self.started("simple", group=group, subscriptions={topic: expression}, **about)

    def push(self, group: str, topic: str, expression: str = "*") -> int:
        return self.started("push", group=group, subscriptions={topic: expression})

    def send(self, by: int, topic: str, body: str, **more: Any) -> dict[str, Any]:
        sent: dict[str, Any] = self.ask("send", by=by, topic=topic, body=body, **more)
        return sent

    def receive(self, by: int, **more: Any) -> list[dict[str, Any]]:
        got: list[dict[str, Any]] = self.ask("receive", by=by, **more)
        return got

    def received(self, by: int, number: int, seconds: float = 30, **more: Any) -> list[dict[str, Any]]:
        """So many messages, from as many receives as it takes; each is acked."""
        got: list[dict[str, Any]] = []
        end = time.monotonic() + seconds
        while len(got) < number and time.monotonic() < end:
            for one in self.receive(by, **more):
                self.ask("ack", by=by, number=one["number"])
                got.append(one)
        assert len(got) == number, [one["body"] for one in got]
        return got

    def pushed(self, by: int, number: int, seconds: float = 30) -> list[dict[str, Any]]:
        """What was pushed, once it is so much; fewer when the time is over."""
        end = time.monotonic() + seconds
        while True:
            got: list[dict[str, Any]] = self.ask("pushed", by=by)
            if len(got) >= number or time.monotonic() > end:
                return got
            time.sleep(0.2)

    def shutdown(self, by: int) -> None:
        self._open.remove(by)
        self.ask("shutdown", by=by)

    def close_all(self) -> None:
        """Shuts down what is open."""
        for number in list(self._open):
            self.shutdown(number)

    def close(self) -> None:
        """Ends the child."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        self._home.cleanup()
