"""Who works on which queue. Half of the traffic speaks SQS, half the native dialect."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tests.outside.actors import Actor, Consumer, Habits, Liner, Producer
from tests.outside.amazon import Amazon
from tests.outside.book import Book
from tests.outside.lanes import LANES, MANY, PROBES
from tests.outside.lives import Doorbell, Reborn
from tests.outside.native import Native
from tests.outside.others import KafkaReader, KafkaSender, Probe, Purger, Redriver, Rounds
from tests.outside.rude import Leaver, Vandal, Wrong

BRIEF = Habits(most=3, waits=(0.02, 0.12), leases=(1, 2), ack=0.6, release=0, extend=0, late=0, hold=0.02, pause=0.02)
WORN = Habits(most=5, waits=(0, 1), leases=(1, 2), ack=0.45, release=0.2, extend=0.02, late=0.02, kill=0.05, hold=0.1)
LETTERS = Habits(most=10, waits=(0, 2), leases=(20, 30), ack=1, hold=0, pause=0.2)
LATE = Habits(waits=(0, 2), leases=(2, 4), ack=0.6, release=0.15, extend=0.1, late=0.05)
LINE = Habits(most=6, leases=(3, 6), ack=0.9, release=0.03, extend=0.02, late=0.01, hold=0.15, pause=0.05)


@dataclass
class Crew:
    """Everybody, by when they are told to stop."""

    senders: list[Actor] = field(default_factory=list)
    takers: list[Actor] = field(default_factory=list)
    probes: list[Probe] = field(default_factory=list)
    reader: KafkaReader | None = None
    bell: Doorbell = field(default_factory=Doorbell)
    hush: threading.Event = field(default_factory=threading.Event)


def hire(book: Book, port: int, bootstrap: str, seed: int) -> Crew:
    """All actors of a run, not yet started."""
    hands, crew, text = _Hands(book, port), Crew(), str(seed)
    _standard(hands, crew, text)
    _fifo(hands, crew, text)
    _dying(hands, crew, text)
    _odd(hands, crew, text)
    crew.senders.append(KafkaSender(book, bootstrap, "plain", text))
    for actor in (*crew.senders, *crew.takers):
        actor.hush = crew.hush
    crew.reader = KafkaReader(book, bootstrap, text)
    crew.probes = [Probe(Native(book, f"probe-{i}", port, patience=4), name, text) for i, name in enumerate(PROBES)]
    return crew


class _Hands:
    """Makes clients, each with a short name of its own."""

    def __init__(self, book: Book, port: int) -> None:
        self.book, self.port, self.number = book, port, 0

    def native(self) -> Native:
        self.number += 1
        return Native(self.book, f"n{self.number}", self.port)

    def sqs(self) -> Amazon:
        self.number += 1
        return Amazon(self.book, f"a{self.number}", self.port)


def _standard(hands: _Hands, crew: Crew, seed: str) -> None:
    usual = Habits()
    for name in ("plain", "firm"):
        crew.senders += [Producer(hands.native(), name, seed, 0.15), Producer(hands.sqs(), name, seed, 0.15)]
        crew.takers += [Consumer(hands.native(), [name], seed, usual), Consumer(hands.sqs(), [name], seed, usual)]
    delays, whole = (0, 0.3, 1.5, 4.25, 9.0), (0, 1, 3, 8)
    crew.senders += [
        Producer(hands.native(), "late", seed, 0.3, delays),
        Producer(hands.sqs(), "late", seed, 0.3, whole),
    ]
    crew.takers += [Consumer(hands.native(), ["late"], seed, LATE), Consumer(hands.sqs(), ["late"], seed, LATE)]
    kinds = ("red", "")
    crew.senders += [
        Producer(hands.native(), "pair", seed, 0.3, kinds=kinds),
        Producer(hands.sqs(), "pair", seed, 0.3, kinds=kinds),
    ]
    crew.takers += [
        Consumer(hands.native(), ["pair", "pair@b"], seed, usual),
        Consumer(hands.sqs(), ["pair", "pair@b"], seed, usual),
    ]
    crew.senders += [Producer(hands.native(), "wiped", seed, 0.2), Producer(hands.sqs(), "wiped", seed, 0.2)]
    crew.takers += [Consumer(hands.sqs(), ["wiped"], seed, usual)]
    many = [f"m-{i:02}" for i in range(MANY)]
    crew.senders += [Rounds(hands.native(), many, seed), *(Rounds(hands.sqs(), many[::step], seed) for step in (-1, 1))]


def _fifo(hands: _Hands, crew: Crew, seed: str) -> None:
    for queue, explicit in (("line.fifo", True), ("wide.fifo", False)):
        crew.senders += [
            Liner(hands.native(), queue, seed, 0.15, 4, explicit),
            Liner(hands.sqs(), queue, seed, 0.15, 4, explicit),
        ]
        crew.takers += [Consumer(hands.native(), [queue], seed, LINE), Consumer(hands.sqs(), [queue], seed, LINE)]


def _dying(hands: _Hands, crew: Crew, seed: str) -> None:
    crew.senders += [Producer(hands.native(), "brief", seed, 0.2), Producer(hands.sqs(), "brief", seed, 0.2)]
    crew.takers += [Consumer(hands.native(), ["brief"], seed, BRIEF) for _ in range(3)]
    crew.senders += [Producer(hands.native(), "gone", seed, 0.2)]
    crew.takers += [Leaver(hands.native(), "gone", seed) for _ in range(2)]
    crew.senders += [Producer(hands.native(), "worn", seed, 0.4), Producer(hands.sqs(), "worn", seed, 0.4)]
    crew.takers += [Consumer(hands.native(), ["worn"], seed, WORN) for _ in range(2)]
    crew.takers += [Consumer(hands.sqs(), ["worn"], seed, WORN), Consumer(hands.sqs(), ["gone-dead"], seed, LETTERS)]
    crew.takers += [Consumer(hands.native(), ["brief-dead"], seed, LETTERS)]


def _odd(hands: _Hands, crew: Crew, seed: str) -> None:
    crew.senders += [Purger(hands.native(), "wiped", seed), Redriver(hands.native(), "worn-dead", seed)]
    crew.senders += [Reborn(hands.native(), f"reborn-{i}", seed, crew.bell) for i in range(3)]
    crew.senders += [Vandal(hands.native(), "plain", seed), Wrong(hands.native(), "wrong", seed)]


def everything() -> list[str]:
    """Every place that is drained at the end, sources before their dead-letter queues."""
    first = [place for lane in LANES if not lane.is_dead for place in lane.places()]
    return first + [lane.name for lane in LANES if lane.is_dead]
