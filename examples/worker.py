"""A worker: runs a command for each message of a queue, by the HTTP API and the standard library
alone.

    python examples/worker.py --endpoint http://127.0.0.1:9400 --queue orders -- sha256sum

The body is the command's standard input; status 0 = done, any other = failed. How it keeps its
promises:
- a message is acked after its work, never before, so a worker that dies loses nothing: the lease
  runs out, another gets it;
- while the work takes long, the lease is extended, so that nobody else gets the message meanwhile;
- on failure the message is given back with a delay that grows with its deliveries; a queue with a
  redrive policy moves it
  to the dead-letter queue in the end;
- SIGTERM or Ctrl-C: the work in hand is finished, what has not begun is given back at once.
A message may come twice (its ack was lost, or its lease ran out), so the work must bear to be done
twice.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

PAUSE_S = 1.0
LONGEST_DELAY_S = 60.0


class Queue:
    """A queue's verbs. Each call is a request of its own, so threads may share it."""

    def __init__(self, endpoint: str, name: str) -> None:
        self._url = f"{endpoint.rstrip('/')}/v1/queues/{name}"

    def call(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST a verb. Raises urllib.error.HTTPError for a refusal, another OSError when nobody
        answers.
        """
        request = urllib.request.Request(
            f"{self._url}/{verb}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=90) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def settle(self, verb: str, handle: str, **more: Any) -> str:
        """Ack or release one message; `ok`, or why not. A lost connection is no disaster: the
        message comes again.
        """
        try:
            status: str = self.call(verb, {"handles": [handle], **more})["results"][0]["status"]
        except OSError as error:
            return str(error)
        return status


class Worker:
    """The loop. `stopping` ends it after the work in hand."""

    def __init__(self, queue: Queue, given: argparse.Namespace) -> None:
        self.stopping = threading.Event()
        self._queue = queue
        self._given = given

    def run(self) -> None:
        """Receive and work until stopped, or until nothing came for `--idle-exit` seconds."""
        asked = {
            "max": self._given.max,
            "wait_seconds": self._given.wait_seconds,
            "lease_seconds": self._given.lease_seconds,
        }
        if self._given.tag:
            asked["tag"] = self._given.tag
        last = time.monotonic()
        while not self.stopping.is_set():
            messages = self._receive(asked)
            if messages:
                self._work_on(messages)
                last = time.monotonic()
            elif self._given.idle_exit is not None and time.monotonic() - last > self._given.idle_exit:
                return

    def _receive(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            messages: list[dict[str, Any]] = self._queue.call("receive", asked)["messages"]
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise SystemExit(f"worker: {error}: {error.read().decode(errors='replace')}") from None
            say(f"receive: {error}; trying again")
            self.stopping.wait(PAUSE_S)
            return []
        return messages

    def _work_on(self, messages: list[dict[str, Any]]) -> None:
        in_hand = {message["handle"]: message for message in messages}
        with self._kept(in_hand):
            for message in messages:
                if self.stopping.is_set():
                    say(f"{message['id']} given back: {self._queue.settle('release', message['handle'])}")
                elif message["handle"] in in_hand:  # else its lease was lost while it waited
                    self._work(message)
                in_hand.pop(message["handle"], None)

    def _work(self, message: dict[str, Any]) -> None:
        body = message["body"].encode() if "body" in message else base64.b64decode(message["body_base64"])
        status = subprocess.run(self._given.command, input=body, check=False).returncode
        if status == 0:
            say(f"{message['id']} done, ack: {self._queue.settle('ack', message['handle'])}")
            return
        delay = min(self._given.retry_seconds * 2 ** (message["receive_count"] - 1), LONGEST_DELAY_S)
        released = self._queue.settle("release", message["handle"], delay_seconds=delay)
        say(
            f"{message['id']} failed with status {status} (delivery {message['receive_count']}), released for "
            f"{delay:g} s: {released}"
        )

    @contextlib.contextmanager
    def _kept(self, in_hand: dict[str, dict[str, Any]]) -> Iterator[None]:
        """Extends the leases of `in_hand` while the block runs; drops those that were lost."""
        over = threading.Event()

        def extend() -> None:
            while not over.wait(self._given.lease_seconds / 3):
                entries = [{"handle": handle, "lease_seconds": self._given.lease_seconds} for handle in list(in_hand)]
                if not entries:
                    continue
                try:
                    results = self._queue.call("extend", {"entries": entries})["results"]
                except OSError as error:
                    say(f"extend: {error}; trying again")
                    continue
                for result in results:
                    if result["status"] != "ok" and (lost := in_hand.pop(result["handle"], None)):
                        say(f"{lost['id']} is not ours any more: {result['status']}")

        thread = threading.Thread(target=extend, name="extend")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def say(text: str) -> None:
    """A line of the worker; its standard output belongs to the command."""
    print(f"worker: {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the options, work until the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--endpoint", default="http://127.0.0.1:9400")
    parser.add_argument("--queue", required=True)
    parser.add_argument("--tag", help="default: the queue's default tag")
    parser.add_argument("--max", type=int, default=10, help="messages of one receive, 1-100 (default 10)")
    parser.add_argument("--wait-seconds", type=float, default=20, help="how long a receive waits, 0-60 (default 20)")
    parser.add_argument("--lease-seconds", type=float, default=30, help="extended at a third of it (default 30)")
    parser.add_argument(
        "--retry-seconds", type=float, default=1, help="delay after the first failure, then doubled (default 1)"
    )
    parser.add_argument(
        "--idle-exit", type=float, metavar="SECONDS", help="end when nothing came for so long (default: never)"
    )
    parser.add_argument("command", nargs="+", help="what to run for each message")
    given = parser.parse_args(arguments)
    worker = Worker(Queue(given.endpoint, given.queue), given)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stopping.set())
    worker.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
