"""Wrong secrets: who has to wait, and who has not."""

from __future__ import annotations

import logging

import pytest

from engine.errors import TooManyAttempts
from engine.queues.callers.access import ADDRESS, BUCKETS, KEY, KEY_AT_ADDRESS, KNOWN_S, LOG_S, Guesses
from runtime.counters import Counters

BURST, LEAK = KEY_AT_ADDRESS


class Door:
    """Guesses with a clock that a test moves; the keys `k...` are there."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.counters = Counters()
        self.waits: set[int] = set()
        self.guesses = Guesses(self.counters, lambda: self.now)

    def asks(self, at: str, key: str, *, right: bool) -> bool:
        """Whether the secret is looked at."""
        try:
            self.guesses.check(at, key, lambda name: name.startswith("k"))
        except TooManyAttempts as error:
            self.waits.add(error.retry_after_s)
            return False
        if right:
            self.guesses.fitted(at, key)
        else:
            self.guesses.failed(at, key, exists=key.startswith("k"))
        return True

    def looked_at(self, number: int, at: str, key: str) -> int:
        """How many of so many wrong ones at once are looked at."""
        return sum(self.asks(at, key, right=False) for _ in range(number))


def test_a_key_at_an_address_is_guessed_at_so_often_and_then_now_and_then() -> None:
    door = Door()
    assert door.looked_at(1000, "a", "k") == BURST
    assert not door.asks("a", "k", right=True)
    door.now += 10.0
    assert door.looked_at(1000, "a", "k") == 10 * LEAK
    assert door.waits == {2}
    assert door.counters.get("wrong_secrets_total") == BURST + 10 * LEAK
    assert door.counters.get("attempts_refused_total") == 2000 + 1 - BURST - 10 * LEAK


def test_the_time_to_wait_is_told() -> None:
    door = Door()
    door.looked_at(BURST, "a", "k")
    with pytest.raises(TooManyAttempts) as caught:
        door.guesses.check("a", "k", bool)
    assert caught.value.retry_after_s == 2
    door.now += 2.0
    door.guesses.check("a", "k", bool)


def test_another_address_and_another_key_are_not_kept_out() -> None:
    door = Door()
    door.looked_at(1000, "a", "k")
    assert door.asks("b", "k", right=True)
    assert door.asks("a", "k2", right=True)


def test_many_keys_of_one_address_run_into_its_bound_and_a_right_one_does_not() -> None:
    door = Door()
    assert sum(door.looked_at(2, "a", f"k{n}") for n in range(100)) < 100 + ADDRESS[0]
    before = door.counters.get("wrong_secrets_total")
    assert sum(door.looked_at(1, "a", f"nobody{n}") for n in range(100)) == 0
    assert not door.asks("a", "k5", right=True)  # guessed at from here
    assert door.asks("a", "k-mine", right=True)
    assert door.counters.get("wrong_secrets_total") == before


def test_one_key_from_many_addresses_runs_into_its_bound_and_who_is_known_does_not() -> None:
    door = Door()
    assert door.asks("home", "k", right=True)
    assert sum(door.looked_at(1, f"a{n}", "k") for n in range(1000)) == KEY[0]
    assert not door.asks("new", "k", right=True)
    assert door.asks("home", "k", right=True)
    door.now += KNOWN_S + 1
    door.asks("other", "k", right=True)
    assert ("home", "k") in door.guesses._known_before
    door.now += KNOWN_S + 1
    door.asks("another", "k", right=True)
    assert ("home", "k") not in door.guesses._known_before | door.guesses._known


def test_who_is_known_and_often_wrong_waits_no_longer_than_others() -> None:
    door = Door()
    door.asks("a", "k", right=True)
    assert door.looked_at(1000, "a", "k") == 1000
    assert door.guesses._pairs.wait_s(("a", "k")) == 1 / LEAK


def test_what_is_remembered_is_bounded() -> None:
    door = Door()
    for n in range(3 * BUCKETS):
        door.guesses.failed(f"a{n}", f"k{n}", exists=True)
    for buckets in (door.guesses._pairs, door.guesses._addresses, door.guesses._keys):
        assert len(buckets._levels) == BUCKETS


def test_a_line_in_the_log_now_and_then_tells_how_many_there_were(caplog: pytest.LogCaptureFixture) -> None:
    door = Door()
    with caplog.at_level(logging.WARNING):
        door.looked_at(1000, "a", "k")
        door.now += LOG_S
        door.looked_at(1000, "a", "k")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert lines[0].startswith("action=refuse_attempts at=a key=k more=0 ")
    assert f"more={1000 - BURST - 1} " in lines[1]


def test_when_nobody_was_wrong_lately_nothing_is_looked_up() -> None:
    door = Door()
    door.looked_at(1, "a", "k")
    door.now += 1000.0
    assert door.asks("a", "k", right=True)
    assert not door.guesses._wary_until
