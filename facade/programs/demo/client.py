"""The verbs of the demo, by the client of the native API that the other programs use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from facade.programs.connect import client as connect
from facade.programs.connect.failures import Failure, Refused
from facade.programs.connect.profiles import Connection, checked_endpoint
from facade.programs.demo.errors import DemoError

TIMEOUT_S = 40.0

Json = dict[str, Any]


class Client:
    """A keep-alive connection; not for two threads. Any answer that isn't a success raises
    DemoError with its problem.
    """

    def __init__(self, endpoint: str, key: str | None = None) -> None:
        key_id, _, secret = (key or "").partition(":")
        try:
            at = Connection(checked_endpoint(endpoint), key_id, secret, timeout_s=TIMEOUT_S)
        except Failure as failure:
            raise DemoError(str(failure)) from None
        self._client = connect.Client(at)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def status(self, path: str) -> int:
        """Status of a GET; 0 when nobody answers."""
        try:
            return self._client.exchange("GET", path)[0]
        except Failure:
            return 0

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """The JSON of a success. Raises DemoError."""
        try:
            return self._client.call(method, path, body)
        except Refused as refused:
            code = refused.problem.get("code", "no code")
            raise DemoError(f"{method} {path} answered {refused.status}: {code}: {refused}") from None
        except Failure as failure:
            raise DemoError(f"{method} {path}: {failure}") from None

    def send(self, queue: str, messages: Sequence[Json]) -> list[str]:
        """Send an atomic batch of 1-100; the ids."""
        answer = self.call("POST", f"/v1/queues/{queue}/messages", {"messages": list(messages)})
        return [message["id"] for message in answer["messages"]]

    def receive(self, queue: str, tag: str, wait_s: float, lease_s: float) -> list[Json]:
        """Up to 100 messages, leased for `lease_s` seconds; none when none came within `wait_s`
        seconds.
        """
        asked = {"tag": tag, "max": 100, "wait_seconds": wait_s, "lease_seconds": lease_s}
        messages: list[Json] = self.call("POST", f"/v1/queues/{queue}/receive", asked)["messages"]
        return messages

    def ack(self, queue: str, handles: Sequence[str]) -> list[str]:
        """Settle messages; a status per handle, `ok` = settled."""
        return self._results("ack", queue, {"handles": list(handles)})

    def release(self, queue: str, handles: Sequence[str], delay_s: float) -> list[str]:
        """Give messages back, receivable after `delay_s` seconds; a status per handle."""
        return self._results("release", queue, {"handles": list(handles), "delay_seconds": delay_s})

    def browse(self, queue: str) -> list[Json]:
        """All messages of a queue, looked at and not received: nothing is counted."""
        found: list[Json] = []
        more: dict[str, str] = {}
        while True:
            page = self.call("GET", f"/v1/queues/{queue}/messages?{urlencode({'limit': '100', **more})}")
            found += page["messages"]
            if page["next"] is None:
                return found
            more = {"next": page["next"]}

    def _results(self, verb: str, queue: str, body: Json) -> list[str]:
        return [result["status"] for result in self.call("POST", f"/v1/queues/{queue}/{verb}", body)["results"]]
