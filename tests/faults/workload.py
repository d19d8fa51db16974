"""What the clients do while the service is hurt: every verb, on queues of every kind, paced."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from tests.faults import hot
from tests.faults.client import Client, Leased
from tests.faults.queues import BRIEF, LEASE_MS, QUEUES
from tests.judge.history import Recorder

# Longer than the 30 s after which a letter is taken from a mover that was lost.
TASKS_S = 60.0
KEEPS_S = 300.0
LOADS_S = 3.0


class Workload:
    """Threads of clients. `start`, then `drain`, then `looks`, in one thread."""

    def __init__(self, recorder: Recorder, endpoint: str, rest: random.Random, *, brief: bool = False) -> None:
        self._recorder = recorder
        self._endpoint = endpoint
        self._rest = rest
        self._numbers = itertools.count(1)
        self._sending, self._receiving = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._senders: list[threading.Thread] = []
        self._died: dict[str, int] = {}
        self._tasks: list[str] = []
        self._worked: dict[tuple[str, str], float] = {}
        self._began = 0.0
        self.errors: list[BaseException] = []
        self.queues = BRIEF if brief else QUEUES

    def client(self) -> Client:
        return Client(self._recorder, self._endpoint, next(self._numbers), self._worked)

    def create(self) -> None:
        """Makes the queues and tags."""
        client = self.client()
        for name, kind in self.queues.items():
            client.create(name, kind.body, kind.plan)
            for tag, value in kind.tags:
                wanted = {"conditions": [{"name": "kind", "value": value}]}
                status, answer = client.ask(
                    "POST", f"/v1/queues/{name}/tags", {"name": tag, "start_at_ms": 0, "filter": wanted}
                )
                assert status == 201, answer
        client.close()

    def start(self) -> None:
        """Starts all clients; returns at once."""
        self._began = time.monotonic()
        self._sending.set()
        self._receiving.set()
        senders = [self._sender("plain", 20, 0.04), self._sender("durable", 10, 0.04), self._sender("tagged", 10, 0.04)]
        senders += [self._sender("delayed", 5, 0.07, delay=True), self._sender("dead", 8, 0.1)]
        senders += [self._purger, self._keeper, self._redriver, self._sluggard, self._fifo_sender]
        receivers = [
            self._receiver("plain"),
            self._receiver("plain"),
            self._receiver("durable"),
            self._receiver("tagged"),
        ]
        receivers += [
            self._receiver("tagged", tag="red"),
            self._wavering,
            self._grim,
            self._grim,
            self._receiver("purged"),
        ]
        receivers += [self._receiver("fifo"), self._receiver("fifo")]
        senders += [hot.sender, hot.sender]
        receivers += [hot.receiver, hot.receiver, hot.receiver, hot.leaver]
        self._senders = [self._thread(work, self._sending) for work in senders]
        self._threads = self._senders + [self._thread(work, self._receiving) for work in receivers]

    def _thread(self, once: Callable[[Client, random.Random], float], while_set: threading.Event) -> threading.Thread:
        """Repeats `once`, which returns how many seconds to pause, until the event is cleared."""
        rest = random.Random(self._rest.random())
        client = self.client()

        def loop() -> None:
            try:
                while while_set.is_set():
                    time.sleep(once(client, rest))
            except BaseException as error:
                self.errors.append(error)
                raise
            finally:
                client.close()

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        return thread

    def wait_works(self, within_s: float) -> bool:
        """Returns when every steady queue has taken a send and leased a message from now on; False
        when that took longer than `within_s`.
        """
        began = time.monotonic()
        steady = [
            (verb, name)
            for name, kind in self.queues.items()
            if kind.plan.get("steady")
            for verb in ("send", "receive")
        ]
        while any(self._worked.get(key, 0.0) < began for key in steady):
            if time.monotonic() > began + within_s:
                return False
            time.sleep(0.1)
        return True

    def drain(self, within_s: float) -> bool:
        """Sends no more and receives until every queue but `still` is empty; False when that took
        too long.
        """
        self._sending.clear()
        for thread in self._senders:
            thread.join(60)
        client = self.client()
        end = time.monotonic() + within_s
        self._wait_tasks(client)
        self._threads.append(self._thread(self._receiver("letters"), self._receiving))
        quiet = 0
        while quiet < 3 and time.monotonic() < end:
            quiet = quiet + 1 if all(self._empty(client, name) for name in self.queues if name != "still") else 0
            time.sleep(0.5)
        self._receiving.clear()
        for thread in self._threads:
            thread.join(60)
        client.close()
        return quiet >= 3

    def _wait_tasks(self, client: Client) -> None:
        """Waits for the redrive tasks; the last answer of each stands in the history."""
        running, end = self._tasks, time.monotonic() + TASKS_S
        while running and time.monotonic() < end:
            running = [task for task in running if client.task(task) in ("", "running")]
            time.sleep(0.2)

    def looks(self) -> None:
        """Writes down the counts of all queues. One that nobody uses is loaded when somebody asks
        for it.
        """
        client = self.client()
        for name in self.queues:
            client.ask("GET", f"/v1/queues/{name}")
        time.sleep(LOADS_S)
        for name in self.queues:
            while not client.look(name, empty=name != "still"):
                time.sleep(0.5)
        client.close()

    def _empty(self, client: Client, queue: str) -> bool:
        status, answer = client.ask("GET", f"/v1/queues/{queue}")
        return status == 200 and not any(
            tag[state] for tag in answer["tags"] for state in ("ready", "delayed", "leased", "stored")
        )

    def _sender(
        self, queue: str, batch: int, pause_s: float, *, delay: bool = False
    ) -> Callable[[Client, random.Random], float]:
        def once(client: Client, rest: random.Random) -> float:
            began = time.monotonic()
            entries: list[dict[str, Any]] = []
            for _ in range(rest.choice((1, batch, batch, batch))):
                entry: dict[str, Any] = {"uid": client.uid(queue), "kind": rest.choice(("red", "blue"))}
                if delay and rest.random() < 0.6:
                    entry["delay_ms"] = rest.randrange(1, 3000)
                entries.append(entry)
            client.send(queue, entries)
            return max(0.001, pause_s - (time.monotonic() - began))

        return once

    def _receiver(self, queue: str, tag: str = "default") -> Callable[[Client, random.Random], float]:
        """Acks what it gets, in one request or in two."""

        def once(client: Client, rest: random.Random) -> float:
            leased = client.receive(queue, tag=tag, max=rest.choice((1, 10, 20, 20)), lease_ms=LEASE_MS)
            if leased is None:
                return 0.1
            at = rest.randrange(len(leased) + 1) if rest.random() < 0.1 else len(leased)
            client.settle("ack", queue, leased[:at], tag=tag)
            client.settle("ack", queue, leased[at:], tag=tag)
            return 0.0

        return once

    def _sluggard(self, client: Client, rest: random.Random) -> float:
        """Acks after its short lease has lapsed: mostly a stale handle."""
        leased = client.receive("plain", max=5, lease_ms=500)
        time.sleep(rest.choice((0.2, 1.0, 1.0)))
        if leased and rest.random() < 0.3:
            client.settle("extend", "plain", leased, lease_ms=2000)
        client.settle("ack", "plain", leased or [])
        return 0.3

    def _wavering(self, client: Client, rest: random.Random) -> float:
        """Acks most, releases some with or without delay, extends some first, leaves some to
        lapse.
        """
        leased = client.receive("delayed", max=10, lease_ms=3000)
        if leased is None:
            return 0.1
        parts: dict[str, list[Leased]] = {"ack": [], "release": [], "extend": [], "leave": []}
        for one in leased:
            verb = rest.choices(tuple(parts), (85, 8, 5, 2))[0] if one.it.count < 4 else "ack"
            parts[verb].append(one)
        client.settle("release", "delayed", parts["release"], delay_ms=rest.choice((0, 300, 1500)))
        client.settle("extend", "delayed", parts["extend"], lease_ms=rest.choice((0, 4000)))
        client.settle("ack", "delayed", parts["ack"])
        return 0.0

    def _grim(self, client: Client, rest: random.Random) -> float:
        """Kills some, lets some be exhausted, acks the rest; a copy that was redriven dies at most
        once more.
        """
        leased = client.receive("dead", max=10, lease_ms=LEASE_MS)
        if leased is None:
            return 0.1
        parts: dict[str, list[Leased]] = {"ack": [], "kill": [], "release": []}
        for one in leased:
            parts[self._fate(one)].append(one)
        client.settle("kill", "dead", parts["kill"])
        client.settle("release", "dead", parts["release"])
        client.settle("ack", "dead", parts["ack"])
        return 0.0

    def _fate(self, one: Leased) -> str:
        number = int(one.it.uid.rpartition(".")[2]) % 40
        again = one.it.origin is not None
        if number in (0, 20) and (not again or (number == 20 and self._died.get(one.it.uid, 0) < 2)):
            self._died[one.it.uid] = self._died.get(one.it.uid, 0) + 1
            return "kill"
        return "release" if number == 1 and not again else "ack"

    def _redriver(self, client: Client, rest: random.Random) -> float:
        """Sends the letters back to where they came from, now and then."""
        if task := client.redrive("letters"):
            self._tasks.append(task)
        return rest.uniform(2, 6)

    def _purger(self, client: Client, rest: random.Random) -> float:
        """Fills a queue and purges it."""
        for _ in range(rest.randrange(1, 5)):
            client.send("purged", [{"uid": client.uid("purged")} for _ in range(10)])
        if rest.random() < 0.4:
            client.purge("purged")
        return rest.uniform(0.1, 0.6)

    def _keeper(self, client: Client, rest: random.Random) -> float:
        """Leaves messages behind in every state for the count at rest; a soak must not grow by them
        for ever.
        """
        if time.monotonic() - self._began > KEEPS_S:
            return 1.0
        long_ms = 3_600_000
        client.send("still", [{"uid": client.uid("still"), "delay_ms": rest.choice((0, 0, long_ms))} for _ in range(5)])
        leased = client.receive("still", max=3, wait_ms=0, lease_ms=long_ms)
        if leased and rest.random() < 0.5:
            client.settle(rest.choice(("ack", "release")), "still", leased[:1], delay_ms=rest.choice((0, long_ms)))
        return rest.uniform(0.3, 1.0)

    def _fifo_sender(self, client: Client, rest: random.Random) -> float:
        """Sends to groups; repeats under the same dedup id what had no answer, and now and then
        what had one.
        """
        group = f"g{rest.randrange(20)}"
        entries = [
            {"uid": uid, "group": group, "dedup": uid}
            for uid in (client.uid("fifo") for _ in range(rest.choice((1, 5, 10))))
        ]
        sent = client.send("fifo", entries)
        tries = 0
        while tries < 5 and (not sent or (tries == 0 and rest.random() < 0.1)):
            sent = client.send("fifo", [{**entry, "uid": client.uid("fifo")} for entry in entries])
            tries += 1
        return 0.05
