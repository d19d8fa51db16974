"""What a connection has of requests that are not whole."""

from __future__ import annotations

import pytest

from facade.http.bounds.shares import Shares
from facade.http.bounds.unfinished import HEAD_BYTES, TooMuch, Unfinished


def an_unfinished(shares: Shares) -> Unfinished:
    return Unfinished(shares, lambda: "a", lambda: None)


def test_a_head_in_pieces_is_counted_until_it_is_whole() -> None:
    shares = Shares()
    unfinished = an_unfinished(shares)
    unfinished.head_begins()
    assert unfinished.came(100, 0.0, in_head=True, first=True)
    assert not unfinished.came(50, 1.0, in_head=True, first=False)
    assert (shares.held, shares.coming) == (150, 1)
    unfinished.head_ends()
    assert (shares.held, shares.coming) == (0, 0)


def test_a_head_has_a_bound_and_so_has_what_comes_beside_a_body() -> None:
    unfinished = an_unfinished(Shares())
    unfinished.head_begins()
    unfinished.came(10_000, 0.0, in_head=True, first=True)
    unfinished.came(HEAD_BYTES, 0.0, in_head=True, first=False)
    with pytest.raises(TooMuch, match="head"):
        unfinished.came(1, 0.0, in_head=True, first=False)
    unfinished.head_ends()
    unfinished.came(10_000, 0.0, in_head=False, first=False)
    unfinished.body_came()
    unfinished.came(10_000, 0.0, in_head=False, first=False)
    unfinished.came(HEAD_BYTES, 0.0, in_head=False, first=False)
    with pytest.raises(TooMuch, match="beside"):
        unfinished.came(1, 0.0, in_head=False, first=False)


def test_what_waits_for_its_turn_is_counted_until_all_of_it_has_it() -> None:
    shares = Shares()
    unfinished = an_unfinished(shares)
    unfinished.wait()
    unfinished.keep(1000)
    unfinished.head_ends()  # of another one that waits
    unfinished.keep(10)
    assert shares.held == 1010
    unfinished.end()
    assert (shares.held, shares.coming) == (0, 0)
