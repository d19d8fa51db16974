"""How long a client may read nothing of what is written to it."""

from __future__ import annotations

from facade.http.bounds.unread import Unread


def test_a_client_that_reads_nothing_has_so_long_and_each_byte_that_it_reads_begins_it_anew() -> None:
    unread = Unread(75)
    assert unread.left_s(1_000, 100) == 75
    assert unread.left_s(1_000, 160) == 15
    assert unread.left_s(999, 170) == 75
    assert unread.left_s(999, 245) == 0


def test_one_to_whom_nothing_is_written_owes_nothing() -> None:
    unread = Unread(75)
    for now in (0, 1_000, 2_000):
        assert unread.left_s(0, now) == 75
    assert unread.left_s(5, 2_050) == 75
    assert unread.left_s(0, 2_100) == 75
