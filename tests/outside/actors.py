"""Clients that go on whatever happens: producers, consumers, and the loop that all actors share."""

from __future__ import annotations

import random
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tests.outside.book import Book
from tests.outside.door import Door, Leased, Letter
from tests.outside.native import Native

REPEAT_WITHIN_S = 240.0


class Actor(threading.Thread):
    """Takes steps until it is told to stop. A step that raises is a defect of the harness, and is
    written down as one.
    """

    def __init__(self, book: Book, who: str, seed: str) -> None:
        super().__init__(name=who, daemon=True)
        self.book, self.who, self.rng = book, who, random.Random(f"{seed}/{who}")
        self.stopped, self.hush = threading.Event(), threading.Event()

    def run(self) -> None:
        """Until stopped; while there is hush, it waits."""
        while not self.stopped.is_set():
            if self.hush.is_set():
                self.stopped.wait(0.05)
                continue
            try:
                self.step()
            except Exception:
                self.book.note("defect", text=f"{self.who}: {traceback.format_exc()[-1500:]}")
                self.rest(1, 1)

    def step(self) -> None:
        """One turn."""
        raise NotImplementedError

    def rest(self, least: float, most: float) -> None:
        """Sleep a while, or until stopped."""
        self.stopped.wait(self.rng.uniform(least, most))

    def ask_to_stop(self) -> None:
        """It ends after the step it is in."""
        self.stopped.set()


class Producer(Actor):
    """Sends to a standard queue; never the same token twice."""

    def __init__(
        self,
        door: Door,
        queue: str,
        seed: str,
        pace: float,
        delays: tuple[float, ...] = (0,),
        kinds: tuple[str, ...] = ("",),
    ) -> None:
        super().__init__(door._book, f"{queue}/{door.name}/send/{door.who}", seed)
        self.door, self.queue, self.pace, self.delays, self.kinds = door, queue, pace, delays, kinds
        self.number = 0

    def step(self) -> None:
        """One send of one to five."""
        letters = []
        for _ in range(self.rng.choice((1, 1, 1, 2, 5))):
            self.number += 1
            token = f"tk-{self.queue}-{self.door.who}-{self.number}"
            letters.append(Letter(token, delay=self.rng.choice(self.delays), kind=self.rng.choice(self.kinds)))
        good = self.door.send(self.queue, letters)
        self.rest(0, self.pace if good else max(1.0, self.pace))


class Liner(Actor):
    """Sends to groups of its own of a FIFO queue: the next of a group only when the one before was
    answered.

    What got no answer is sent again with the same deduplication id; and now and then what was
    answered long ago is sent again, with another body where the id is explicit, so that a repeat
    that is delivered is seen as such.
    """

    def __init__(self, door: Door, queue: str, seed: str, pace: float, groups: int, explicit: bool) -> None:
        super().__init__(door._book, f"{queue}/{door.name}/send/{door.who}", seed)
        self.door, self.queue, self.pace, self.groups, self.explicit = door, queue, pace, groups, explicit
        self.number = 0
        self._old: deque[tuple[float, Letter]] = deque(maxlen=400)

    def step(self) -> None:
        """One message of some group, until it is answered; then perhaps an old one once more."""
        self.number += 1
        group = f"{self.door.who}-{self.rng.randrange(self.groups)}"
        token = f"tk-{self.queue}-{group}-{self.number}"
        letter = Letter(token, group=group, dedup=token if self.explicit else "")
        began = self.book.now()
        while not self.door.send(self.queue, [letter]):
            if self.stopped.wait(0.5) or self.book.now() - began > REPEAT_WITHIN_S:
                return
        self._old.append((began, letter))
        if self.rng.random() < 0.15:
            at, old = self.rng.choice(self._old)
            if self.book.now() - at < REPEAT_WITHIN_S:
                body = f"{old.token}~{self.number}" if self.explicit else old.token
                self.door.send(self.queue, [Letter(body, group=old.group, dedup=old.dedup)])
        self.rest(0, self.pace)


@dataclass(frozen=True)
class Habits:
    """How a consumer works. What is not acked, released, extended, killed or acked late lapses."""

    most: int = 10
    waits: tuple[float, float] = (0, 1)
    leases: tuple[float, float] = (3, 6)
    ack: float = 0.85
    release: float = 0.05
    extend: float = 0.04
    late: float = 0.02
    kill: float = 0
    hold: float = 0.3
    pause: float = 0.1


class Consumer(Actor):
    """Receives from one of its places and does with each message what its habits say."""

    def __init__(
        self, door: Door, places: list[str], seed: str, habits: Habits, before_ack: Callable[[], None] | None = None
    ) -> None:
        super().__init__(door._book, f"{places[0]}/{door.name}/receive/{door.who}", seed)
        self.door, self.places, self.habits = door, places, habits
        self._later: deque[tuple[float, str, Leased]] = deque()

    def step(self) -> None:
        """One receive and its consequences."""
        habits, rng = self.habits, self.rng
        place = rng.choice(self.places)
        lease = rng.uniform(*habits.leases)
        lease = round(lease, 2) if self.door.name == "native" else float(round(lease))
        wait = rng.uniform(*habits.waits)
        wait = round(wait, 3) if self.door.name == "native" else float(round(wait))
        leased = self.door.receive(place, rng.randint(1, habits.most), wait, lease)
        if leased is None:
            self.rest(0.3, 1.0)
            return
        good: list[Leased] = []
        for one in leased:
            self._decide(place, one, lease, good)
        if good:
            self.rest(0, habits.hold)
            for part in (good[i : i + 10] for i in range(0, len(good), 10)):
                self.door.settle(place, part)
        self._settle_late()
        self.rest(0, habits.pause)

    def _decide(self, place: str, one: Leased, lease: float, good: list[Leased]) -> None:
        habits, door = self.habits, self.door
        chances = {
            "ack": habits.ack,
            "release": habits.release,
            "extend": habits.extend,
            "late": habits.late,
            "kill": habits.kill,
        }
        fate = self.rng.choices([*chances, "lapse"], [*chances.values(), max(0.0, 1 - sum(chances.values()))])[0]
        if fate == "ack":
            good.append(one)
        elif fate == "release" and isinstance(door, Native):
            door.release(place, one, self.rng.choice((0, 0, 0.5, 2.25)))
        elif fate == "release":
            door.extend(place, one, self.rng.choice((0, 0, 1, 2)))
        elif fate == "extend":
            door.extend(place, one, 5)
            self._later.append((self.book.now() + 3, place, one))
        elif fate == "late":
            self._later.append((self.book.now() + lease + self.rng.uniform(-0.5, 1.5), place, one))
        elif fate == "kill" and isinstance(door, Native):
            door.kill(place, one)

    def _settle_late(self) -> None:
        while self._later and self._later[0][0] < self.book.now():
            _, place, one = self._later.popleft()
            self.door.settle(place, [one])
