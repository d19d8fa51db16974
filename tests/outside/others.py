"""The rest of the crew: who keeps many queues a little busy, purges, redrives, probes, and speaks
Kafka.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import uuid
from typing import IO, Any

from confluent_kafka import Producer as KafkaProducer

from tests.judge.history import Sent
from tests.outside import load as busy
from tests.outside.actors import Actor
from tests.outside.book import DONE, UNKNOWN, Book, body_of
from tests.outside.door import Door, Letter, Trouble
from tests.outside.native import Native


class Rounds(Actor):
    """Goes round many queues: sends to each, receives from each, acks. So each has journal and
    snapshots of its own.
    """

    def __init__(self, door: Door, queues: list[str], seed: str) -> None:
        super().__init__(door._book, f"many/{door.name}/{door.who}", seed)
        self.door, self.queues = door, queues
        self.number = 0

    def step(self) -> None:
        """One queue."""
        self.number += 1
        queue = self.queues[self.number % len(self.queues)]
        if not self.door.send(
            queue, [Letter(f"tk-{queue}-{self.door.who}-{self.number}-{i}") for i in range(self.rng.randint(1, 4))]
        ):
            self.rest(0.3, 0.6)
        leased = self.door.receive(queue, 10, 0, 6)
        good = [one for one in leased or () if self.rng.random() < 0.9]
        if good:
            self.door.settle(queue, good)
        self.rest(0, 0.08)


class Purger(Actor):
    """Purges now and then."""

    def __init__(self, door: Door, queue: str, seed: str) -> None:
        super().__init__(door._book, f"{queue}/{door.name}/purge", seed)
        self.door, self.queue = door, queue

    def step(self) -> None:
        """One purge."""
        self.rest(2, 6)
        if not self.stopped.is_set():
            self.door.purge(self.queue)


class Redriver(Actor):
    """Sends the letters of a dead-letter queue back where they came from, and waits for the
    task.
    """

    def __init__(self, door: Native, queue: str, seed: str) -> None:
        super().__init__(door._book, f"{queue}/redrive", seed)
        self.door, self.queue = door, queue

    def step(self) -> None:
        """One task, followed to its end or until stopped; the run asks for the rest of the tasks at
        its end.
        """
        self.rest(4, 9)
        task = "" if self.stopped.is_set() else self.door.redrive(self.queue)
        while (
            task
            and not self.stopped.is_set()
            and self.door.task(self.queue, task) not in ("completed", "failed", "cancelled")
        ):
            self.rest(0.5, 1)


class Probe(Actor):
    """Sends and receives one message, on fresh connections, over and over: how soon is the service
    back?
    """

    def __init__(self, door: Native, queue: str, seed: str) -> None:
        super().__init__(door._book, f"{queue}/probe", seed)
        self.door, self.queue = door, queue
        self.number, self.back_since = 0, 0.0

    def step(self) -> None:
        """One round."""
        self.number += 1
        t0, why = self.book.now(), ""
        token = f"tk-{self.queue}-{self.number}"
        path = f"/v1/queues/{self.queue}"
        self.door.hang_up()
        try:
            self.door.ok("POST", f"{path}/messages", {"messages": [{"body": body_of(token)}]})
            self.door.hang_up()
            got = self.door.ok("POST", f"{path}/receive", {"max": 10, "wait_seconds": 1, "lease_seconds": 5}, 1)[
                "messages"
            ]
            if got:
                self.door.ok("POST", f"{path}/ack", {"handles": [row["handle"] for row in got]})
            else:
                why = "nothing received"
        except Trouble as trouble:
            why = f"{trouble.outcome}: {trouble.status} {trouble.code}"
        args = {"why": why[:200], "load_average": busy.average()}
        self.book.op("probe", t0, UNKNOWN if why else DONE, queue=self.queue, args=args)
        if not why:
            self.back_since = t0
        self.rest(0.15, 0.3)


class KafkaSender(Actor):
    """Produces to the topic of a queue, as any program of the Kafka world may."""

    def __init__(self, book: Book, bootstrap: str, queue: str, seed: str) -> None:
        super().__init__(book, f"{queue}/kafka/send", seed)
        self.queue, self.number = queue, 0
        self._producer = KafkaProducer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 120_000, "log_level": 0}
        )

    def step(self) -> None:
        """One record; what became of it is written when Kafka says it."""
        self.number += 1
        token, t0 = f"tk-{self.queue}-kafka-{self.number}", self.book.now()

        def said(error: Any, _message: Any) -> None:
            sends, outcome = [Sent(token, token, "")], UNKNOWN if error else DONE
            self.book.op("send", t0, outcome, queue=self.queue, process=self.who, by="kafka", sends=sends)

        self._producer.produce(f"lw.q.{self.queue}", body_of(token).encode(), on_delivery=said)
        self._producer.poll(0)
        self.rest(0.05, 0.25)

    def run(self) -> None:
        """Until stopped, and until all that was produced has been said."""
        super().run()
        self._producer.flush(60)


class KafkaReader(Actor):
    """Writes down what a Kafka client sees in the topics of all queues; another takes the place of
    one that its library has killed, and reads from the beginning again.
    """

    def __init__(self, book: Book, bootstrap: str, seed: str) -> None:
        super().__init__(book, "kafka/read", seed)
        self._command = [sys.executable, "-m", "tests.outside.reads", bootstrap]

    def run(self) -> None:
        """Until stopped, and until all that there was then is read."""
        while (status := self._read()) == -signal.SIGSEGV:
            self.book.note("note", text="the library of Kafka's client killed its process")
        if status:
            self.book.note("defect", text=f"the reader of the log ended with status {status}")

    def _read(self) -> int:
        command = [*self._command, f"outside-{uuid.uuid4()}"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            threading.Thread(target=self._end_when_stopped, args=[process.stdin], daemon=True).start()
            for line in process.stdout:
                self.book.note("log", rows=json.loads(line))
        return process.returncode

    def _end_when_stopped(self, stdin: IO[str]) -> None:
        self.stopped.wait()
        with contextlib.suppress(OSError):
            stdin.close()
