"""Chunks of the numbers of a queue."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.queues.overview.rings import NUMBERS, OF_TAG, SPANS, Chunk
from engine.rules.limits import HISTORY_SPANS
from state.shared.overview import Counted, Done

LONGS = st.integers(0, 2**53)
DONE = st.builds(Done, LONGS, LONGS, LONGS, LONGS, LONGS)
ROWS = st.builds(
    Counted, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, LONGS, st.dictionaries(st.integers(0, 3), DONE)
)


def _named(chunk: Chunk, numbers: list[int]) -> dict[str, int]:
    names = [*NUMBERS, *(f"{tag}:{name}" for tag in chunk.tags for name in OF_TAG)]
    return dict(zip(names, numbers, strict=True))


@given(st.lists(ROWS, min_size=1, max_size=8), st.booleans())
def test_a_chunk_has_what_was_noted_whatever_tags_come_and_go(rows: list[Counted], begun: bool) -> None:
    tags = list(rows[0].done)
    chunk = Chunk(tags, Chunk(tags).numbers(rows[0])) if begun else Chunk()
    expected: list[tuple[int, dict[str, int]]] = []
    known = dict(rows[0].done) if begun else {}
    for place, row in enumerate(rows):
        known.update(row.done)
        numbers = {name: getattr(row, name) for name in NUMBERS}
        for tag, done in known.items():
            numbers.update({f"{tag}:{name}": getattr(done, name) for name in OF_TAG})
        if chunk.note(place, row):
            expected.append((place, numbers))
        else:
            assert _named(chunk, chunk.last or []) == numbers
    again = Chunk.unpack(chunk.pack())
    for one in (chunk, again):
        zeros = {f"{tag}:{name}": 0 for tag in one.tags for name in OF_TAG}
        assert [(place, _named(one, numbers)) for place, numbers in one.points()] == [
            (place, zeros | numbers) for place, numbers in expected
        ]
    assert (again.pack(), again.tags, again.before, again.last) == (chunk.pack(), chunk.tags, chunk.before, chunk.last)


def test_what_is_as_before_is_no_point_and_a_busy_queue_takes_20_bytes() -> None:
    row = Counted(9, 0, 3, 0, 0, 1_795_313_164_012, 0, 70, {0: Done(60, 1, 50)})
    chunk = Chunk([0], Chunk([0]).numbers(row))
    empty = len(chunk.pack())
    assert not chunk.note(0, row)
    for n in range(1, 60):
        busy = Counted(
            9 + n % 7, 0, 3 + n % 5, 0, 0, 1_795_313_164_012 + 9_000 * n, n, 70 + 3_000 * n,
            {0: Done(60 + 3_000 * n, 1 + n, 50 + 3_000 * n)},
        )  # fmt: skip
        assert chunk.note(n, busy)
    assert (len(chunk.pack()) - empty) / 59 <= 20


def test_the_spans_are_an_hour_and_a_day() -> None:
    found = {name: (span.step_ms * span.steps, span.steps % span.length, span.kept) for name, span in SPANS.items()}
    assert tuple(found) == HISTORY_SPANS
    assert found == {"hour": (3_600_000, 0, 7), "day": (86_400_000, 0, 7)}
