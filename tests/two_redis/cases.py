"""The cases: what happens to Redis, and what is to hold beside what `judge` checks."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable

from tests.two_redis.book import Client, Crowd
from tests.two_redis.judge import Verdict, judge_split
from tests.two_redis.stage import Stage

# At what times another life comes into use.
Case = Callable[[Stage, Crowd, random.Random, float, Verdict], list[float]]


def failover(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """The primary dies, its replica is promoted, both workers reach that."""
    stage.a.kill()
    time.sleep(rng.uniform(0, 1))
    at = time.monotonic()
    stage.b.lead()
    for worker in (0, 1):
        stage.switch(worker, stage.b)
        time.sleep(rng.uniform(0, 0.3))
    return [at]


def split(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """The replica is promoted, and one worker reaches the primary for a while longer."""
    stage.b.lead()
    at = time.monotonic()
    stage.switch(0, stage.b)
    time.sleep(split_s)
    over = time.monotonic()
    stage.switch(1, stage.b)
    crowd.later(lambda: judge_split(crowd.book, 1, 0, at, over, verdict))
    names = stage.log("action=distrust")
    verdict.expect(len(names) <= 2, f"lives were named {len(names)} times")
    return [at]


def failback(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """Both workers reach the promoted replica, and then the old primary with its old memory; one of
    them before the other.
    """
    stage.b.lead()
    first = time.monotonic()
    order = [0, 1]
    rng.shuffle(order)
    for worker in order:
        stage.switch(worker, stage.b)
        time.sleep(rng.uniform(0, 0.5))
    time.sleep(split_s)
    back = time.monotonic()
    stage.switch(order[0], stage.a)
    time.sleep(rng.uniform(0, 4))
    stage.switch(order[1], stage.a)
    joined = time.monotonic()
    return [first, back, joined, joined + 5]


def stale(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """A replica that heard nothing for some seconds is promoted; one worker reaches it later."""
    stage.b.leave()
    time.sleep(rng.uniform(2, 5))
    stage.b.lead()
    at = time.monotonic()
    stage.switch(0, stage.b)
    time.sleep(split_s)
    stage.switch(1, stage.b)
    return [at, at + split_s]


def evict(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """Somebody sets a policy that evicts, and the memory is full for a moment."""
    client = stage.a.client
    client.config_set("maxmemory-policy", "allkeys-random")
    began = time.monotonic()
    client.config_set("maxmemory", max(1, int(client.info("memory")["used_memory"]) - rng.randint(20_000, 60_000)))
    end = time.monotonic() + 5
    while not int(client.info("stats")["evicted_keys"]) and time.monotonic() < end:
        time.sleep(0.02)
    client.config_set("maxmemory", 0)
    verdict.figures["evicted"] = int(client.info("stats")["evicted_keys"])
    verdict.expect(verdict.figures["evicted"] > 0, "nothing was evicted: this run says nothing")
    time.sleep(3)
    verdict.expect("redis_evicts" in _alarms(stage), "/health has no alarm redis_evicts")
    client.config_set("maxmemory-policy", "noeviction")
    time.sleep(3)
    verdict.expect("redis_evicts" not in _alarms(stage), "/health has it still")
    verdict.expect(bool(stage.log("action=distrust")), "no worker took the state for lost")
    return [began + n for n in (0, 3, 6)]


def _alarms(stage: Stage) -> dict[str, float]:
    with contextlib.closing(Client(stage.ports[0])) as worker:
        _, health = worker.ask("GET", "/health")
    return dict(health["alarms"])


def mute(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """Redis answers nothing for five seconds."""
    stage.a.hold(True)
    at = time.monotonic()
    time.sleep(5 + rng.uniform(0, 2))
    over = time.monotonic()
    stage.a.hold(False)

    def look() -> None:
        within = [end - began for _, began, end in crowd.book.sent.values() if at < began and end < over]
        slow = [end - began for _, began, end in crowd.book.sent.values() if at - 0.1 < began < over]
        verdict.figures.update(sends_while_mute=len(within), slowest_send_s=round(max(slow, default=0), 2))
        verdict.expect(len(within) > 20, f"{len(within)} sends were answered while Redis was mute")
        verdict.expect(max(slow, default=0) < 3, f"a send took {max(slow, default=0):.1f} s while Redis was mute")

    crowd.later(look)
    return [at]


def stopped(stage: Stage, crowd: Crowd, rng: random.Random, split_s: float, verdict: Verdict) -> list[float]:
    """As `split`, and the worker that reaches the old primary stands still when that begins: its
    first call after it wakes is checked.
    """
    stage.hold_worker(1, True)
    stage.b.lead()
    at = time.monotonic()
    stage.switch(0, stage.b)
    time.sleep(3 + rng.uniform(0, 2))
    stage.hold_worker(1, False)
    time.sleep(split_s)
    over = time.monotonic()
    stage.switch(1, stage.b)
    crowd.later(lambda: judge_split(crowd.book, 1, 0, at, over, verdict))
    return [at]


CASES: dict[str, Case] = {
    "failover": failover, "split": split, "failback": failback, "stale": stale, "evict": evict, "mute": mute,
    "stopped": stopped,
}  # fmt: skip
ALONE = ("evict", "mute")  # with a primary that has no replica
