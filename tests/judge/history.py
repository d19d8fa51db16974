"""A history: what every client asked and was told, and what was done to the service; one JSON line
each, written as it happens.

Handles and bodies are digests here: a long soak must fit in memory.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

# Of a count or a sequence number that an answer does not tell; a time that it does not tell is 0.
UNTOLD = -1
# Its answers tell no ends of leases, and the same of an ack that was done and of a stale one.
SQS = "sqs"


def digest(text: str) -> str:
    """What stands for a handle or a body."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Sent(msgspec.Struct, omit_defaults=True):
    """A message of a send: its own name, digests of body and attributes, and what was asked for
    it.
    """

    uid: str
    body: str
    attributes: str
    kind: str = ""
    delay_ms: int = 0
    group: str = ""
    dedup: str = ""


class Origin(msgspec.Struct, omit_defaults=True):
    """Where a moved copy says that it came from."""

    from_id: str
    from_tag: str
    original_id: str
    original_queue: str
    reason: str
    count: int


class Delivered(msgspec.Struct, omit_defaults=True):
    """A delivery as the answer of a receive told it; `visible_ms` is the end of its lease and
    `sent_ms` the time of its send, by the server's clock.
    """

    id: str
    uid: str
    body: str
    attributes: str
    handle: str
    count: int
    sent_ms: int = 0
    visible_ms: int = 0
    origin: Origin | None = None
    group: str = ""
    sequence: int = UNTOLD


class Result(msgspec.Struct, omit_defaults=True):
    """What a verb said of one handle or message: `ok`, `stale`, `fail`, `info` or `broken` (500);
    the new next visible time where there is one.
    """

    status: str
    visible_ms: int = 0


class Line(msgspec.Struct, omit_defaults=True):
    """A line of the file. `type`: invoke, ok, fail (known not done), info (outcome unknown), begin,
    loss, heal, start, note.

    `at` is monotonic ns. An invoke and its completion share `op`; so do the lines of one fault. A
    completion with `began` is an operation in one line. `by` is what the client speaks.
    """

    type: str
    at: int
    began: int = 0
    op: int = 0
    process: int | str = 0
    by: str = "native"
    verb: str = ""
    queue: str = ""
    tag: str = "default"
    args: dict[str, Any] = {}
    sends: list[Sent] = []
    handles: list[str] = []
    ids: list[str] = []
    deliveries: list[Delivered] = []
    results: list[Result] = []
    answer: Any = None


class Recorder:
    """Writes lines to a file, from any thread; each is on its way to the disk before the call
    returns.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._encoder = msgspec.json.Encoder()
        self.write(Line("start", time.monotonic_ns(), args={"wall_ns": time.time_ns()}))

    def number(self) -> int:
        """A new number for an operation or a fault."""
        return next(self._numbers)

    def write(self, line: Line) -> None:
        """Appends one line; what comes after `close` is dropped."""
        data = self._encoder.encode(line) + b"\n"
        with self._lock:
            if not self._file.closed:
                self._file.write(data)
                self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()


NEVER = 2**62


class Op(msgspec.Struct):
    """An invoke with its completion; without one the outcome is `info` and `ended` is NEVER.
    `lines` are their numbers in the file.
    """

    line: Line
    end: Line | None
    lines: tuple[int, int]

    @property
    def outcome(self) -> str:
        return self.end.type if self.end is not None else "info"

    @property
    def ok(self) -> bool:
        return self.end is not None and self.end.type == "ok"

    @property
    def began(self) -> int:
        return self.line.began or self.line.at

    @property
    def left(self) -> int:
        """When the client had an answer or waited no longer."""
        return self.end.at if self.end is not None else NEVER

    @property
    def status(self) -> int:
        """Of the answer; 0 when there was none."""
        return self.end.args.get("status", 0) if self.end is not None else 0

    @property
    def code(self) -> str:
        """Of an error that was answered."""
        answer = self.end.answer if self.end is not None else None
        return str(answer.get("code", "")) if isinstance(answer, dict) else ""

    @property
    def ended(self) -> int:
        """When the client knew; NEVER while the outcome is unknown, for it may be done at any later
        time.
        """
        return self.end.at if self.end is not None and self.end.type != "info" else NEVER

    def where(self) -> str:
        """Its lines, for a breach."""
        first, last = self.lines
        if first == last:
            return f"line {first}"
        return f"lines {first}, {last}" if last else f"line {first}, no answer"


class Loss(msgspec.Struct):
    """Redis lost state at some time from `began` to `ended` (monotonic ns), by fault `op`."""

    op: int
    began: int
    ended: int


class Fault(msgspec.Struct):
    """A fault as it was done; `healed` is NEVER when it was not. `holds_up`: the journal may be
    behind for a while after it. `held`: the service can be back only when it is healed. `cuts`:
    connections to a Redis that goes on.
    """

    op: int
    name: str
    began: int
    healed: int = NEVER
    holds_up: bool = True
    held: bool = True
    cuts: bool = False
    line: int = 0

    @property
    def over(self) -> int:
        """When it was healed; a fault that was not goes on, but a sum of its end is no number."""
        return min(self.healed, NEVER // 2)


class History(msgspec.Struct):
    """A file read back. `wall_ns` added to a monotonic time gives epoch ns: all clocks are this
    machine's.
    """

    ops: list[Op]
    faults: list[Fault]
    losses: list[Loss]
    notes: list[Line]
    wall_ns: int

    def ms(self, at: int) -> float:
        """Epoch ms, the unit of the server's times, of a monotonic time."""
        return (at + self.wall_ns) / 1e6


def read(path: Path) -> History:
    """Reads a history; a last line that was cut is left out."""
    decoder = msgspec.json.Decoder(Line)
    with path.open("rb") as file:
        return of([decoder.decode(raw) for raw in file if raw.endswith(b"\n")])


def of(lines: list[Line]) -> History:
    """The history of these lines."""
    history = History([], [], [], [], 0)
    open_ops: dict[int, Op] = {}
    faults: dict[int, Fault] = {}
    for number, line in enumerate(lines, 1):
        if line.type == "invoke":
            op = open_ops[line.op] = Op(line, None, (number, 0))
            history.ops.append(op)
        elif line.began:
            history.ops.append(Op(line, line, (number, number)))
        elif line.type in ("ok", "fail", "info"):
            op = open_ops.pop(line.op)
            op.end, op.lines = line, (op.lines[0], number)
        elif line.type == "start":
            history.wall_ns = line.args["wall_ns"] - line.at
        elif line.type == "note":
            history.notes.append(line)
        else:
            _fault_line(history, faults, line, number)
    return history


def _fault_line(history: History, faults: dict[int, Fault], line: Line, number: int) -> None:
    if line.type == "begin":
        fault = faults[line.op] = Fault(line.op, line.verb, line.at, line=number, **line.args)
        history.faults.append(fault)
    elif line.type == "heal":
        faults[line.op].healed = line.at
    elif line.type == "loss":
        history.losses.append(Loss(line.op, line.args["began"], line.at))
    else:
        raise ValueError(f"line {number}: unknown type {line.type!r}")
