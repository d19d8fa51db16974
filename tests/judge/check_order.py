"""Checker of FIFO queues: within a group, in the order of the sequence numbers.

As in SQS, one receive may give several messages of a group, in order, and what is visible again
before those comes again though they are still leased: whoever holds a message of a group shuts only
what is behind it.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

from tests.judge.history import Op
from tests.judge.story import Delivery, Message, Story
from tests.judge.verdict import Verdict


def fifo(story: Story) -> Verdict:
    """A message of a group is delivered only when all before it are settled or stand before it in
    the same answer; those that nobody was given are before it too.
    """
    verdict = Verdict("FIFO order within a group")
    groups: dict[tuple[str, str, str], list[Delivery]] = defaultdict(list)
    for d in story.all_deliveries():
        if story.plans[d.queue].fifo and d.it.origin is None:
            groups[d.queue, d.tag, d.it.group].append(d)
    for found in groups.values():
        verdict.saw("groups")
        _sequences(story, verdict, found)
        _in_order(story, verdict, found)
        _none_passed_over(story, verdict, found)
    return verdict


def _sequences(story: Story, verdict: Verdict, found: list[Delivery]) -> None:
    """Sequence numbers are a message's own, in its own group, and in the order of the sends of one
    client.
    """
    numbers: dict[str, int] = {}
    for d in found:
        verdict.saw("deliveries")
        message = story.messages[d.queue].get(d.it.uid)
        if message is not None and message.sent.group != d.it.group:
            verdict.breach("other group", d.where())
        if numbers.setdefault(d.it.id, d.it.sequence) != d.it.sequence:
            verdict.breach("other number", d.where())
    if len(set(numbers.values())) < len(numbers):
        verdict.breach("number twice", f"{found[0].queue}, group {found[0].it.group}")
    _as_sent(story, verdict, found)


def _as_sent(story: Story, verdict: Verdict, found: list[Delivery]) -> None:
    """A send that began after another was answered has the higher number; so have later entries of
    one send.
    """
    seen: dict[str, Delivery] = {d.it.id: d for d in found}
    rows: list[tuple[Message, int, Delivery]] = []
    for d in seen.values():
        message = story.messages[d.queue].get(d.it.uid)
        # The first send gives the number; a repeat has it too.
        if message is not None and message.tries[0].outcome == "ok" and message.tries[0].id == d.it.id:
            rows.append((message, [s.uid for s in message.op.line.sends].index(d.it.uid), d))
    rows.sort(key=lambda row: row[2].it.sequence)
    latest: Op | None = None
    for (one, at, d), (other, at_other, e) in itertools.pairwise(rows):
        if one.op is other.op and at > at_other:
            verdict.breach("numbers not as sent", f"{d.where()} before {e.where()}")
        if latest is None or one.op.began > latest.began:
            latest = one.op
        if other.op.ended < latest.began:
            verdict.breach("numbers not as sent", f"{e.where()} was answered before {latest.where()} began")


def _in_order(story: Story, verdict: Verdict, found: list[Delivery]) -> None:
    """For each delivery: every earlier message of the group may have been settled by then, or is
    before it in the answer.
    """
    # By the server's time, or by the clients' own order: the server's has whole milliseconds.
    times = {id(d): max(d.received_ms, story.history.ms(d.op.ended)) for d in found}
    found = sorted(found, key=lambda d: (times[id(d)], d.op.lines[1]))
    ends, ids = _settled_at(story, found), {d.it.sequence: d for d in found}
    order = sorted(ids)
    first = 0  # all before it are settled for good
    for d in found:
        now = times[id(d)]
        while first < len(order) and ends.get(ids[order[first]].it.id, float("inf")) <= now:
            first += 1
        for sequence in order[first:]:
            if sequence >= d.it.sequence:
                break
            before = ids[sequence]
            if ends.get(before.it.id, float("inf")) <= now or _stands_before(d, before.it.id):
                continue
            verdict.breach("out of order", f"{d.where()} while {before.it.uid} (number {sequence}) was not settled")
            break


def _none_passed_over(story: Story, verdict: Verdict, found: list[Delivery]) -> None:
    """No message comes whose send began after that of another was answered which nobody was ever
    given, under a name or an id of it.
    """
    queue, tag, plan = found[0].queue, found[0].tag, story.plans[found[0].queue]
    keys: set[tuple[str, str]] = set()
    unseen: list[Message] = []
    for message in story.messages[queue].values():
        key = plan.dedup_key(message.sent)
        repeat = key in keys
        keys |= {key} if key else set()
        if (
            message.ok
            and not repeat
            and message.sent.group == found[0].it.group
            and plan.wants(tag, message.sent)
            and not story.found(plan, tag, message)
        ):
            unseen.append(message)
    for message in unseen:
        for d in found:
            sent = story.messages[queue].get(d.it.uid)
            if sent is not None and sent.began > message.op.ended:
                verdict.breach("passed over", f"{message.sent.uid}, answered at {message.op.where()}: {d.where()}")
                break


def _settled_at(story: Story, found: list[Delivery]) -> dict[str, float]:
    """id -> server ms from when on it may have been settled: its ack or kill was asked for, or it
    died (its letter says so).
    """
    ends: dict[str, float] = {}
    for d in found:
        for s in d.by("ack", "kill"):
            at = story.history.ms(s.op.began)
            ends[d.it.id] = min(ends.get(d.it.id, at), at)
        for letter in story.children.get(d.it.id, []):
            ends[d.it.id] = min(ends.get(d.it.id, letter.it.sent_ms), letter.it.sent_ms)
    return ends


def _stands_before(d: Delivery, id: str) -> bool:
    """Whether the answer that brought `d` has message `id` before it."""
    answer = d.op.end.deliveries if d.op.end is not None else []
    ids = [it.id for it in answer]
    return id in ids[: ids.index(d.it.id)]
