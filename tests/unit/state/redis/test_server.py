"""What is read from INFO."""

from __future__ import annotations

import pytest

from state.redis.server import read_server

NONE = "0" * 40


def info(**facts: object) -> bytes:
    """A reply to INFO, of a master that never had a replica but for what is given."""
    rows = {
        "run_id": "r",
        "role": "master",
        "connected_slaves": 0,
        "repl_backlog_active": 0,
        "master_replid2": NONE,
        **facts,
    }
    return "\r\n".join(["# Section", *(f"{name}:{value}" for name, value in rows.items())]).encode()


def test_a_server_without_replicas_is_single() -> None:
    server = read_server(info(maxmemory_policy="noeviction", evicted_keys=0))
    assert (server.run_id, server.promotion, server.single, server.evicts, server.is_replica) == (
        "r",
        "",
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"connected_slaves": 1},
        {"repl_backlog_active": 1},
        {"master_replid2": "f" * 40, "second_repl_offset": 7},
        {"redis_mode": "cluster"},
    ],
)
def test_one_of_which_another_may_have_a_copy_is_not(facts: dict[str, object]) -> None:
    assert not read_server(info(**facts)).single


def test_a_life_ends_with_a_promotion_and_with_an_eviction() -> None:
    lives = [info(), info(evicted_keys=1), info(master_replid2="f" * 40, second_repl_offset=7), info(run_id="other")]
    lives.append(info(master_replid2="f" * 40, second_repl_offset=8))
    assert len({read_server(one).life for one in lives}) == len(lives)
    # A first replica that comes gives the master another replication id: it has the same as before.
    assert read_server(info(connected_slaves=1)).life == read_server(info()).life
