"""Before and after the weather: queues are made and filled, and at the end counted, emptied and
counted again.
"""

from __future__ import annotations

import threading
import time

from tests.outside.amazon import Amazon
from tests.outside.book import Book
from tests.outside.crew import everything
from tests.outside.door import Letter
from tests.outside.lanes import LANES, PROBES, TAG_FILTER
from tests.outside.native import Native

REST = {"ready": 30, "leased": 20, "delayed": 15}


def make(book: Book, port: int) -> None:
    """All queues and tags; those of probes are no part of the history."""
    door = Native(book, "stage", port)
    for lane in LANES:
        if not door.create(lane.name, lane.asked, **lane.plan):
            raise AssertionError(f"queue {lane.name} could not be made")
        for tag in filter(None, lane.tags):
            door.ok("POST", f"/v1/queues/{lane.name}/tags", {"name": tag, "start_at_ms": 0, "filter": TAG_FILTER})
    for name in PROBES:
        door.ok("POST", "/v1/queues", {"name": name})


def fill_rest(book: Book, port: int) -> None:
    """A queue with messages in each state, which nobody touches until the end."""
    native, sqs = Native(book, "rest-n", port), Amazon(book, "rest-a", port)
    tokens = [f"tk-rest-{i}" for i in range(REST["ready"] + REST["leased"])]
    assert native.send("rest", [Letter(token) for token in tokens])
    taken = 0
    while taken < REST["leased"]:
        door = native if taken < 10 else sqs
        taken += len(door.receive("rest", min(5, REST["leased"] - taken), 1, 7200) or ())
    assert native.send("rest", [Letter(f"tk-rest-late-{i}", delay=3600) for i in range(REST["delayed"])])


def wait_rest(book: Book, port: int, seconds: float) -> None:
    """Wait until nothing is leased or delayed any more, then write down each place's counts, in
    both dialects.
    """
    native, sqs = Native(book, "count-n", port), Amazon(book, "count-a", port)
    # Asking has loaded what a loss of Redis had left in Kafka alone: only then are states told.
    native.counts("rest")
    end = time.monotonic() + seconds
    waiting = [place for place in everything() if place != "rest"]
    while waiting and time.monotonic() < end:
        waiting = [place for place in waiting if _busy(native, place)]
        time.sleep(1 if waiting else 0)
    for number, place in enumerate(everything()):
        door = native if number % 2 else sqs
        door.counts(place, rest=True)
    native.counts("rest", rest=True)


def _busy(door: Native, place: str) -> bool:
    counts = door.counts(place)
    return counts is None or counts["leased"] + counts["delayed"] > 0


def drain(book: Book, port: int, threads: int = 6, seconds: float = 150) -> None:
    """Receive and ack whatever is there, and count what is left. Dead-letter queues come after all
    others.
    """
    places = [place for place in everything() if place != "rest"]
    dead = {lane.name for lane in LANES if lane.is_dead}
    end = time.monotonic() + seconds
    for part in ([place for place in places if place not in dead], [place for place in places if place in dead]):
        lock, left = threading.Lock(), list(part)
        workers = [
            threading.Thread(target=_drain_all, args=(book, port, Native(book, f"drain-{i}", port), left, lock, end))
            for i in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def _drain_all(book: Book, port: int, door: Native, left: list[str], lock: threading.Lock, end: float) -> None:
    while True:
        with lock:
            if not left:
                return
            place = left.pop()
        # Its letters were received by SQS, which gives them the ids of the first send.
        speaker = Amazon(book, f"{door.who}-a", port) if place == "gone-dead" else door
        empty = 0
        while time.monotonic() < end:
            leased = speaker.receive(place, 100 if speaker is door else 10, 1 if place == "gone-dead" else 0.5, 30)
            if leased:
                speaker.settle(place, leased)
            empty = empty + 1 if leased == [] else 0
            # Nothing twice and nothing counted: empty. Nothing eight times though something is
            # counted: said to the judge.
            if empty >= 2 and (empty >= 12 or not sum((door.counts(place) or {"some": 1}).values())):
                break
        door.counts(place, rest=True, empty=True)


def finish_tasks(book: Book, port: int, tasks: list[tuple[str, str]], seconds: float = 60) -> None:
    """Ask for every redrive task until it has ended; the last answer stands in the book."""
    door, end = Native(book, "tasks", port), time.monotonic() + seconds
    for place, task in tasks:
        while door.task(place, task) not in ("completed", "failed", "cancelled") and time.monotonic() < end:
            time.sleep(0.5)
