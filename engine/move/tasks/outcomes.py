"""What came of each dead letter that a task has come to, as its record keeps it: written together
with the positions, so a letter has one outcome, whoever was killed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

# A record has so many at most, of the letters that its task came to first: as many as ids may be
# chosen. All workers have each record in memory, with some ten bytes for an outcome.
MOST = 10_000


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


def with_rows(packed: bytes, rows: Sequence[Row]) -> bytes:
    """What a record has, and some more; those beyond MOST are dropped."""
    if not rows:
        return packed
    before = rows_of(packed)
    if len(before) >= MOST:
        return packed
    return zlib.compress(msgspec.msgpack.encode([*before, *rows][:MOST]), 1)


def rows_of(packed: bytes) -> list[Row]:
    """The outcomes of a record, in the order in which its task came to them."""
    return _rows.decode(zlib.decompress(packed)) if packed else []
