"""Places where a worker can be made to fail on purpose, each with a name: for tests of what is left
behind between two steps.

Armed by LEASEWAY_FAILPOINTS (the engine arms what its settings say) or by a test in process; else
`reached` is one look into an empty dict.

    NAME=ACTION[*N][@FILE], ...
    ACTION: kill (SIGKILL of this process), raise (FailpointReached), sleep:MS (of the whole
            worker), stop (of the whole worker, as by SIGSTOP, until FILE.stopped is removed, which
            has its pid)

`*N`: only the N-th time that this process comes there. `@FILE`: only while FILE is there, and it is
removed first (by `stop`: renamed to FILE.stopped): so it happens once among all workers and their
next lives, at the moment that a test chooses.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from typing import Final

# Name -> what has just been done when the worker comes there.
POINTS: Final[dict[str, str]] = {
    "move.held": "a message that is to be moved is held at its source, nothing is written yet",
    "move.appended": "the target's topic has the copy, its window does not",
    "move.loaded": "the target's window has the copy",
    "move.before_settle": "the copy is known to be there (also one of a mover before), the source is not settled",
    "move.after_settle": "the source is settled, nobody has been told",
    "redrive.claimed": "dead letters are claimed for a task, none is moved",
    "redrive.paged": "outcomes of a task are written, its progress is not",
    "redrive.saved": "the progress of a task is written",
    "drain.before_append": "entries are taken from the outbox, the journal does not have them",
    "drain.appended": "the journal has entries that are still in the outbox",
    "drain.before_done": "the journal has all entries of a round, the next round will drop them from the outbox",
    "snapshot.before_append": "a unit is folded, its snapshot is not written",
    "snapshot.before_position": "the snapshots of a journal partition are written, its position is not",
    "rebuild.taken": "a unit that may have lost its state is owned, others of the round may not be yet",
    "rebuild.owned": "the units of a round that lost their state are owned",
    "rebuild.drained": "what the units of a round had is in the journal, which is read next",
    "rebuild.before_append": "the journal is folded, the entry that begins a new life is not written",
    "rebuild.read": "the new life is in the journal, and what came before it is folded; nothing is written to Redis",
    "rebuild.restored": "a slice of a unit is written to Redis",
    "rebuild.before_open": "a unit is written to Redis, but does not serve yet",
    "file.before_append": "pointers to deferred messages are taken from Redis, the wheel does not have them",
    "file.appended": "the wheel has pointers that are still in Redis",
    "bring.read": "deferred messages that are due soon are read, the window does not have them",
    "bring.done": "the window has messages that were deferred, nobody has been told",
    "send.appended": "Kafka has the messages of a group",
    "send.before_load": "as before, and the window is about to get them",
    "send.before_answer": "the window has had its chance, nobody has an answer",
    "purge.before_delete": "what a purge settles is settled, its records are in Kafka yet",
    "trim.before_delete": "it is decided on which records of a topic nobody needs, they are in Kafka yet",
    "keep.before_set": "it is decided on how long a topic is to keep its records, Kafka has not heard of it",
    "change.closed": "what is to be changed is closed: the plane serves a queue of that name no more, and "
    "nothing is written",
    "change.before_write": "a change is decided on, its control record is not written",
    "transaction.before_prepare": "a half message is about to be stored",
    "transaction.prepared": "a half message is stored, nobody has an answer",
    "transaction.before_decide": "a commit or rollback is decided on, its record is not written",
    "transaction.decided": "the record of a decision is written, nothing else is done",
    "transaction.before_copy": "a commit counts, its messages are about to be written to their queue",
    "transaction.copied": "the queue's topic has the messages of a commit, its window does not",
    "transaction.loaded": "the window has them, the transaction is not done",
    "transaction.before_done": "all is carried out, the record that says so is not written",
    "transaction.done": "the transaction is done, its half is still there",
    "transaction.before_check": "a check is due, its record is not written",
    "create.begun": "it is written that a queue is to be made, its topic is not there",
    "create.topic_made": "the topic of a new queue is there, its record is not",
    "create.record_written": "the record of a new queue is there, its window is not",
    "delete.record_written": "the record says that the queue is being deleted",
    "delete.topic_deleted": "the topic is deleted, the state in Redis is not",
}

# Those at which a worker is about to append, to delete a topic or records, or to set how long a
# topic keeps them, and may be late: another may have taken its place.
BEFORE_APPEND: Final = frozenset(
    {
        "change.before_write", "create.begun", "create.topic_made", "delete.record_written", "delete.topic_deleted",
        "snapshot.before_append", "snapshot.before_position", "drain.before_append", "rebuild.before_append",
        "move.held", "redrive.claimed", "file.before_append", "purge.before_delete", "trim.before_delete",
        "keep.before_set",
        "transaction.before_prepare", "transaction.before_decide", "transaction.before_copy", "transaction.before_done",
        "transaction.before_check",
    }
)  # fmt: skip

_SPEC = re.compile(
    r"(?P<name>[a-z_.]+)=(?P<action>kill|raise|stop|sleep:(?P<ms>\d{1,6}))"
    r"(?:\*(?P<times>\d{1,6}))?(?:@(?P<file>[^,*]+))?\Z"
)


class FailpointReached(RuntimeError):
    """An armed failpoint with action raise was reached. No EngineError: the task that it hits ends
    as if by a bug.
    """


class BadFailpoint(ValueError):
    """A specification of failpoints can't be read; the text says which."""


class _Armed:
    __slots__ = ("action", "file", "ms", "name", "seen", "times")

    def __init__(self, name: str, action: str, ms: int, times: int, file: str) -> None:
        self.name = name
        self.action = action
        self.ms = ms
        self.times = times
        self.file = file
        self.seen = 0

    def reach(self) -> None:
        self.seen += 1
        if self.times and self.seen != self.times:
            return
        stopped = f"{self.file}.stopped"
        if self.file:
            try:
                os.rename(self.file, stopped)  # noqa: PTH104  # one system call: only one worker can win
            except FileNotFoundError:
                return
            if self.action == "stop":
                # Who waits for the file may have removed it already.
                with contextlib.suppress(FileNotFoundError), open(stopped, "r+") as file:  # noqa: PTH123
                    file.write(str(os.getpid()))
            else:
                os.unlink(stopped)  # noqa: PTH108
        if self.action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.action == "raise":
            raise FailpointReached(self.name)
        elif self.action == "stop":
            while os.path.exists(stopped):  # noqa: PTH110
                time.sleep(0.01)
        else:
            time.sleep(self.ms / 1000)


_armed: dict[str, _Armed] = {}


def reached(name: str) -> None:
    """Fails here if a failpoint of that name is armed. Raises FailpointReached."""
    armed = _armed.get(name)
    if armed is not None:
        armed.reach()


def is_armed(prefix: str) -> bool:
    """Whether a failpoint is armed whose name begins so."""
    return any(name.startswith(prefix) for name in _armed)


def parse(text: str) -> list[_Armed]:
    """What a specification asks for. Raises BadFailpoint."""
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _SPEC.match(part)
        if match is None:
            raise BadFailpoint(f"{part!r} is not NAME=kill|raise|stop|sleep:MS[*N][@FILE]")
        if match["name"] not in POINTS:
            raise BadFailpoint(f"there is no failpoint {match['name']!r}; there are {', '.join(POINTS)}")
        if match["action"] == "stop" and not match["file"]:
            raise BadFailpoint(f"{part!r} needs @FILE: the worker stops until FILE.stopped is removed")
        numbers = int(match["ms"] or 0), int(match["times"] or 0)
        found.append(_Armed(match["name"], match["action"].partition(":")[0], *numbers, match["file"] or ""))
    return found


def arm(text: str) -> None:
    """Arms what `text` says, in place of what was armed under these names. Raises BadFailpoint."""
    _armed.update({armed.name: armed for armed in parse(text)})


def disarm() -> None:
    """Disarms all."""
    _armed.clear()
