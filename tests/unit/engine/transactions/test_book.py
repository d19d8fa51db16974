"""The book of transactions: the first decision counts, and Kafka's compaction changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.log import Record
from engine.transactions.book import Book, Transaction
from schemas.records import TransactionRecord
from schemas.wire import encode

NAMES = ("a", "b", "c")
Step = tuple[str, str, Any]


def record(offset: int, id: str, name: str, step: TransactionRecord | None) -> Record:
    key = f"{id}/{name}" if name else id
    return Record("lw.half", 0, offset, 1_000 + offset, key.encode(), None if step is None else encode(step), None)


def half(id: str) -> TransactionRecord:
    return TransactionRecord(id, "half", 1, "q", "0" * 12, "g", "p", 5, [b"m" * 10], 1)


def decision(id: str, step: str, by: str = "x") -> TransactionRecord:
    return TransactionRecord(
        id, step, 2, "q", "0" * 12, "g", "p", count=1, prepared_at_ms=1_000, decided_by=by, reason="answered"
    )


def a_book(asked: list[Transaction] | None = None, most_bytes: int = 1_000_000) -> Book:
    return Book(most_bytes, (asked if asked is not None else []).append)


def told(book: Book) -> dict[str, Any]:
    """What workers answer from."""
    shown = {}
    for one in book.of.values():
        places = one.places if any(b"/done" in key for key in one.keys) else []  # else they are about to be forgotten
        shown[one.id] = (one.status, one.decided_by, one.done, places, one.checks if one.is_open else 0)
    unfinished = {one.id for kept in book.unfinished.values() for one in kept.values()}
    return {"shown": shown, "open": book.open_count, "open_of": dict(book.open_of), "unfinished": unfinished}


def test_the_first_decision_counts_and_the_others_are_remembered_before_it() -> None:
    book = a_book()
    for offset, (name, step) in enumerate(
        [("", half("a")), ("1", decision("a", "rollback", "x")), ("2", decision("a", "commit", "y"))]
    ):
        book.apply(record(offset, "a", name, step))
    one = book.of["a"]
    assert (one.status, one.decided_by, one.decided_at_ms) == ("rolled_back", "x", 1_001)
    assert one.keys == [b"a/2", b"a/1"]
    assert (book.open_count, book.open_of) == (0, {})


def test_a_check_counts_once_by_its_number_and_only_while_it_is_open() -> None:
    asked: list[Transaction] = []
    book = a_book(asked)
    checks = [
        TransactionRecord("a", "check", at_ms, check=number) for at_ms, number in ((10, 1), (11, 1), (12, 2), (13, 1))
    ]
    steps = [("", half("a")), *[("check", check) for check in checks], ("d", decision("a", "commit"))]
    steps.append(("check", TransactionRecord("a", "check", 14, check=3)))
    for offset, (name, step) in enumerate(steps):
        book.apply(record(offset, "a", name, step))
    assert (len(asked), book.of["a"].checks, book.of["a"].checked_at_ms) == (2, 2, 1_003)


def test_halves_are_kept_up_to_a_bound_and_let_go_when_they_are_done() -> None:
    size = len(encode(half("a")))
    book = a_book(most_bytes=2 * size)
    for offset, name in enumerate(NAMES):
        book.apply(record(offset, name, "", half(name)))
    assert [book.of[name].value is not None for name in NAMES] == [True, True, False]
    book.apply(record(3, "a", "d", decision("a", "commit")))
    assert book.kept_bytes == 2 * size, "it is still to be sent"
    book.apply(record(4, "a", "done", TransactionRecord("a", "done", 1, partitions=[0], offsets=[7])))
    assert (book.kept_bytes, book.of["a"].places) == (size, [(0, 7)])
    book.apply(record(5, "b", "", None))
    assert (book.kept_bytes, book.open_count) == (0, 1)


def test_what_cannot_be_read_or_is_of_another_is_counted_and_passed() -> None:
    book = a_book()
    book.apply(Record("lw.half", 0, 0, 1, b"a", b"\x00\x00\x00\x00\x0bbroken", None))
    book.apply(Record("lw.half", 0, 1, 1, b"b", encode(half("a")), None))
    book.apply(Record("lw.half", 0, 2, 1, None, b"raw", None))
    assert (book.unreadable, book.of) == (3, {})


def test_a_decision_about_what_was_forgotten_is_shown_to_nobody() -> None:
    book = a_book()
    book.apply(record(0, "a", "d", decision("a", "commit")))
    assert (book.of, [one.id for one in book.orphans()]) == ({}, ["a"])
    book.apply(record(1, "a", "d", None))
    assert book.orphans() == []


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, str, TransactionRecord | None]]:
    """Records as workers write them: those of one transaction in their order, between those of
    others.
    """
    lives = [draw(a_life(name)) for name in NAMES]
    history = []
    while any(lives):
        life = draw(st.sampled_from([life for life in lives if life]))
        history.append(life.pop(0))
    return history


@st.composite
def a_life(draw: st.DrawFn, id: str) -> list[tuple[str, str, TransactionRecord | None]]:
    life: list[tuple[str, str, TransactionRecord | None]] = [(id, "", half(id))]
    checks = draw(st.integers(0, 3))
    life += [(id, "check", TransactionRecord(id, "check", n, check=n + 1)) for n in range(checks)]
    decided = draw(st.lists(st.sampled_from(("commit", "rollback")), max_size=3))
    if not decided:
        return life
    decisions = [(id, f"d{n}", decision(id, step, str(n))) for n, step in enumerate(decided)]
    attempts = [(id, "attempt", TransactionRecord(id, "attempt", 1))] * draw(st.integers(0, 2))
    done = [
        (id, f"done{n}", TransactionRecord(id, "done", 1, partitions=[0], offsets=[n]))
        for n in range(draw(st.integers(1, 2)))
    ]
    rest: list[tuple[str, str, TransactionRecord | None]] = [*attempts, *done]
    rest += [(id, "check", None)] * (checks > 0) + [(id, "attempt", None)] * bool(attempts) + [(id, "", None)]
    # Late decisions may lie anywhere after the first.
    for late in decisions[1:]:
        rest.insert(draw(st.integers(0, len(rest))), late)
    # Forgotten: the decision that counts goes last.
    forgets = [(id, name, None) for _, name, _ in (*decisions[1:], *reversed(done), decisions[0])]
    whole = [*life, decisions[0], *rest, *forgets]
    return whole[: draw(st.integers(len(life), len(whole)))]


def compacted(records: list[Record], gone: set[int]) -> list[Record]:
    """As Kafka leaves them: of those in `gone` what a later record of the same key replaces."""
    last = {one.key: one.offset for one in records}
    return [one for one in records if one.offset not in gone or one.offset == last[one.key]]


@given(histories(), st.sets(st.integers(0, 60)))
@settings(max_examples=400, deadline=None)
def test_a_worker_that_reads_what_compaction_left_knows_the_same(
    history: list[tuple[str, str, TransactionRecord | None]], gone: set[int]
) -> None:
    records = [record(offset, *one) for offset, one in enumerate(history)]
    book, other = a_book(), a_book()
    for one in records:
        book.apply(one)
    for one in compacted(records, gone):
        other.apply(one)
    assert told(other) == told(book)
    book.forget_shard(0)
    assert (book.of, book.orphans(), book.kept_bytes, book.open_count) == ({}, [], 0, 0)
