"""Levels and the numbers that clients of either age have for them."""

from __future__ import annotations

import pytest

from facade.dialects.emq.queues.call import EmqError
from facade.dialects.emq.queues.permissions import level_of, number_of
from schemas.vocabulary import Level

OLD = [
    Level.NONE, Level.SEND, Level.RECEIVE, Level.SEND_RECEIVE, Level.HANDLE, Level.SEND_HANDLE, Level.GET_INFO,
    Level.USE, Level.ADMIN,
]  # fmt: skip
NEW = [*OLD, Level.PEEK, Level.DELETE_PEEK, Level.FULL_CONTROL]


def test_new_clients_number_all_levels() -> None:
    assert [level_of(number, old=False) for number in range(12)] == NEW
    assert set(Level) == {*NEW, Level.UNMASK}
    assert (number_of(Level.UNMASK, old=False), number_of(Level.UNMASK, old=True)) == (9, 0)
    assert [number_of(level, old=False) for level in NEW] == list(range(12))


def test_full_control_is_9_to_old_clients_and_no_other_level_is() -> None:
    assert [level_of(number, old=True) for number in range(10)] == [*OLD, Level.FULL_CONTROL]
    assert [number_of(level, old=True) for level in [*OLD, Level.FULL_CONTROL]] == list(range(10))
    assert number_of(Level.PEEK, old=True) == 0
    assert [level for level in Level if number_of(level, old=True) == 9] == [Level.FULL_CONTROL]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("number", [-1, 12])
def test_other_numbers_are_none(number: int, old: bool) -> None:
    with pytest.raises(EmqError, match="permission must be one of 0 to 11"):
        level_of(number, old=old)
