"""Which control records count: whatever the interleaving of writers, every reader comes to the
same, also after compaction.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.candidates import REMEMBER_MS, Precedence

DAY = 86_400_000


def test_a_record_counts_when_its_writer_had_seen_the_last_one_that_counts() -> None:
    order = Precedence()
    assert order.offer("q", 0, 0, deletes=False, at_ms=0)
    assert order.offer("q", 1, 1, deletes=False, at_ms=0)
    assert not order.offer("q", 2, 1, deletes=True, at_ms=0), "its writer had seen offset 0 only"
    assert order.was_refused(2) and not order.was_refused(1)
    assert order.overwritten == {"q": 1}
    assert order.offer("q", 3, 3, deletes=False, at_ms=0), "who has seen the refused one knows better"
    assert order.overwritten == {}


def test_a_refused_record_of_one_key_is_nothing_to_another() -> None:
    order = Precedence()
    assert order.offer("a", 5, 5, deletes=False, at_ms=0)
    assert order.offer("b", 6, 0, deletes=False, at_ms=0)


def test_a_record_of_before_counts_always() -> None:
    order = Precedence()
    assert order.offer("q", 7, 7, deletes=False, at_ms=0)
    assert order.offer("q", 8, None, deletes=False, at_ms=0)


def test_a_deletion_is_remembered_for_a_day() -> None:
    order = Precedence()
    assert order.offer("q", 0, 0, deletes=False, at_ms=0)
    assert order.offer("q", 1, 1, deletes=True, at_ms=0)
    assert order.offer("r", 2, 2, deletes=True, at_ms=REMEMBER_MS)
    assert not order.offer("q", 3, 1, deletes=False, at_ms=REMEMBER_MS)
    order.offer("r", 4, 4, deletes=True, at_ms=REMEMBER_MS + 1)
    assert order.offer("q", 5, 1, deletes=False, at_ms=REMEMBER_MS + 1), "forgotten, as by Kafka"


Write = tuple[str, int]  # key, how many records of the log its writer had not seen


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4)), max_size=30), st.integers(0, 30))
def test_a_reader_of_the_compacted_log_agrees_once_what_counts_was_written_again(writes: list[Write], old: int) -> None:
    """The first `old` records are old enough for compaction: no change takes so long, so all later
    writers had seen them.
    """
    log: list[tuple[int, str, int, str]] = []  # offset, key, seen, content
    first = Precedence()
    counts: dict[str, str] = {}

    def append(key: str, seen: int, content: str) -> None:
        offset = len(log)
        log.append((offset, key, max(seen, old if offset >= old else 0), content))
        if first.offer(key, offset, log[-1][2], deletes=False, at_ms=0):
            counts[key] = content

    for key, unseen in writes:
        append(key, max(0, len(log) - unseen), f"{key}{len(log)}")
    for key in list(first.overwritten):
        append(key, len(log), counts[key])
    assert first.overwritten == {}
    last_old = {key: offset for offset, key, _, _ in log[:old]}
    left = [row for row in log if row[0] >= old or last_old[row[1]] == row[0]]
    second = Precedence()
    rows = (row for row in left if second.offer(row[1], row[0], row[2], deletes=False, at_ms=0))
    assert {key: content for _, key, _, content in rows} == counts
