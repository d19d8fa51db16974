"""What came of each dead letter that a task has come to, as control records keep it: written
together with the positions, so a letter has one outcome, whoever was killed.

The record of a task is written each second, so it has the last outcomes only. Those before them are
in pages, records that are written once, under names that nobody has used. A page counts when the
record of its task names it: who is killed between the two, or loses the task to another worker,
leaves a page that nobody reads, and `Tasks` deletes it with the pages of tasks that are forgotten.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from uuid import uuid4

import msgspec

from runtime.clock import now_ms
from schemas.records import OutcomesRecord, TaskRecord

# A task has so many at most, of the letters that it came to first: as many as ids may be chosen.
# All workers have each in memory, in some ten bytes.
MOST = 10_000
# So many are in a page; the record of a task has fewer.
PAGE = 500


class Row(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of one dead letter: a word of LetterOutcome; `copy` is the address of the copy,
    if it was moved and that is known.
    """

    partition: int
    offset: int
    outcome: str
    copy: str = ""


class Ledger(msgspec.Struct):
    """What a slice of a task knows beyond its record, by partition: `moved` letters with their
    copies, None = not read yet; `doubtful` ones, which were settled when it passed them and were
    not known to be its own; and the rows of those that it has passed.
    """

    moved: list[dict[int, str]] | None
    doubtful: list[set[int]]
    rows: list[Row]

    def learn(self, moved: list[dict[int, str]]) -> None:
        """The journal was read."""
        self.moved = moved


_rows = msgspec.msgpack.Decoder(list[Row])


def with_rows(task: TaskRecord, rows: Sequence[Row]) -> tuple[TaskRecord, dict[str, OutcomesRecord]]:
    """A task with some more outcomes, and by their keys the control records to write before its
    own; what is beyond MOST is dropped.
    """
    left = MOST - len(task.outcome_pages) * PAGE
    if not rows or left <= 0:
        return task, {}
    tail = [*_unpacked(task.outcomes), *rows][:left]
    names, pages = list(task.outcome_pages), dict[str, OutcomesRecord]()
    while len(tail) >= PAGE:
        names.append(uuid4().hex[:12])
        pages[f"outcomes/{task.id}/{names[-1]}"] = OutcomesRecord(task.id, now_ms(), _packed(tail[:PAGE]))
        tail = tail[PAGE:]
    return msgspec.structs.replace(task, outcome_pages=names, outcomes=_packed(tail)), pages


def rows_of(task: TaskRecord, pages: Mapping[str, OutcomesRecord]) -> list[Row]:
    """The outcomes of a task, in the order in which it came to them; `pages` as of Tables."""
    found = [pages.get(f"{task.id}/{name}") for name in task.outcome_pages]
    return [
        row
        for packed in (*(page.rows for page in found if page is not None), task.outcomes)
        for row in _unpacked(packed)
    ]


def _packed(rows: Sequence[Row]) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(rows), 1) if rows else b""


def _unpacked(packed: bytes) -> list[Row]:
    return _rows.decode(zlib.decompress(packed)) if packed else []
