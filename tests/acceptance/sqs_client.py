"""A cheap SQS client: AWS JSON over one keep-alive connection, a tenth of boto3's CPU. For load,
where the client must not be the bound.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit


class Refused(Exception):
    """An answer that is no success; `code` is the older protocol's word, "" when there was no
    answer.
    """

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(f"{status} {code} {text[:200]}")
        self.status = status
        self.code = code


class Sqs:
    """One connection; not for two threads at once."""

    def __init__(self, endpoint: str) -> None:
        self._netloc = urlsplit(endpoint).netloc
        self._connection: http.client.HTTPConnection | None = None

    def url(self, name: str) -> str:
        return f"http://{self._netloc}/000000000000/{name}"

    def _send(self, action: str, members: dict[str, Any]) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._netloc, timeout=60)
        headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": f"AmazonSQS.{action}"}
        self._connection.request("POST", "/", json.dumps(members), headers)
        return self._connection

    def call(self, action: str, **members: Any) -> dict[str, Any]:
        """The answer. Raises Refused, also when there was none (status 0): then the outcome is
        unknown.
        """
        try:
            response = self._send(action, members).getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Refused(0, "", repr(error)) from None
        if response.status != 200:
            raise Refused(
                response.status, response.headers.get("x-amzn-query-error", "").partition(";")[0], text.decode()
            )
        return dict(json.loads(text))

    def insist(self, action: str, **members: Any) -> dict[str, Any]:
        """As SDKs do: asks again for a minute when there was no answer, or one that says to."""
        end = time.monotonic() + 60
        while True:
            try:
                return self.call(action, **members)
            except Refused as error:
                if (error.status in (400, 404) or error.code == "AccessDenied") or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def abandon(self, action: str, seconds: float, **members: Any) -> None:
        """Asks, and hangs up after some seconds without looking at the answer."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            self._send(action, members)
            time.sleep(seconds)
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def in_threads(count: int, work: Callable[[int], None]) -> float:
    """Runs `work(number)` in threads; how many seconds it took. Raises the first failure."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    began = time.perf_counter()
    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.perf_counter() - began
