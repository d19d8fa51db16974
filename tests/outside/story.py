"""The book in the order the checks ask for: tokens, copies of messages, leases, losses. Nothing
here judges.

A *copy* is a message id at a place (queue or queue@tag): a dead letter is another copy than the
message it was.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.outside.book import BROKEN, DONE, REFUSED, UNKNOWN, UNREACHED, Entry
from tests.outside.carried import UNNOTICED_S, Carried
from tests.outside.lanes import Lane

# docs/explanation/promises.md, "What a loss of Redis weakens": an ack, lease or count is forgotten
# if it was answered within a second of it (five on a loaded machine), or from so long before
# another fault (Kafka, a worker) that was healed less than eight seconds before it.
LOSS_S, LOSS_LOADED_S, HEALED_S = 1.0, 5.0, 8.0
# From that load average on (two cores), whoever made it, the bounds are those of a loaded machine.
LOADED = 10
# docs/explanation/architecture.md: so many messages of a tag a worker that is alone leases ahead of
# receives, for so long at most.
AHEAD, AHEAD_S = 100, 1.0
NOT_DONE = (REFUSED, UNREACHED, "stale", "lapsed")


@dataclass
class Try:
    """One attempt to send a token."""

    t0: float
    t1: float
    result: str
    by: str
    delay: float = 0
    n: int = 0


@dataclass
class Sent:
    """A token and all attempts to send it."""

    token: str
    queue: str
    tries: list[Try] = field(default_factory=list)
    group: str = ""
    dedup: str = ""
    kind: str = ""

    @property
    def answered(self) -> bool:
        """Some attempt was answered as done."""
        return any(one.result == DONE for one in self.tries)

    @property
    def possible(self) -> bool:
        """Some attempt may have been done."""
        return any(one.result in (DONE, UNKNOWN, BROKEN) for one in self.tries)

    @property
    def first(self) -> float:
        """When it was first asked for."""
        return min(one.t0 for one in self.tries)


@dataclass
class Got:
    """A delivery."""

    n: int
    pos: int
    t0: float
    t1: float
    lease: float
    count: int
    handle: str
    by: str
    died_after: int = 0


@dataclass
class Act:
    """An ack, extension, release or kill of a delivery."""

    op: str
    n: int
    t0: float
    t1: float
    result: str
    handle: str
    by: str
    lease: float = 0

    @property
    def possible(self) -> bool:
        """It may have been done."""
        return self.result in (DONE, UNKNOWN, BROKEN)


@dataclass
class Copy:
    """A message id at a place."""

    place: str
    id: str
    token: str
    gots: list[Got] = field(default_factory=list)
    ends: list[Act] = field(default_factory=list)
    changes: list[Act] = field(default_factory=list)


@dataclass
class Fault:
    """From begin to end; the end is infinite when it was not written."""

    name: str
    begin: float
    end: float = float("inf")


class Story:
    """All of a book."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.lanes: dict[str, Lane] = {}
        self.sent: dict[str, Sent] = {}
        self.copies: dict[tuple[str, str], Copy] = {}
        self.faults: list[Fault] = []
        self.losses: list[tuple[float, float]] = []
        self.by_op: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            self.by_op[entry["op"]].append(entry)
        for row in self.by_op["lane"]:
            known: dict[str, Any] = {key: row[key] for key in Lane.__dataclass_fields__ if key in row}
            self.lanes[row["name"]] = Lane(**known | {"tags": tuple(row.get("tags", ("",)))})
        for entry in self.by_op["send"]:
            self._send(entry)
        for entry in self.by_op["receive"]:
            self._receive(entry)
        for op in ("settle", "extend", "kill"):
            for entry in self.by_op[op]:
                self._act(entry)
        seen = (
            row.get(name, 0) for op in ("run", "probe") for row in self.by_op[op] for name in ("load", "load_average")
        )
        self.loaded = any(value >= LOADED for value in seen)
        self._weather()
        self.at: dict[str, list[Copy]] = defaultdict(list)
        self.of: dict[tuple[str, str], list[Copy]] = defaultdict(list)
        for copy in self.copies.values():
            copy.gots.sort(key=lambda got: (got.t1, got.pos))
            self.at[copy.place].append(copy)
            self.of[copy.place, copy.token].append(copy)

    def lane(self, place: str) -> Lane | None:
        """The lane of a place; None for names that come and go."""
        return self.lanes.get(place.partition("@")[0])

    def family(self, lane: Lane, tag: str) -> list[str]:
        """The places where a message of a lane may end, under a tag."""
        return [f"{lane.name}@{tag}" if tag else lane.name, *([lane.dead] if lane.dead else [])]

    def excused(self, t0: float, t1: float, before: float = float("inf")) -> bool:
        """Whether a loss of Redis that began before `before` may have undone what was asked at t0
        and answered at t1.
        """
        return any(begin <= before and t0 <= end and t1 >= self._bends_from(begin) for begin, end in self.losses)

    def _bends_from(self, loss: float) -> float:
        away = [
            fault.begin
            for fault in self.faults
            if ("kafka" in fault.name or "worker" in fault.name) and fault.begin < loss < fault.end + HEALED_S
        ]
        return min([loss, *away]) - (LOSS_LOADED_S if self.loaded else LOSS_S)

    def firm(self, copy: Copy, end: Act) -> bool:
        """Whether an ack that was answered as done certainly settled its message.

        The native dialect says so. SQS says success to an old handle too: there the lease must have
        lasted, by the client's clock.
        """
        if end.result != DONE:
            return False
        if end.by == "native":
            return True
        got = next((one for one in copy.gots if one.handle == end.handle), None)
        if got is None or self.excused(got.t0, got.t1, end.t1):
            return False
        others = any(one is not got and one.t1 > got.t0 and one.t0 < end.t1 for one in copy.gots)
        changed = any(act.handle == end.handle and act.possible and act.t0 < end.t1 for act in copy.changes)
        return end.t1 < got.t0 + got.lease and not others and not changed

    def unheard(self, place: str) -> list[Entry]:
        """Receives at a place of which nobody knows whether they carried something: no answer, or
        Redis stood still meanwhile.
        """
        stood = [fault for fault in self.faults if "redis" in fault.name]
        return [
            row
            for row in self.by_op["receive"]
            if row["place"] == place
            and row["outcome"] == UNKNOWN
            and (not row.get("status") or any(one.begin < row["t1"] and row["t0"] < one.end + 5 for one in stood))
        ]

    def carried(self, place: str) -> Carried:
        """What the unheard receives of a place may have carried, and of the queue of which it has
        the dead letters, for they are counted on. Of several workers, one may have given back what
        another rebuilt: a loss of Redis may forget that. And who is killed gives nothing back: not
        what it had leased ahead of receives either, if it was alone.
        """
        lane = self.lane(place)
        source = lane.is_dead_of if lane else ""
        places = {place, *(row["place"] for row in self.by_op["receive"] if row["place"].partition("@")[0] == source)}
        rows = [row for one in places for row in self.unheard(one)]
        several = max((row.get("workers", 1) for row in self.by_op["run"]), default=1) > 1
        gone = (row for row in self.by_op["receive"] if row["place"] in places and row["outcome"] == "gone")
        rows += (row for row in gone if self._nobody_gave_back(row) or (several and self.excused(row["t0"], row["t1"])))
        if lane is not None and not (several or lane.fifo or lane.dead or lane.is_dead_of):
            rows += ({"t0": kill - AHEAD_S, "t1": kill, "max": AHEAD} for kill in self._kills())
        return Carried(rows)

    def _nobody_gave_back(self, row: Entry) -> bool:
        """Whether a worker was killed before it may be expected to have noticed that a client has
        gone.
        """
        return any(row["t0"] <= kill <= row["t1"] + UNNOTICED_S for kill in self._kills())

    def _kills(self) -> list[float]:
        return [fault.begin for fault in self.faults if fault.name.startswith("kill") and "worker" in fault.name]

    def _send(self, entry: Entry) -> None:
        for item in entry["items"]:
            sent = self.sent.setdefault(item["token"], Sent(item["token"], entry["place"]))
            sent.group, sent.dedup, sent.kind = item.get("group", ""), item.get("dedup", ""), item.get("kind", "")
            sent.tries.append(
                Try(entry["t0"], entry["t1"], item["result"], entry["by"], item.get("delay", 0), entry["n"])
            )

    def _copy(self, place: str, id: str, token: str) -> Copy:
        return self.copies.setdefault((place, id), Copy(place, id, token))

    def _receive(self, entry: Entry) -> None:
        for pos, row in enumerate(entry["got"]):
            copy = self._copy(entry["place"], row["id"], row["token"])
            times = entry["n"], pos, entry["t0"], entry["t1"], entry["lease"]
            copy.gots.append(Got(*times, row["count"], row["handle"], entry["by"], row.get("died_after", 0)))

    def _act(self, entry: Entry) -> None:
        for item in entry["items"]:
            copy = self._copy(entry["place"], item["id"], item["token"])
            act = Act(
                entry["op"],
                entry["n"],
                entry["t0"],
                entry["t1"],
                item["result"],
                item["handle"],
                entry["by"],
                entry.get("lease", 0),
            )
            (copy.ends if act.op == "settle" else copy.changes).append(act)

    def _weather(self) -> None:
        for row in self.by_op["fault"]:
            if row["phase"] == "strike":
                self.faults.append(Fault(row["name"], row["t0"]))
            else:
                last = next(fault for fault in reversed(self.faults) if fault.name == row["name"])
                last.end = row["t0"]
        self.losses = [(row["t0"], row["t1"]) for row in self.by_op["loss"]]


def told(entry: Any) -> str:
    """Where in the book: line and times."""
    return f"line {entry.n} ({entry.t0:.2f}-{entry.t1:.2f} s)"
