"""The plane's way to Kafka when brokers die, stand still and lead no more: nothing that was stored
is lost, and nothing is stored twice.
"""

from __future__ import annotations

import collections
import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from engine.log.client.plane_options import plane_options
from engine.log.kafka_errors import TIMED_OUT
from facade.programs.stack.processes.child import Child
from tests.own_kafka import three_kafkas
from tests.plane_kafka import Entry, PlaneKafka, kept, plane_kafka
from tests.services import Services, loop_in_thread, running_services
from tests.stopping import stand_still

pytestmark = [pytest.mark.usefixtures("library"), pytest.mark.long]


@pytest.fixture(scope="module")
def stack(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A broker that only this module kills."""
    with running_services(tmp_path_factory.mktemp("stack")) as services:
        yield services


def made(bootstrap: str, partitions: int, copies: int = 1) -> str:
    """Returns a new topic."""
    name = f"plane-{secrets.token_hex(4)}"
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept in a name, or its answer never comes
    eventually(lambda: len(admin.list_topics(timeout=30).brokers) >= copies)
    admin.create_topics([NewTopic(name, partitions, copies)])[name].result(30)
    eventually(
        lambda: all(
            len(one.isrs) == copies for one in admin.list_topics(name, timeout=30).topics[name].partitions.values()
        )
    )
    return name


def eventually(
    true: Callable[[], bool], meanwhile: Callable[[], object] = lambda: time.sleep(0.1), within_s: float = 120
) -> None:
    """Waits until something is true. A broker that starts may not answer."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        with contextlib.suppress(KafkaException, LookupError):
            if true():
                return
        meanwhile()
    raise AssertionError(f"not within {within_s:g} s")


class Sent:
    """Appends of one record each, round the partitions, and what Kafka has of them in the end."""

    def __init__(self, plane: PlaneKafka, topic: str, partitions: int) -> None:
        self._plane, self._topic, self._partitions = plane, topic, partitions
        self.tokens: list[int] = []

    def some(self, count: int, within_ms: int = 20_000) -> list[int]:
        """Appends; returns the tokens."""
        begun = []
        for _ in range(count):
            number = len(self.tokens)
            begun.append(
                self._plane.append(self._topic, number % self._partitions, [Entry(str(number).encode())], within_ms)
            )
            self.tokens.append(begun[-1])
        return begun

    def keep_on(self, seconds: float, within_ms: int = 20_000) -> None:
        """Appends all the time, at most 200 at once."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if len(self.tokens) - len(self._plane.outcomes) < 200:
                self.some(20, within_ms)
            self._plane.turn(5)

    def until_stored(self) -> None:
        """Appends until Kafka takes it again, however long a busy machine needs for a broker."""
        for _ in range(20):
            token = self.some(1)[0]
            self._plane.settle(120)
            if self._plane.outcomes[token].kind == "stored":
                return
        raise AssertionError(f"Kafka takes nothing: {self._plane.trouble}")

    def check(self, bootstrap: str) -> collections.Counter[str]:
        """Compares each outcome with the log. Returns how many there are of each kind."""
        self._plane.settle(120)
        assert self._plane.held == 0
        found: dict[int, list[tuple[int, int]]] = collections.defaultdict(list)
        for partition in range(self._partitions):
            for message in kept(bootstrap, self._topic, partition):
                found[int(message.value() or b"")].append((partition, message.offset() or 0))
        for number, token in enumerate(self.tokens):
            outcome, places = self._plane.outcomes[token], found[number]
            if outcome.kind == "stored":
                assert places == [(number % self._partitions, outcome.number)], (
                    f"{number}: {outcome}, found at {places}"
                )
            else:
                assert len(places) <= (outcome.kind == "unknown"), f"{number}: {outcome}, found at {places}"
        return self.kinds()

    def kinds(self) -> collections.Counter[str]:
        return collections.Counter(outcome.kind for outcome in self._plane.outcomes.values())


def test_a_broker_that_is_killed_loses_nothing_and_doubles_nothing(stack: Services) -> None:
    topic = made(stack.bootstrap, 3)
    with plane_kafka(plane_options(stack.bootstrap, "plane", 20_000, {})) as plane:
        sent = Sent(plane, topic, 3)
        for _ in range(2):
            sent.keep_on(1)
            os.kill(stack.kafka_pid, signal.SIGKILL)
            sent.keep_on(2)
            sent.until_stored()
        sent.keep_on(1)
        kinds = sent.check(stack.bootstrap)
    assert kinds["stored"] > 100 and kinds["unknown"] <= 2 * 200, kinds


def test_a_broker_that_stands_still_leaves_an_unknown_outcome_which_is_not_sent_again(stack: Services) -> None:
    topic = made(stack.bootstrap, 2)
    with plane_kafka(plane_options(stack.bootstrap, "plane", 2_000, {})) as plane:
        sent = Sent(plane, topic, 2)
        sent.some(2)
        plane.settle()
        with stopped(stack.kafka_pid):
            first = sent.some(2)
            plane.turn()  # they leave
            behind = sent.some(2, within_ms=1_000)
            plane.settle()
            assert {plane.outcomes[token][:2] for token in first} == {("unknown", TIMED_OUT)}
            # They were never sent, for one batch of a partition is under way.
            assert {plane.outcomes[token][:2] for token in behind} == {("not_stored", TIMED_OUT)}
        last = sent.some(2, within_ms=60_000)
        plane.settle()
        assert {plane.outcomes[token].kind for token in last} == {"stored"}
        assert sent.check(stack.bootstrap) == {"stored": 4, "unknown": 2, "not_stored": 2}


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process stands still meanwhile."""
    stand_still(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_an_append_whose_time_is_over_is_answered_while_its_broker_thinks(stack: Services) -> None:
    topic = made(stack.bootstrap, 1)
    with plane_kafka(plane_options(stack.bootstrap, "plane", 30_000, {})) as plane:
        sent = Sent(plane, topic, 1)
        sent.some(1)
        plane.settle()
        with stopped(stack.kafka_pid):
            late = sent.some(1, within_ms=500)[0]
            began = time.monotonic()
            plane.settle()
            assert plane.outcomes[late][:2] == ("unknown", TIMED_OUT) and time.monotonic() - began < 10
            assert plane.held > 0  # it goes on
        plane.until(lambda: plane.held == 0)
        assert [m.value() for m in kept(stack.bootstrap, topic, 0)] == [b"0", b"1"]


def test_nobody_at_the_address_means_not_stored(stack: Services) -> None:
    for place, why in (("127.0.0.1:1", "refused"), ("no-such-host.invalid:9092", "no-such-host.invalid")):
        with plane_kafka(plane_options(place, "plane", 10_000, {})) as plane:
            outcome = plane.outcome("t", 0, [Entry(b"x")], within_ms=1_500)
            assert outcome[:2] == ("not_stored", TIMED_OUT) and why in outcome.more


class Cluster:
    """Three brokers."""

    def __init__(self, children: list[Child], ports: list[int]) -> None:
        self.children = children
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def partition(self, topic: str) -> Any:
        return self.admin.list_topics(topic, timeout=30).topics[topic].partitions[0]

    def leader(self, topic: str) -> int:
        """Returns the id of the broker that leads partition 0; -1 = none."""
        return int(self.partition(topic).leader)

    def kill_leader(self, topic: str, plane: PlaneKafka) -> int:
        """Kills the broker that leads partition 0, and waits until another one leads. Returns its
        id.
        """
        first = self.leader(topic)
        os.kill(self.children[first - 1].pid, signal.SIGKILL)
        eventually(lambda: self.leader(topic) not in (first, -1), plane.turn)
        return first

    def led_again_by(self, preferred: int, topic: str) -> bool:
        """Asks for the preferred leader of partition 0, which a busy broker may refuse to be as
        yet; whether it leads. Raises KafkaException.
        """
        if self.leader(topic) != preferred:
            self.admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result(30)
        return self.leader(topic) == preferred


@pytest.fixture(scope="module")
def cluster(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with loop_in_thread() as run:
        running = three_kafkas(tmp_path_factory.mktemp("three"))
        children, ports = run(running.__aenter__())
        try:
            yield Cluster(children, ports)
        finally:
            run(running.__aexit__(None, None, None))


def test_a_leader_that_is_killed_is_followed_by_another(cluster: Cluster) -> None:
    topic = made(cluster.bootstrap, 3, 3)
    with plane_kafka(plane_options(cluster.bootstrap, "plane", 30_000, {})) as plane:
        sent = Sent(plane, topic, 3)
        sent.keep_on(1)
        cluster.kill_leader(topic, plane)
        sent.keep_on(1)
        last = sent.some(6, within_ms=60_000)
        kinds = sent.check(cluster.bootstrap)
        assert {plane.outcomes[token].kind for token in last} == {"stored"}
        assert kinds["not_stored"] == 0 and kinds["unknown"] <= 200, kinds


def test_a_leader_that_hands_over_costs_no_append(cluster: Cluster) -> None:
    topic = made(cluster.bootstrap, 1, 3)
    with plane_kafka(plane_options(cluster.bootstrap, "plane", 60_000, {})) as plane:
        sent = Sent(plane, topic, 1)
        first = cluster.kill_leader(topic, plane)
        sent.until_stored()
        eventually(lambda: len(cluster.partition(topic).isrs) == 3, plane.turn)
        before = sent.kinds()
        sent.keep_on(0.5, within_ms=120_000)
        eventually(lambda: cluster.led_again_by(first, topic), lambda: sent.keep_on(0.5, within_ms=120_000))
        sent.keep_on(0.5, within_ms=120_000)
        kinds = sent.check(cluster.bootstrap) - before
        # One batch may have been written and not copied when the leader changed.
        assert kinds["not_stored"] == 0 and kinds["unknown"] <= 200 and kinds["stored"] > 100, kinds
