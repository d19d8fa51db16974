"""Queues that are deleted and made anew: a new one is empty and stays, an old one is gone.

One actor works on a name, one step after the other, so the entries of a name are its history.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.outside.book import DONE, UNKNOWN, Entry
from tests.outside.story import Story
from tests.outside.verdict import Verdict


@dataclass
class _Life:
    """What is known of a name so far."""

    number: int = 0
    there: bool | None = False
    since: float = 0.0
    open_creations: int = 0
    open_deletion: bool = False
    told: set[int] = field(default_factory=set)


def lives(story: Story) -> Verdict:
    """A queue made anew is empty and stays until it is deleted; a deleted one is gone."""
    verdict = Verdict("a queue made anew is empty and stays")
    names: dict[str, list[Entry]] = defaultdict(list)
    for entry in story.entries:
        if str(entry.get("place", "")).startswith("reborn-"):
            names[entry["place"]].append(entry)
    for name, entries in names.items():
        life = _Life()
        for entry in sorted(entries, key=lambda row: (row["t0"], row["n"])):
            _next(story, verdict, name, life, entry)
    return verdict


def _next(story: Story, verdict: Verdict, name: str, life: _Life, entry: Entry) -> None:
    where = (
        f"{name}, life {life.number} (made at {life.since:.2f} s), line {entry['n']} "
        f"({entry['t0']:.2f}-{entry['t1']:.2f} s)"
    )
    op, outcome = entry["op"], entry.get("outcome", "")
    if op == "create":
        _created(life, entry, outcome)
    elif op == "delete" and outcome in (DONE, UNKNOWN):
        life.there = False if outcome == DONE else None
        life.open_deletion = outcome == UNKNOWN
    elif entry.get("status") == 404:
        _vanished(verdict, life, where, entry)
        life.there = False if life.there is None else life.there
    elif op == "look" and outcome == DONE:
        verdict.judge(life.there is False, life.open_creations > 0, f"{where}: it was deleted, and is there")
    elif op == "counts" and outcome == DONE and entry.get("born"):
        born = sum(entry["counts"].values())
        verdict.judge(born > 0, born <= _late(story, name, entry["t1"]), f"{where}: born with {entry['counts']}")
    elif op == "receive" and outcome == DONE:
        for got in entry["got"]:
            other = int(got["token"].rsplit("-", 2)[1]) != life.number
            # A send without an answer is done when who has it wakes, to whatever has the name then.
            late = got["token"] in story.sent and not story.sent[got["token"]].answered
            verdict.judge(other, late, f"{where}: {got['token']} of another life came")
    elif op == "missing":
        verdict.judge(bool(entry["tokens"]), False, f"{where}: answered, and not there: {entry['tokens'][:5]}")


def _late(story: Story, name: str, until: float) -> int:
    """Sends to a name without an answer, each of which may come at any time (see the receives)."""
    return sum(sent.queue == name and not sent.answered and sent.first < until for sent in story.sent.values())


def _created(life: _Life, entry: Entry, outcome: str) -> None:
    """201 is a new life, whatever deletion is open: it has happened. 200 beside an open deletion
    says nothing.
    """
    if outcome == DONE and (entry["made"] == 201 or not life.open_deletion):
        life.number, life.there, life.since, life.open_deletion = entry["life"], True, entry["t1"], False
    elif outcome == UNKNOWN:
        life.there, life.open_creations = None, life.open_creations + 1


def _vanished(verdict: Verdict, life: _Life, where: str, entry: Entry) -> None:
    """404 of a queue that was made and not deleted since; told once a life."""
    first = life.number not in life.told
    if life.there:
        life.told.add(life.number)
    verdict.judge(bool(life.there) and first, False, f"{where}: {entry['op']} found no queue, which nobody had deleted")
