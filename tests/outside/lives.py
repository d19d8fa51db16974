"""A name whose queue is made, used, deleted and made anew all the time.

Each life has tokens of its own. After a deletion of unknown outcome the actor asks for no other: it
tries to make the queue anew until it is told 201. So one deletion at most is ever open, and one
that has happened has no right to happen again.
"""

from __future__ import annotations

import queue
import threading

from tests.outside.actors import Actor
from tests.outside.book import DONE, REFUSED, UNREACHED
from tests.outside.door import Letter, Trouble
from tests.outside.native import Native

KNOWN_WITHIN_S = 80.0
SETTINGS = {"partitions": 2}


class Doorbell:
    """Rung by who is about to delete; answered by weather that waits for it, or by nobody."""

    def __init__(self) -> None:
        self._wanted, self._rung = threading.Event(), queue.SimpleQueue[tuple[int, str, threading.Event]]()

    def ring(self, port: int, name: str) -> None:
        """Say which client port deletes which queue; returns at once unless somebody wants to
        know.
        """
        if self._wanted.is_set():
            self._wanted.clear()
            seen = threading.Event()
            self._rung.put((port, name, seen))
            seen.wait(1)

    def next(self, within_s: float) -> tuple[int, str, threading.Event] | None:
        """Wait for a deletion; it begins when the event is set."""
        self._wanted.set()
        try:
            return self._rung.get(timeout=within_s)
        except queue.Empty:
            return None
        finally:
            self._wanted.clear()


class Reborn(Actor):
    """One life a step."""

    def __init__(self, door: Native, name: str, seed: str, bell: Doorbell) -> None:
        super().__init__(door._book, f"{name}/lives", seed)
        self.door, self.base, self.name, self.bell = door, name, name, bell
        self.life, self.renamed, self.made = 0, 0, False

    def step(self) -> None:
        """Create, look, use, perhaps drain, delete."""
        if not self.made:
            self.life += 1
            if not self._create():
                return
        self.made = False
        self.door.counts(self.name, life=self.life, born=True)
        answered = self._use()
        if self.rng.random() < 0.5:
            self._drain(answered)
        self._delete()
        self.rest(0, 0.5)

    def _create(self) -> bool:
        while not self.stopped.is_set():
            if self.door.create(self.name, SETTINGS, life=self.life):
                return True
            self.rest(0.3, 0.6)
        return False

    def _use(self) -> set[str]:
        answered: set[str] = set()
        for turn in range(self.rng.randint(3, 25)):
            token = f"tk-{self.name}-{self.life}-{turn}"
            if self.door.send(self.name, [Letter(token)]):
                answered.add(token)
            if self.rng.random() < 0.3:
                self._receive(0, answered)
            if self.rng.random() < 0.5:
                self.door.exists(self.name)
            self.rest(0, 0.4)
        return answered

    def _receive(self, wait: float, answered: set[str]) -> bool:
        leased = self.door.receive(self.name, 10, wait, 5)
        if leased:
            self.door.settle(self.name, leased)
            answered -= {one.token for one in leased}
        return leased == []

    def _drain(self, answered: set[str]) -> None:
        empty, end = 0, self.book.now() + 60
        while answered and empty < 8 and self.book.now() < end and not self.stopped.is_set():
            empty = empty + 1 if self._receive(1.5, answered) else 0
        if empty >= 8:
            self.book.note("missing", queue=self.name, life=self.life, uids=sorted(answered))

    def _delete(self) -> None:
        while not self.stopped.is_set():
            try:
                self.bell.ring(self.door.port_used(), self.name)
                break
            except Trouble:
                self.rest(0.3, 0.6)
        outcome = self.door.delete(self.name, life=self.life)
        while outcome in (UNREACHED, REFUSED) and not self.stopped.is_set():
            if outcome == REFUSED and self.door.exists(self.name) is False:
                return
            self.rest(0.3, 0.6)
            outcome = self.door.delete(self.name, life=self.life)
        if outcome == DONE:
            self.door.exists(self.name)
        elif not self.stopped.is_set():
            self._make_anew()
        return

    def _make_anew(self) -> None:
        end = self.book.now() + KNOWN_WITHIN_S
        while not self.stopped.is_set():
            if self.door.create(self.name, SETTINGS, life=self.life + 1) == 201:
                self.life, self.made = self.life + 1, True
                return
            if self.book.now() > end:
                self.renamed += 1
                self.name = f"{self.base}.{self.renamed}"
                return
            self.rest(0.5, 1)
