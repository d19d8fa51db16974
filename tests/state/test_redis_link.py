"""The plane's own connection to Redis (native/src/plane/redis) with a real one: what a caller hears
when it is killed, stopped, emptied of scripts, or not the one in use any more.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterator

import pytest
import redis

from facade.programs.stack.processes.ports import free_port
from tests.state.redis_link import ADD, ECHO, FAIL, FILL, GET, Link, OwnRedis, Refused, linked
from tests.stopping import stand_still

pytestmark = pytest.mark.usefixtures("library")


@pytest.fixture
def key() -> str:
    return f"k{secrets.token_hex(4)}"


@pytest.fixture
def link(own_redis: OwnRedis) -> Iterator[Link]:
    with linked(own_redis.url) as made:
        yield made


def wait_loaded(own_redis: OwnRedis) -> None:
    """Returns when the server has read its file again."""
    while True:
        with contextlib.suppress(redis.ConnectionError):  # it is loading, or not there
            own_redis.client.get("x")
            return
        time.sleep(0.05)


def test_nothing_is_called_before_the_server_was_judged(own_redis: OwnRedis, link: Link, key: str) -> None:
    assert not link.begin(ADD, 1, keys=(key,))
    _, number, info = link.wait("greeted")
    assert b"run_id:" in info and not link.may_call()
    assert not link.begin(ADD, 1, keys=(key,))
    link.ask("admit", number + 1, 60_000)
    assert not link.may_call(), "it is another link that was admitted"
    link.ask("admit", number, 60_000)
    assert link.may_call() and link.call(ADD, 5, keys=(key,)) == 5
    assert own_redis.client.get(key) == b"5"


@pytest.mark.parametrize("way", ["url", "unix"])
def test_words_of_all_kinds_arrive_as_they_are(own_redis: OwnRedis, way: str) -> None:
    with linked(getattr(own_redis, way)) as link:
        link.use()
        for word in (b"", b"\r\n$-1\r\n", bytes(range(256)), b"x" * 300_000):
            assert link.call(ECHO, word, keys=("a\r\nb",)) == [b"a\r\nb", word]
        assert link.call(ECHO, -(2**63)) == [b"k", b"-9223372036854775808"]


def test_the_database_and_the_user_of_the_url_count(own_redis: OwnRedis, key: str) -> None:
    own_redis.client.execute_command("ACL", "SETUSER", "plane", "on", ">s3cret/+", "~*", "+@all")
    at = own_redis.url.removeprefix("redis://").removesuffix("/0")
    with linked(f"redis://plane:s3cret%2F%2B@{at}/3") as link:
        link.use()
        assert link.call(ADD, 2, keys=(key,)) == 2
    assert own_redis.client.get(key) is None
    with linked(f"redis://plane:wrong@{at}/3") as link:
        _, _, reason = link.wait("lost")
        assert b"AUTH: WRONGPASS" in reason and b"wrong@" not in reason
        for _ in range(10):
            link.turn(50)
        assert link.news == [], "one reason is told once"


def test_a_hundred_thousand_calls_in_one_turn(own_redis: OwnRedis, link: Link, key: str) -> None:
    link.use()
    assert link.begin(ADD, 1, keys=(key,), count=100_000) == 100_000
    began = time.monotonic()
    found = link.answers(100_000)
    assert [found[token] for token in range(1, 100_001)] == [("ok", number) for number in range(1, 100_001)]
    print(f"100,000 calls in {time.monotonic() - began:.2f} s")


def test_no_more_bytes_are_under_way_than_the_limit(own_redis: OwnRedis, key: str) -> None:
    with linked(own_redis.url, most=1_000_000) as link:
        link.use()
        begun = link.begin(ECHO, b"x" * 10_000, count=1000)
        assert 50 < begun < 110
        assert {kind for kind, _ in link.answers(begun).values()} == {"ok"}
        assert link.begin(ECHO, b"x") == 1


def test_replies_of_64_mb_arrive_whole_and_in_order(own_redis: OwnRedis, key: str) -> None:
    text = secrets.token_bytes(1 << 20) * 64
    own_redis.client.set(key, text)
    with linked(own_redis.url, reply_ms=60_000) as link:  # a busy machine needs long to make them
        link.use()
        assert link.begin(GET, keys=(key,), token=0, count=3) == 3
        assert link.begin(FILL, 64, token=3)
        assert link.begin(ECHO, b"x", token=4)
        found = link.answers(5)
    own_redis.client.delete(key)
    wrong = [(kind, value) for kind, value in found.values() if kind != "ok"]
    assert wrong == []
    assert all(found[token][1] == text for token in range(3))
    assert found[3][1] == [b"x" * (1 << 20)] * 64
    assert found[4][1] == [b"k", b"x"]


def test_a_script_flush_in_the_middle_costs_no_call(own_redis: OwnRedis, link: Link, key: str) -> None:
    link.use()
    for token in range(0, 40_000, 8_000):
        assert link.begin(ADD, 1, keys=(key,), token=token, count=8_000) == 8_000
        assert link.begin(ECHO, b"x", token=100_000 + token)
        link.turn(0)
        own_redis.client.script_flush()
    found = link.answers(40_005)
    assert {kind for kind, _ in found.values()} == {"ok"}
    assert own_redis.client.get(key) == b"40000", "each was done once"


def test_an_error_comes_up_whole_and_a_script_that_failed_is_not_called_again(
    own_redis: OwnRedis, link: Link, key: str
) -> None:
    link.use()
    assert link.begin(FAIL, keys=(key,))
    assert link.wait("refused")[2].startswith(b"OOM it is full")
    assert link.begin(ADD, b"no number", keys=(key,))
    assert b"not an integer" in link.wait("refused")[2]
    assert own_redis.client.get(key) == b"1"


def test_a_kill_ends_what_was_under_way_and_the_next_life_is_greeted_anew(
    own_redis: OwnRedis, link: Link, key: str
) -> None:
    first = link.use()
    assert link.call(ADD, 1, keys=(key,)) == 1
    own_redis.client.client_pause(100_000, all=False)  # scripts wait
    assert link.begin(ADD, 1, keys=(key,), token=7)
    link.turn()
    os.kill(own_redis.child.pid, signal.SIGKILL)
    _, token, reason = link.wait("unknown")
    assert token == 7 and b"lost before the reply" in reason
    assert link.wait("lost")[1] == first
    assert not link.may_call() and not link.begin(ADD, 1, keys=(key,))
    second = link.use()
    assert second > first
    link.ask("admit", first, 60_000)
    wait_loaded(own_redis)
    assert link.call(ADD, 1, keys=(key,)) == 2


def test_a_redis_that_stands_still_is_cut_in_time_and_is_used_again(own_redis: OwnRedis, link: Link, key: str) -> None:
    link.use()
    assert link.call(ADD, 1, keys=(key,)) == 1
    stand_still(own_redis.child.pid)
    try:
        began = time.monotonic()
        assert link.begin(ADD, 1, keys=(key,), token=8)
        _, token, reason = link.wait("unknown")
        took = time.monotonic() - began
        assert token == 8 and b"no reply for 4 s" in reason and took >= 4
        _, _, reason = link.wait("lost")
        assert b"no reply for 4 s" in reason
        time.sleep(max(0.0, began + 6 - time.monotonic()))
    finally:
        os.kill(own_redis.child.pid, signal.SIGCONT)
    link.use()
    assert link.call(ADD, 1, keys=(key,)) == 3, "the call that is unknown was done"


def test_a_caller_that_stood_still_reads_what_came_meanwhile(own_redis: OwnRedis, key: str) -> None:
    with linked(own_redis.url, reply_ms=300) as link:
        link.use()
        link.call(ADD, 1, keys=(key,))
        assert link.begin(ADD, 1, keys=(key,))
        link.ask("flush")
        time.sleep(1)
        assert link.wait("ok")[2] == 2
        assert link.news == []


def test_shut_ends_calls_at_once_and_their_replies_count_for_nobody(own_redis: OwnRedis, link: Link, key: str) -> None:
    number = link.use()
    link.call(ECHO, b"x")
    assert link.begin(ADD, 1, keys=(key,), token=1, count=3) == 3
    link.ask("flush")
    assert link.begin(ADD, 10, keys=(key,), token=9)
    link.ask("shut")
    assert not link.may_call() and not link.begin(ADD, 1, keys=(key,))
    found = link.answers(4)
    reason = b"another Redis came into use before this one answered"
    assert found == {1: ("unknown", reason), 2: ("unknown", reason), 3: ("unknown", reason), 9: ("not sent", None)}
    for _ in range(5):
        link.turn()
    assert link.news == [], "the link stays, and the replies are dropped"
    link.ask("admit", number, 60_000)
    assert link.call(ADD, 1, keys=(key,)) == 4, "what was not sent was not done"


def test_a_time_that_is_over_counts_before_the_call_and_at_its_reply(own_redis: OwnRedis, link: Link, key: str) -> None:
    number = link.use(for_ms=60_000)
    link.call(ADD, 1, keys=(key,))
    link.ask("shut")
    link.ask("admit", number, 1000)
    assert link.begin(ADD, 1, keys=(key,), token=1, count=2) == 2
    link.ask("flush")
    time.sleep(1.1)
    assert not link.may_call() and not link.begin(ADD, 1, keys=(key,))
    reason = b"Kafka did not confirm in time that this Redis is the one in use"
    assert link.answers(2) == {1: ("unknown", reason), 2: ("unknown", reason)}
    link.ask("admit", number, 500)
    assert link.begin(ADD, 1, keys=(key,), token=3)
    time.sleep(0.6)
    assert link.answers(1) == {3: ("not sent", None)}, "what waits to be sent is not sent when its time is over"
    link.ask("admit", number, 60_000)
    assert link.call(ADD, 1, keys=(key,)) == 4


def test_a_link_that_is_left_ends_its_calls_and_another_comes(own_redis: OwnRedis, link: Link, key: str) -> None:
    number = link.use()
    assert link.begin(ADD, 1, token=4)
    link.ask("flush")
    link.ask("leave", number)
    assert link.wait("unknown")[1] == 4
    assert link.use() > number


def test_a_name_is_looked_up_and_a_wrong_one_is_told(own_redis: OwnRedis) -> None:
    port = own_redis.url.rpartition(":")[2].removesuffix("/0")
    with linked({"host": "localhost", "port": port}) as link:
        link.use()
        assert link.call(ECHO, b"x") == [b"k", b"x"]
    with linked({"host": "no.such.host.invalid", "port": port}) as link:
        assert link.wait("lost")[2]
    with linked({"host": "127.0.0.1", "port": free_port()}) as link:
        assert b"refused" in link.wait("lost")[2]
    with pytest.raises(Refused, match="port is no number that is possible: 70000"):
        Link({"port": 70_000})
