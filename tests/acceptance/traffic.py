"""Traffic over HTTP while parts are killed, and the questions asked afterwards. The embryo of
tests/faults (issue of its own).
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from typing import Any
from urllib.parse import urlsplit


class Client:
    """One keep-alive connection; a failed call is answered with status 0."""

    def __init__(self, endpoint: str) -> None:
        self._netloc = urlsplit(endpoint).netloc
        self._connection: http.client.HTTPConnection | None = None
        # Of the last answer, names in small letters.
        self.headers: dict[str, str] = {}

    def call(self, method: str, path: str, body: Any = None, timeout: float = 30) -> tuple[int, Any]:
        """(status, JSON); (0, what went wrong) when there was no answer."""
        status, text = self.text(method, path, body, timeout)
        return status, json.loads(text) if text and status else text or None

    def text(self, method: str, path: str, body: Any = None, timeout: float = 30) -> tuple[int, str]:
        """As `call`, with the text of the answer."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._netloc, timeout=timeout)
            data = None if body is None else json.dumps(body).encode()
            self._connection.request(method, path, data, {"content-type": "application/json"})
            with self._connection.getresponse() as response:
                text = response.read()
            self.headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, text.decode()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return 0, repr(error)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Traffic:
    """Senders and receivers of one queue. `acked_sends`: bodies whose send was answered; `acks`:
    body -> when its ack was answered.
    """

    def __init__(self, endpoint: str, queue: str, *, lease_s: int = 5) -> None:
        self.endpoint = endpoint
        self.queue = queue
        self.lease_s = lease_s
        self.acked_sends: set[str] = set()
        self.deliveries: Counter[str] = Counter()
        self.acks: dict[str, float] = {}
        self.again_after_ack: list[tuple[str, float, float]] = []
        self.send_times: list[float] = []
        self.receive_times: list[float] = []
        self.counts: dict[str, list[int]] = {}
        self.statuses: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._sending, self._receiving = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, senders: int = 2, receivers: int = 2) -> None:
        self._sending.set()
        self._receiving.set()
        self._threads = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(senders)]
        self._threads += [threading.Thread(target=self._receive, daemon=True) for _ in range(receivers)]
        for thread in self._threads:
            thread.start()

    def _send(self, number: int) -> None:
        client, at = Client(self.endpoint), 0
        while self._sending.is_set():
            bodies = [f"{number}-{at + i}" for i in range(5)]
            status, _ = client.call(
                "POST", f"/v1/queues/{self.queue}/messages", {"messages": [{"body": b} for b in bodies]}, 15
            )
            self.statuses[status] += 1
            if status == 200:
                self.acked_sends.update(bodies)
                self.send_times.append(time.monotonic())
            else:
                time.sleep(0.05)
            at += 5
        client.close()

    def _receive(self) -> None:
        client = Client(self.endpoint)
        while self._receiving.is_set():
            ask = {"max": 20, "wait_seconds": 1, "lease_seconds": self.lease_s}
            status, answer = client.call("POST", f"/v1/queues/{self.queue}/receive", ask, 15)
            received_at = time.monotonic()
            if status != 200:
                time.sleep(0.05)
                continue
            messages = answer["messages"]
            with self._lock:
                for m in messages:
                    self.deliveries[m["body"]] += 1
                    self.counts.setdefault(m["body"], []).append(m["receive_count"])
                    if m["body"] in self.acks:
                        self.again_after_ack.append((m["body"], self.acks[m["body"]], received_at))
            if messages:
                self.receive_times.append(received_at)
                status, answer = client.call(
                    "POST", f"/v1/queues/{self.queue}/ack", {"handles": [m["handle"] for m in messages]}, 15
                )
                if status == 200:
                    done = {r["handle"] for r in answer["results"] if r["status"] == "ok"}
                    with self._lock:
                        self.acks.update({m["body"]: time.monotonic() for m in messages if m["handle"] in done})
        client.close()

    def delivered(self) -> int:
        """How many deliveries were answered so far."""
        with self._lock:
            return self.deliveries.total()

    def stop_sending(self) -> None:
        """Receivers go on."""
        self._sending.clear()

    def stop(self, quiet_s: float = 7.0, within_s: float = 60.0) -> None:
        """Stops sending; receives until nothing came for `quiet_s` (longer than a lease)."""
        self.stop_sending()
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            last = self.receive_times[-1] if self.receive_times else 0.0
            if time.monotonic() - last > quiet_s and self.acked_sends <= set(self.deliveries):
                break
            time.sleep(0.1)
        self._receiving.clear()
        for thread in self._threads:
            thread.join()

    def wait_back(self, moment: float, within_s: float = 11.0, more_s: float = 2.0) -> None:
        """Returns when both a send and a receive have worked after `moment`, or after `within_s`;
        and some traffic later.
        """
        end = time.monotonic() + within_s
        while self.back_after(moment) == float("inf") and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(more_s)

    def lost(self) -> set[str]:
        """Sends that were answered and never delivered."""
        return self.acked_sends - set(self.deliveries)

    def back_after(self, moment: float) -> float:
        """Seconds from `moment` until both a send and a receive had worked again."""
        sent = min((t for t in self.send_times if t > moment), default=float("inf"))
        received = min((t for t in self.receive_times if t > moment), default=float("inf"))
        return max(sent, received) - moment
