"""Room for requests: who gets it, who gives way, and that nothing stays counted."""

from __future__ import annotations

import pytest

from engine.errors import Overloaded
from facade.http.bounds.shares import (
    COMING,
    COMING_PART,
    HELD_BYTES,
    MIB,
    SMALL_BYTES,
    SMALL_PART,
    STALE_S,
    Share,
    Shares,
)


class Room:
    """Shares with a clock that a test moves; `gone` names the requests that gave way."""

    def __init__(self) -> None:
        self.now = 100.0
        self.shares = Shares(clock=lambda: self.now)
        self.gone: list[str] = []

    def coming(self, name: str, size: int, holder: str = "a") -> Share:
        share = self.shares.begin(holder, lambda: self.gone.append(name))
        self.shares.grow(share, size)
        return share

    def counts(self) -> tuple[int, int, int, int]:
        shares = self.shares
        return shares.held, shares.large, shares.small_line.bytes, shares.coming


def test_what_is_counted_is_given_back() -> None:
    room = Room()
    small, large, gone = room.coming("small", 10), room.coming("large", SMALL_BYTES), room.coming("gone", MIB)
    room.shares.grow(large, 1)
    room.shares.take(20)
    room.shares.take(2 * MIB)
    assert room.counts() == (10 + SMALL_BYTES + 1 + MIB + 20 + 2 * MIB, SMALL_BYTES + 1 + 3 * MIB, 10, 3)
    room.shares.whole(small)
    room.shares.whole(large)
    room.shares.end(gone)
    room.shares.end(gone)
    for size in (10, SMALL_BYTES + 1, 20, 2 * MIB):
        room.shares.release(size)
    assert room.counts() == (0, 0, 0, 0)
    assert room.gone == []


def test_large_bodies_leave_room_for_small_ones() -> None:
    """44 bodies of 16 MiB less one byte, as somebody sent them: a small send has its room."""
    room = Room()
    refused = 0
    for n in range(44):
        try:
            room.coming(str(n), 16 * MIB - 1)
        except Overloaded:
            refused += 1
    assert (refused, room.gone) == (38, [])
    assert room.shares.large <= HELD_BYTES - SMALL_PART
    for _ in range(SMALL_PART // SMALL_BYTES):
        room.shares.take(SMALL_BYTES)
    assert room.shares.is_full
    # More of what comes whole has what does not give way.
    room.shares.take(SMALL_BYTES)
    assert room.gone == ["0"]


def test_what_is_whole_gives_way_to_nobody() -> None:
    room = Room()
    for _ in range(HELD_BYTES // SMALL_BYTES):
        room.shares.take(SMALL_BYTES)
    room.now += 10 * STALE_S
    with pytest.raises(Overloaded):
        room.shares.take(1)
    with pytest.raises(Overloaded):
        room.coming("late", 1)
    assert room.counts() == (HELD_BYTES, 0, 0, 0)


def test_small_bodies_that_come_slowly_leave_room_for_those_that_come_whole() -> None:
    room = Room()
    for n in range(10_000):
        room.coming(str(n), SMALL_BYTES)
    assert room.shares.small_line.bytes <= COMING_PART
    assert room.gone == [str(n) for n in range(10_000 - COMING_PART // SMALL_BYTES)]
    room.shares.take(SMALL_BYTES)
    assert not room.shares.is_full


def test_what_has_been_coming_for_long_gives_way_to_anybody() -> None:
    room = Room()
    for n in range(6):
        room.now += 0.1
        room.coming(str(n), 16 * MIB)
    with pytest.raises(Overloaded):
        room.coming("too soon", MIB)
    room.now += STALE_S - 0.35
    fresh = room.coming("fresh", 16 * MIB)
    assert room.gone == ["0"]
    assert fresh.is_coming


def test_whoever_has_the_most_gives_way_to_those_who_have_less() -> None:
    room = Room()
    for n in range(5):
        room.coming(f"a{n}", 16 * MIB, "a")
    room.coming("b0", 15 * MIB, "b")
    for n in range(3):
        room.coming(f"c{n}", 8 * MIB, "c")
    assert room.gone == ["a0", "a1"]
    # Until they have as much as the others.
    room.coming("c3", 8 * MIB, "c")
    with pytest.raises(Overloaded):
        room.coming("c4", 32 * MIB, "c")
    assert set(room.gone) == {"a0", "a1"}


def test_requests_that_are_not_whole_are_bounded_by_their_number() -> None:
    """What comes in two pieces is refused only if COMING others begin between them."""
    room = Room()
    other = room.coming("b", 0, "b")
    first = [room.coming(f"a{n}", 0, "a") for n in range(COMING - 1)]
    assert room.gone == []
    room.coming("one more", 0, "a")
    assert room.gone == ["a0"] and not first[0].is_coming
    room.coming("another", 0, "b")
    assert room.gone == ["a0", "a1"] and other.is_coming
    assert room.shares.coming == COMING


def test_of_two_who_have_as_much_the_first_gives_way() -> None:
    room = Room()
    for n in range(3):
        room.coming(f"a{n}", 16 * MIB, "a")
        room.coming(f"b{n}", 16 * MIB, "b")
    for holder in "ab":
        with pytest.raises(Overloaded):
            room.coming("more", 16 * MIB, holder)
    assert room.gone == []
    equal = Room()
    for n in range(7):
        equal.coming(f"a{n}", 8 * MIB, "a")
    for size in (8, 8, 8, 8, 4, 4):
        equal.coming("b", size * MIB, "b")
    with pytest.raises(Overloaded):
        equal.coming("b", 16 * MIB, "b")
    assert equal.gone == []


def test_a_request_that_gave_way_has_nothing_more() -> None:
    room = Room()
    shares = [room.coming(f"a{n}", 16 * MIB, "a") for n in range(6)]
    room.coming("b", MIB, "b")
    assert room.gone == ["a0"]
    with pytest.raises(Overloaded):
        room.shares.grow(shares[0], 1)
    with pytest.raises(Overloaded):
        room.shares.whole(shares[0])
    room.shares.end(shares[0])
    assert room.shares.held == 81 * MIB
    assert room.shares.given_way == 1 and room.shares.refused == 2


def test_a_refused_request_leaves_nothing_counted() -> None:
    room = Room()
    room.coming("a", 90 * MIB)
    before = room.counts()
    with pytest.raises(Overloaded):
        room.coming("a", 16 * MIB)
    assert room.counts() == before
    with pytest.raises(Overloaded):
        room.shares.take(97 * MIB)
    assert room.gone == ["a"] and room.counts() == (0, 0, 0, 0)
    assert before[0] == 90 * MIB
