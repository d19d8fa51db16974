"""One connection to the native HTTP API, by the standard library alone: what any user's program
could do.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from facade.programs.demo.errors import DemoError

TIMEOUT_S = 40.0

Json = dict[str, Any]


class Client:
    """A keep-alive connection; not for two threads. Any answer that isn't a success raises
    DemoError with its problem.
    """

    def __init__(self, endpoint: str, key: str | None = None) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
            raise DemoError(f"endpoint {endpoint!r}: expected http://HOST:PORT")
        self._endpoint = endpoint
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
        self._headers = {"content-type": "application/json"}
        if key is not None:
            self._headers["authorization"] = "Basic " + base64.b64encode(key.encode()).decode()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def status(self, path: str) -> int:
        """Status of a GET; 0 when nobody answers."""
        try:
            return self._exchange("GET", path, None)[0]
        except DemoError:
            return 0

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """The JSON of a success. Raises DemoError."""
        status, text = self._exchange(method, path, body)
        if 200 <= status < 300:
            return json.loads(text) if text else None
        try:
            problem = json.loads(text)
            said = f"{problem['code']}: {problem['detail']}"
        except (ValueError, KeyError, TypeError):
            said = text[:200].decode("utf-8", "replace")
        raise DemoError(f"{method} {path} answered {status}: {said}")

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

    def _exchange(self, method: str, path: str, body: Json | None) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body).encode(), self._headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next call opens it again
            raise DemoError(f"{method} {self._endpoint}{path}: {error or type(error).__name__}") from None
