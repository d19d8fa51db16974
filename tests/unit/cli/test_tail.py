"""`leaseway message tail -f`: each message once, and none is passed over."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from facade.programs.cli.nouns.messages.looking import tail
from facade.programs.connect.client import Client
from facade.programs.connect.failures import Failure, Refused, Unreachable

AWAY = Unreachable("away")


def row(name: str, at: int, partition: int = 0) -> dict[str, Any]:
    return {"id": name, "sent_at_ms": at, "partition": partition, "offset": at}


class Scripted:
    """A session whose client answers with these pages in turn; each is rows, whether more follow,
    and the time of the service after it.
    """

    pages = Client.pages

    def __init__(self, *pages: tuple[list[dict[str, Any]], bool, int] | Failure) -> None:
        self.client = self
        self.clock_ms = 10_000
        self.asked: list[tuple[int, str | None]] = []
        self.said: list[str] = []
        self.of: list[int | None] = []
        self.partitions = 1
        self._pages = list(pages)

    def exchange(self, method: str, path: str) -> None:
        assert (method, path) == ("GET", "/live")

    def get(self, path: str, **query: Any) -> Any:
        if path == "/v1/queues/q":
            return {"partitions": self.partitions}
        assert path == "/v1/queues/q/messages"
        self.asked.append((query["from"], query["next"]))
        self.of.append(query.get("partition"))
        page = self._pages.pop(0)
        if isinstance(page, Failure):
            raise page
        rows, more, self.clock_ms = page
        return {"messages": rows, "next": "n" if more else None}

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _s: None)


def followed(session: Scripted, count: int) -> list[str]:
    rows = tail(session, "q", 5, follow=True)  # type: ignore[arg-type]
    return [one["id"] for one in itertools.islice(rows, count)]


def test_what_came_to_a_partition_after_its_read_in_a_long_pass_is_shown() -> None:
    session = Scripted(
        ([row("a", 9_000, 0)], True, 15_000),
        ([row("z", 19_000, 7)], False, 20_000),
        ([row("early", 10_500, 0), row("z", 19_000, 7)], False, 21_000),
    )

    assert followed(session, 3) == ["a", "z", "early"]
    assert session.asked == [(5, None), (5, "n"), (8_000, None)]


def test_each_message_is_printed_once_and_the_service_may_be_away() -> None:
    session = Scripted(
        ([row("a", 9_500)], False, 10_000),
        AWAY,
        AWAY,
        ([row("a", 9_500), row("b", 9_000)], False, 11_000),
        ([row("c", 11_000)], False, 11_000),
    )

    assert followed(session, 3) == ["a", "b", "c"]
    assert [since for since, _ in session.asked] == [5, 7_500, 7_500, 7_500, 7_500]
    assert session.said == ["away; trying again"]


@pytest.mark.parametrize("failure", [AWAY, Refused(500, {}), Refused(429, {})], ids=["away", "500", "429"])
def test_a_page_that_fails_costs_nothing_of_the_others(failure: Failure) -> None:
    session = Scripted(
        ([row("a", 9_000, 0)], True, 10_000),
        failure,
        ([row("a", 9_000, 0)], True, 30_000),
        ([row("b", 9_500, 1)], False, 30_000),
    )

    assert followed(session, 2) == ["a", "b"]
    # The pass begins again: partitions that were not read are asked from the same time on.
    assert session.asked == [(5, None), (5, "n"), (5, None), (5, "n")]


def test_a_refusal_ends_it() -> None:
    with pytest.raises(Refused):
        followed(Scripted(Refused(403, {})), 1)


def test_a_partition_that_fails_at_every_pass_hides_none_behind_it() -> None:
    broken = Refused(503, {"detail": "Kafka can't read partition 0."})
    session = Scripted(
        broken,  # of all partitions
        broken,
        ([row("a", 9_000, 1)], False, 10_000),
        ([row("b", 9_500, 2)], False, 10_000),
        broken,
        ([row("a", 9_000, 1), row("c", 9_900, 1)], False, 11_000),
        ([], False, 11_000),
        ([row("z", 5_000, 0)], False, 12_000),  # it answers again: nothing of it is passed over
    )
    session.partitions = 3

    assert followed(session, 4) == ["a", "b", "c", "z"]
    assert session.of == [None, 0, 1, 2, 0, 1, 2, 0]
    assert [since for since, _ in session.asked] == [5, 5, 5, 5, 5, 7_000, 7_500, 5]
    assert session.said == ["Kafka can't read partition 0; trying again"]
