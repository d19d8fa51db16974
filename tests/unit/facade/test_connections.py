"""Which connections end for a new one."""

from __future__ import annotations

import resource

import pytest

from facade.http.bounds import connections as bounds
from facade.http.bounds.connections import AT_ONCE, IDLE_S, OTHER_DESCRIPTORS, Connections, most_connections


class One:
    """A connection."""

    def __init__(self, peer: str, idle_since: float | None) -> None:
        self.peer = peer
        self.idle_since = idle_since

    def close(self) -> None:
        self.idle_since = None
        closed.append(self)


closed: list[One] = []


@pytest.fixture(autouse=True)
def none_closed() -> None:
    closed.clear()


def test_there_is_room_up_to_the_bound() -> None:
    door = Connections(3)
    assert door.enter([One("a", 0.0)] * 3, 10.0)
    assert closed == []


def test_of_the_peer_with_the_most_the_one_that_is_idle_for_longest_ends() -> None:
    few, many = [One("b", 0.0)], [One("a", 5.0), One("a", 1.0), One("a", None), One("a", 2.0)]
    door = Connections(5)
    new = One("c", 10.0)
    assert door.enter([*few, *many, new], 10.0)
    assert closed == [many[1]]
    assert door.enter([*few, *many, new], 10.0)
    assert closed == [many[1], many[3]]
    assert (door.closed, door.refused) == (2, 0)


def test_who_is_served_or_was_a_moment_ago_stays() -> None:
    door = Connections(2)
    busy = [One("a", None), One("a", 10.0 - IDLE_S / 2), One("b", 10.0)]
    assert not door.enter(busy, 10.0)
    assert (closed, door.refused) == ([], 1)


def test_one_look_serves_many_and_who_is_in_use_by_then_stays() -> None:
    door = Connections(1)
    idle = [One("a", float(n)) for n in range(2 * AT_ONCE)]
    assert door.enter(idle, 1000.0)
    idle[1].idle_since = None
    assert door.enter(idle, 1000.0)
    assert closed == [idle[0], idle[2]]
    gone = idle.pop(3)
    assert door.enter(idle, 1000.0)
    assert gone not in closed


@pytest.mark.parametrize(
    ("limit", "wanted", "most"),
    [
        (1_024, 20_000, 1_024 - OTHER_DESCRIPTORS),
        (20_000, 20_000, 18_000),
        (100_000, 20_000, 20_000),
        (100, 20_000, 16),
        (resource.RLIM_INFINITY, 20_000, 20_000),
    ],
)
def test_descriptors_are_left_for_others(limit: int, wanted: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert most_connections(wanted) == most


@pytest.mark.parametrize(("hard", "raised"), [(4_096, 4_096), (resource.RLIM_INFINITY, bounds.MANY_DESCRIPTORS)])
def test_the_limit_of_descriptors_is_raised(hard: int, raised: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1_024, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: given.append(limits))
    assert bounds.raise_descriptors() == raised
    assert given == [(raised, hard)]


def test_a_limit_that_may_not_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(which: int, limits: tuple[int, int]) -> None:
        raise ValueError("no")

    monkeypatch.setattr(resource, "getrlimit", lambda which: (1_024, 4_096))
    monkeypatch.setattr(resource, "setrlimit", refuses)
    assert bounds.raise_descriptors() == 1_024
