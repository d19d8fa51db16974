"""Clients of a service that note what becomes of their requests, and what the service tells of
itself.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from typing import Any

import boto3
import httpx
import pytest
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.conformance.beside import ADMIN_SECRET
from tests.conformance.conftest import Running

# Of a request of which it is known that it is slow.
SLOW_S = 1.0


class Metrics:
    """The metrics of a service at a moment."""

    def __init__(self, service: Running) -> None:
        self.text = httpx.get(f"{service.endpoint}/metrics", auth=("admin", ADMIN_SECRET), timeout=30).text

    @property
    def families(self) -> set[str]:
        return set(re.findall(r"^# TYPE (\S+)", self.text, re.MULTILINE))

    def of(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Values by these labels; those of several series that have them are added."""
        found: Counter[tuple[str, ...]] = Counter()
        for text, value in re.findall(rf"^{name}(?:{{(.*?)}})? (\S+)$", self.text, re.MULTILINE):
            known = dict(re.findall(r'(\w+)="([^"]*)"', text))
            found[tuple(known[label] for label in labels)] += float(value)  # type: ignore[assignment]
        return dict(found)

    def sum(self, name: str) -> float:
        return sum(self.of(name).values())


class Book:
    """What a client knows of its requests: how each ended, by verb; and what is to be counted of
    queues, by queue, tag and subject: requests and messages.
    """

    def __init__(self) -> None:
        self.ended: Counter[tuple[str, str]] = Counter()
        self.seconds: Counter[str] = Counter()
        self.slow: Counter[str] = Counter()
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.messages: Counter[tuple[str, str, str]] = Counter()
        self.empty: Counter[tuple[str, str]] = Counter()  # receives without a message, by queue and tag
        self.sent_bytes: Counter[tuple[str, ...]] = Counter()  # of messages that were stored, by queue
        # Messages that were received for the first time, that were acked, and that were given back.
        self.first = self.acked = self.released = 0
        self.ids: list[str] = []
        self._lock = threading.Lock()

    def note(self, verb: str, status: int, seconds: float, *, slow: bool) -> None:
        with self._lock:
            self.ended[verb, str(status)] += 1
            self.seconds[verb] += seconds  # type: ignore[assignment]
            self.slow[verb] += slow
            assert not slow or seconds >= SLOW_S

    def meter(self, queue: str, tag: str | None, subject: str, messages: int) -> None:
        with self._lock:
            self.requests[queue, tag or "", subject] += 1
            self.messages[queue, tag or "", subject] += messages
            if tag is not None and not messages and subject.endswith("receive_request"):
                self.empty[queue, tag] += 1


class Caller:
    """Clients of SQS and of the native API with one key; what becomes of each request is noted."""

    def __init__(self, service: Running, key: tuple[str, str], book: Book, *, signs: bool) -> None:
        """`signs`: the native API is shown the key, too; then the plane serves none of it."""
        self.book = book
        options = {"region_name": "us-east-1", "aws_access_key_id": key[0], "aws_secret_access_key": key[1]}
        config = Config(retries={"total_max_attempts": 1}, read_timeout=60)
        self._sqs: Any = boto3.client("sqs", endpoint_url=service.endpoint, config=config, **options)
        leaves = Config(retries={"total_max_attempts": 1}, read_timeout=SLOW_S)
        self._leaver: Any = boto3.client("sqs", endpoint_url=service.endpoint, config=leaves, **options)
        self._http = httpx.Client(base_url=service.endpoint, auth=key if signs else None, timeout=60)

    def close(self) -> None:
        self._sqs.close()
        self._leaver.close()
        self._http.close()

    def sqs(self, action: str, *, slow: bool = False, **fields: Any) -> Any:
        """Asks; returns the answer, which may be an error."""
        began = time.monotonic()
        try:
            answer = getattr(self._sqs, xform_name(action))(**fields)
        except ClientError as error:
            answer = error.response
        told = answer["ResponseMetadata"]
        self.book.note(f"sqs.{action}", told["HTTPStatusCode"], time.monotonic() - began, slow=slow)
        self.book.ids.append(told["HTTPHeaders"]["x-amzn-requestid"])
        return answer

    def native(self, verb: str, queue: str, body: Any, *, slow: bool = False) -> httpx.Response:
        began = time.monotonic()
        answer = self._http.post(f"/v1/queues/{queue}/{'messages' if verb == 'send' else verb}", json=body)
        self.book.ids.append(answer.headers["x-request-id"])
        self.book.note(verb, answer.status_code, time.monotonic() - began, slow=slow)
        return answer

    def leave(self, url: str, queue: str) -> None:
        """Asks by each dialect, and leaves before there is an answer."""
        with pytest.raises(ReadTimeoutError):
            self._leaver.receive_message(QueueUrl=url, WaitTimeSeconds=20)
        self.book.note("sqs.ReceiveMessage", 499, SLOW_S, slow=True)
        with pytest.raises(httpx.ReadTimeout):
            self._http.post(f"/v1/queues/{queue}/receive", json={"max": 10, "wait_seconds": 20}, timeout=SLOW_S)
        self.book.note("receive", 499, SLOW_S, slow=True)
