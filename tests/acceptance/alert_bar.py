"""What is promised of alerts: each planted breach is told within 90 s by webhook and mail, also
when the worker that judges is killed, and it clears.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.acceptance.traffic import Client
from tests.receivers import Hooks, Letterbox, hooks, letterbox
from tests.services import Up, loop_in_thread

BAR_S = 90.0
MANY = 50
_BEGINS = re.compile(r"^(\S+ \S+) .*action=judge_alerts state=begins", re.M)


class Watched:
    """A running service whose owner has a webhook and an address, and what both have got."""

    def __init__(self, up: Up, hook: Hooks, box: Letterbox) -> None:
        self.up = up
        self.hook = hook
        self.box = box
        self.client = Client(up.endpoint)
        self.insist("PUT", "/v1/users/anonymous/contacts", {"email": "shop@example.com", "webhook": hook.url})

    def insist(self, method: str, path: str, body: Any = None) -> Any:
        """Repeats a call while workers die under it; what it answers."""
        for _ in range(100):
            status, answer = self.client.call(method, path, body)
            if status in (200, 201, 204):
                return answer
            assert status in (0, 503), f"{method} {path}: {status} {answer}"
            time.sleep(0.1)
        raise AssertionError(f"{method} {path} did not succeed")

    def policy(self, queue: str, threshold: int, *, kill: bool = False) -> None:
        """A queue that is watched for its requests to send. A worker that is killed takes its
        running minute with it, so then for its backlog.
        """
        subject = "queue_message_number" if kill else "send_request"
        self.insist("POST", "/v1/queues", {"name": queue, "partitions": 1})
        self.insist(
            "POST", f"/v1/queues/{queue}/alerts", {"subject": subject, "measurement": "count", "threshold": threshold}
        )

    def breach(self, queue: str, requests: int) -> None:
        for _ in range(requests):
            self.insist("POST", f"/v1/queues/{queue}/messages", {"messages": [{"body": "x"}]})

    def warm_up(self, queue: str) -> None:
        """Breaches until one is told: the judge begins when something is watched, and looks at the
        last minutes alone, which short ones may be over by then.
        """
        self.policy(queue, 1)
        end = time.monotonic() + BAR_S
        while not any(post.json["queue"] == queue for post in list(self.hook.posted)):
            assert time.monotonic() < end, f"{queue}: nothing told within {BAR_S} s: {self.history(queue)}"
            self.breach(queue, 1)
            time.sleep(1)

    def seconds_to(self, queue: str, change: str, within_s: float) -> float:
        """How long it takes until both have got a change of a queue."""
        began = time.monotonic()

        def both() -> bool:
            posted = any(
                post.json["queue"] == queue and post.json["change"] == change for post in list(self.hook.posted)
            )
            word = {"fired": "fires", "cleared": "has cleared"}[change]
            mailed = any(f"queue {queue} {word}" in text.replace("\r\n", "") for _, text in list(self.box.mails))
            return posted and mailed

        while not both():
            assert time.monotonic() - began < within_s, (
                f"{queue}: no {change} within {within_s} s: {self.history(queue)}"
            )
            time.sleep(0.05)
        return time.monotonic() - began

    def history(self, queue: str) -> list[tuple[str, str]]:
        events = self.insist("GET", f"/v1/queues/{queue}/alerts/history")["events"]
        return [(event["change"], event["told"]) for event in reversed(events)]

    def told(self, queue: str) -> list[tuple[str, str]]:
        """The history, once nothing is pending: it is noted after it was told."""
        end = time.monotonic() + 20
        while "pending" in {told for _, told in self.history(queue)}:
            assert time.monotonic() < end, self.history(queue)
            time.sleep(0.1)
        return self.history(queue)

    def kill_judge(self) -> int:
        """SIGKILL of the worker that judges, by its log; its pid."""
        begun = {}
        for file in (self.up.data / "logs").glob("facade-*.log"):
            times = _BEGINS.findall(file.read_text(errors="replace"))
            if times:
                begun[times[-1]] = int(file.stem.rpartition("-")[2])
        number = begun[max(begun)]
        pid: int = self.up.run["facades"][number - 1]["pid"]
        os.kill(pid, signal.SIGKILL)
        return pid


@contextlib.contextmanager
def watched(start: Callable[..., Up], minute_s: int) -> Iterator[Watched]:
    """A service of two workers; started by `start`."""
    with loop_in_thread() as run, contextlib.ExitStack() as left:
        servers = [hooks(), letterbox()]
        hook, box = (run(server.__aenter__()) for server in servers)
        for server in servers:
            left.callback(lambda server=server: run(server.__aexit__(None, None, None)))  # type: ignore[misc]
        settings = {
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": box.port,
            "WEBHOOK_ADDRESSES": "all",
            "METER_MINUTE_S": minute_s,
        }
        up = start("--workers", "2", environment={f"LEASEWAY_{name}": str(value) for name, value in settings.items()})
        up.wait_ready(180)
        service = Watched(up, hook, box)
        left.callback(service.client.close)
        yield service


def main() -> None:
    """True minutes: breaches at several moments of a minute, two of them with the judge killed."""
    ups: list[Up] = []

    def start(*options: str, environment: dict[str, str]) -> Up:
        ups.append(Up(Path(tempfile.mkdtemp(prefix="alerts")), *options, environment=environment))
        return ups[-1]

    try:
        with watched(start, 60) as service:
            service.policy("warm", 1)
            service.breach("warm", 1)
            service.seconds_to("warm", "fired", BAR_S + 30)
            for number, (moment_s, kill) in enumerate([(5, False), (55, False), (30, True), (58, True)]):
                queue = f"breach{number}"
                service.policy(queue, MANY, kill=kill)
                time.sleep((moment_s - time.time()) % 60)
                service.breach(queue, MANY)
                if kill:
                    service.kill_judge()
                fired_s = service.seconds_to(queue, "fired", BAR_S)
                print(
                    json.dumps({"at_second": moment_s, "judge_killed": kill, "fired_after_s": round(fired_s, 1)}),
                    flush=True,
                )
            began = time.monotonic()
            service.insist("POST", "/v1/queues/breach2/purge")
            service.insist("POST", "/v1/queues/breach3/purge")
            service.seconds_to("breach3", "cleared", 240)
            print(json.dumps({"cleared_after_s": round(time.monotonic() - began, 1)}), flush=True)
            print(json.dumps({f"breach{n}": service.told(f"breach{n}") for n in range(4)}), flush=True)
            posts = [post.headers["leaseway-event"] for post in service.hook.posted]
            print(
                json.dumps({"posts": len(posts), "events": len(set(posts)), "mails": len(service.box.mails)}),
                flush=True,
            )
    finally:
        for up in ups:
            up.close()


if __name__ == "__main__":
    main()
