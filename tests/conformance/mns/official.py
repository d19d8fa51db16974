"""The Python SDK of MNS for tests: calls of one child process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.clients import environment, fetched

HERE = Path(__file__).parent


class Refused(Exception):
    """An MNSServerException. `sub` has the errors of a batch."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['type']}: {error['message']}")
        self.type: str = error["type"]
        self.message: str = error["message"]
        self.id: str = error["id"]
        self.host: str | None = error["host"]
        self.sub: list[dict[str, Any]] = error["sub"] or []


class Failed(Exception):
    """The SDK could make nothing of the reply, or refused the call by itself."""


class Official:
    """An account object of the SDK; any thread may call, one call at a time. Raises Refused,
    Failed.
    """

    def __init__(self, endpoint: str, key: str = "anonymous", secret: str = "not-looked-at") -> None:
        self._lock = threading.Lock()
        self._child = subprocess.Popen(
            [sys.executable, "official.py", endpoint, key, secret],
            cwd=HERE / "clients", env=environment(fetched(HERE / "mns.lock")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def account(self, method: str, *arguments: Any) -> Any:
        """A call of the account."""
        return self._ask("account", (), method, arguments)

    def queue(self, name: str, method: str, *arguments: Any, encoding: bool = True) -> Any:
        """A call of a queue; `encoding` = the SDK encodes bodies and decodes them, its default."""
        return self._ask("queue", (name,), method, arguments, encoding=encoding)

    def topic(self, name: str, method: str, *arguments: Any) -> Any:
        """A call of a topic."""
        return self._ask("topic", (name,), method, arguments)

    def subscription(self, topic: str, name: str, method: str, *arguments: Any) -> Any:
        """A call of a subscription."""
        return self._ask("subscription", (topic, name), method, arguments)

    def _ask(
        self, kind: str, names: tuple[str, ...], method: str, arguments: tuple[Any, ...], *, encoding: bool = True
    ) -> Any:
        asked = {"kind": kind, "names": names, "method": method, "arguments": arguments, "encoding": encoding}
        with self._lock:
            assert self._child.stdin is not None and self._child.stdout is not None
            self._child.stdin.write(json.dumps(asked) + "\n")
            self._child.stdin.flush()
            told = json.loads(self._child.stdout.readline())
        if "error" in told:
            raise Refused(told["error"])
        if "answer" not in told:
            raise Failed(told["failed"])
        return told["answer"]

    def close(self) -> None:
        """Ends the child."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(10)
        self._child.stdout.close()
