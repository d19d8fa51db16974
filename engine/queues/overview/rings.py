"""What the numbers of a queue were at equal distances of time, packed. Pure data.

A chunk has the points of some time in which something changed, each as differences to the one
before. All are zigzag longs as Avro has them, so a point of a queue with one tag has 14 bytes while
its numbers change by less than 64, and some 20 in a busy queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from schemas.pack import long
from state.shared.overview import Counted, Done

NUMBERS: Final = ("ready", "delayed", "leased", "parked", "stored", "oldest_at_ms", "sent")
OF_TAG: Final = Done.__struct_fields__


class Span(Struct, frozen=True):
    """How far back it is looked, in steps; `length` points are a chunk."""

    name: str
    step_ms: int
    steps: int
    length: int

    @property
    def kept(self) -> int:
        """How many chunks there may be that have a step within the span."""
        return self.steps // self.length + 1


SPANS: Final = MappingProxyType(
    {span.name: span for span in (Span("hour", 10_000, 360, 60), Span("day", 300_000, 288, 48))}
)


class Chunk:
    """Points of one queue, in the order of their places. `before`: its numbers until the first,
    None = they are not known. `last`: those after the last one.
    """

    __slots__ = ("_packed", "before", "last", "tags")

    def __init__(self, tags: Sequence[int] = (), before: list[int] | None = None) -> None:
        self.tags = list(tags)
        self.before = before
        self.last = before
        self._packed = bytearray()

    @classmethod
    def unpack(cls, data: bytes) -> Chunk:
        """Returns what `pack` has packed."""
        found = _longs(data)
        tags = found[1 : 1 + found[0]]
        at = 1 + len(tags)
        width = len(NUMBERS) + len(OF_TAG) * len(tags)
        before = found[at + 1 : at + 1 + width] if found[at] else None
        chunk = cls(tags, before)
        for begin in range(at + 1 + (width if before else 0), len(found), 1 + width):
            last = chunk.last or [0] * width
            chunk.add(
                found[begin], [was + by for was, by in zip(last, found[begin + 1 : begin + 1 + width], strict=True)]
            )
        return chunk

    @property
    def is_empty(self) -> bool:
        """Whether it has no point."""
        return not self._packed

    def after(self) -> Chunk:
        """Returns one of a later time, without a point yet."""
        return Chunk(self.tags, self.last)

    def pack(self) -> bytes:
        """Returns it as it is kept."""
        head = [len(self.tags), *self.tags, int(self.before is not None), *(self.before or ())]
        return b"".join(map(long, head)) + self._packed

    def note(self, place: int, row: Counted) -> bool:
        """The queue had these numbers there; returns whether that is something new."""
        if new := [tag for tag in row.done if tag not in self.tags]:
            self._widen(new)
        numbers = self.numbers(row)
        if numbers == self.last:
            return False
        self.add(place, numbers)
        return True

    def numbers(self, row: Counted) -> list[int]:
        """Returns the numbers of a row in the order of the tags here; those of a tag that is gone
        stay.
        """
        found = [getattr(row, name) for name in NUMBERS]
        for place, tag in enumerate(self.tags):
            done = row.done.get(tag)
            at = len(NUMBERS) + place * len(OF_TAG)
            found += (
                [getattr(done, name) for name in OF_TAG]
                if done
                else (self.last or [0] * (at + len(OF_TAG)))[at : at + len(OF_TAG)]
            )
        return found

    def add(self, place: int, numbers: list[int]) -> None:
        """Adds a point."""
        last = self.last or [0] * len(numbers)
        self._packed += b"".join(map(long, (place, *(now - was for now, was in zip(numbers, last, strict=True)))))
        self.last = numbers

    def points(self) -> Iterator[tuple[int, list[int]]]:
        """The points: place, numbers."""
        found, last = _longs(self._packed), self.before
        width = len(NUMBERS) + len(OF_TAG) * len(self.tags)
        for at in range(0, len(found), 1 + width):
            last = [was + by for was, by in zip(last or [0] * width, found[at + 1 : at + 1 + width], strict=True)]
            yield found[at], last

    def _widen(self, tags: Sequence[int]) -> None:
        """Of new tags nothing was done before."""
        points, more = [*self.points()], [0] * (len(OF_TAG) * len(tags))
        self.tags += tags
        self.before = self.last = None if self.before is None else self.before + more
        self._packed.clear()
        for place, numbers in points:
            self.add(place, numbers + more)


def _longs(data: bytes | bytearray) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
        else:
            found.append((value >> 1) ^ -(value & 1))
            value = shift = 0
    return found
