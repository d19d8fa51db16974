"""The load that is the same at every step: connections that each send ten messages, receive ten
under each tag, ack them, and again.

A connection never sends before it has received: senders that ran ahead would make a backlog, which
is a dimension of its own. That is why this is not `benchmarks/loadgen`, whose senders do; it also
stops when its own messages are back, and behind a backlog they never are, and it knows no tags.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import msgspec

from benchmarks.backlog import in_threads
from benchmarks.scale.wire import Broken, Wire, request

BATCH = 10
CONNECTIONS = 8
WAIT_S = 1
# A load that is to visit every queue once ends after so long all the same.
MOST_S = 120.0
TEXTS = 3


class _Leased(msgspec.Struct):
    handle: str


class Leased(msgspec.Struct):
    """What is read of a receive's answer."""

    messages: list[_Leased]


class _Done(msgspec.Struct):
    status: str


class _Results(msgspec.Struct):
    results: list[_Done]


LEASED: msgspec.json.Decoder[Leased] = msgspec.json.Decoder(Leased)
_RESULTS: msgspec.json.Decoder[_Results] = msgspec.json.Decoder(_Results)


@dataclass(frozen=True)
class Load:
    """Which queues, in turn, and under which tags; `body` in bytes. `name` "" = the only load of
    its dimension.
    """

    queues: tuple[str, ...]
    tags: tuple[str, ...] = ("default",)
    name: str = ""
    body: int = 1024


@dataclass
class Tally:
    """`acked`: deliveries that were acked; `refused`: answers that were no 200, and some of their
    texts.
    """

    acked: int = 0
    refused: int = 0
    texts: list[str] = field(default_factory=list)


class _Verbs:
    """The requests of one queue as bytes, made once."""

    def __init__(self, queue: str, load: Load) -> None:
        path = f"/v1/queues/{queue}"
        self.send = request(f"{path}/messages", {"messages": [{"body": "x" * load.body}] * BATCH})
        self.receives = [
            request(f"{path}/receive", {"tag": tag, "max": BATCH, "wait_seconds": WAIT_S}) for tag in load.tags
        ]
        self.ack_path = f"{path}/ack"


class _Loop:
    """One connection's share of a load."""

    def __init__(self, port: int, load: Load, number: int) -> None:
        # Each has its own queues where there are enough.
        mine = load.queues[number::CONNECTIONS] or load.queues
        self._verbs = [_Verbs(queue, load) for queue in mine]
        self._wire = Wire(port)
        self.tally = Tally()

    def run(self, until: float, least: bool) -> None:
        """Cycles until that time, and with `least` until every queue was visited once."""
        turn = 0
        try:
            while time.perf_counter() < until or (
                least and turn < len(self._verbs) and time.perf_counter() < until + MOST_S
            ):
                self._cycle(self._verbs[turn % len(self._verbs)])
                turn += 1
        finally:
            self._wire.close()

    def _cycle(self, verbs: _Verbs) -> None:
        self._ask(verbs.send)
        for receive in verbs.receives:
            answer = self._ask(receive)
            handles = [message.handle for message in LEASED.decode(answer).messages] if answer else []
            if handles and (answer := self._ask(request(verbs.ack_path, {"handles": handles}))):
                self.tally.acked += sum(done.status == "ok" for done in _RESULTS.decode(answer).results)

    def _ask(self, wanted: bytes) -> bytes:
        status, answer = self._wire.ask(wanted)
        if status == 200:
            return answer
        self.tally.refused += 1
        if len(self.tally.texts) < TEXTS:
            self.tally.texts.append(f"{status} {answer[:200].decode(errors='replace')}")
        time.sleep(0.05)
        return b""


def run(port: int, load: Load, seconds: float, *, everywhere: bool = False) -> Tally:
    """Loads the service for so long; `everywhere`: and until every queue was visited. Raises Broken
    when a connection breaks.
    """
    loops = [_Loop(port, load, number) for number in range(CONNECTIONS)]
    until = time.perf_counter() + seconds
    broken: list[str] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        try:
            loops[number].run(until, everywhere)
        except (Broken, OSError, msgspec.MsgspecError) as error:
            with lock:
                broken.append(repr(error))

    in_threads(CONNECTIONS, work)
    if broken:
        raise Broken(f"{len(broken)} of {CONNECTIONS} connections broke: {broken[0]}")
    tallies = [loop.tally for loop in loops]
    texts = [text for tally in tallies for text in tally.texts]
    return Tally(sum(tally.acked for tally in tallies), sum(tally.refused for tally in tallies), texts[:TEXTS])
