"""The Python SDK of EMQ for tests: calls of one child process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.clients import environment, fetched

HERE = Path(__file__).parent
SERVICES = {
    "message": ("send", "receive", "change", "deleteMessage", "dead", "peek", "deletePeek"),
    "statistics": ("setUser", "getUser", "addQueueAlert", "addTagAlert", "deleteQueueAlert", "deleteTagAlert",
                   "listQueueAlert",
                   "listTagAlert", "setQueueDaily", "getQueueDaily"),
}  # fmt: skip


class Refused(Exception):
    """A GalaxyEmqServiceException that the service has sent, or (code None) that the SDK raised by
    itself.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['msg']}: {error['details']}")
        self.code: int | None = error["code"]
        self.msg: str = error["msg"]
        self.details: str = error["details"] or ""
        self.id: str | None = error["id"]


class Failed(Exception):
    """The SDK could make nothing of the reply, or Thrift's own exception came."""


class Galaxy:
    """Calls with one key; any thread may call. Raises Refused, Failed."""

    def __init__(self, endpoint: str, key: str = "anonymous", secret: str = "not-looked-at") -> None:
        self._about = {"endpoint": endpoint, "key": key, "secret": secret}
        self._lock = threading.Lock()
        self._child = subprocess.Popen(
            [sys.executable, "galaxy.py"],
            cwd=HERE / "clients", env=environment(fetched(HERE / "galaxy.lock")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def call(self, method: str, /, checked: bool = True, **request: Any) -> Any:
        """One call; `checked` = through the SDK's own checks and retries."""
        return self.ask(method, request, checked=checked)

    def ask(self, method: str, request: Any, *, checked: bool = False) -> Any:
        """One call with its argument."""
        service = next((name for name, starts in SERVICES.items() if method.startswith(starts)), "queue")
        asked = {**self._about, "service": service, "method": method, "request": request, "checked": checked}
        with self._lock:
            assert self._child.stdin is not None and self._child.stdout is not None
            self._child.stdin.write(json.dumps(asked) + "\n")
            self._child.stdin.flush()
            told = json.loads(self._child.stdout.readline())
        if "error" in told:
            raise Refused(told["error"])
        if "answer" not in told:
            raise Failed(str(told))
        return told["answer"]

    def close(self) -> None:
        """Ends the child."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(10)
        self._child.stdout.close()
