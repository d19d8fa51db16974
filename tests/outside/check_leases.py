"""Leases: nothing early, one holder, settled stays settled, counts that grow.

Each check is a function of a story.
"""

from __future__ import annotations

from tests.outside.book import DONE
from tests.outside.carried import Claim
from tests.outside.story import Copy, Got, Story, told
from tests.outside.verdict import Verdict

# Milliseconds are cut off in several places, and the clocks of client and service are two views of
# one machine.
MARGIN_S = 0.05


def delays(story: Story) -> Verdict:
    """A message does not come before its delay is over, counted from before it was asked for."""
    verdict = Verdict("never before its delay")
    for copy in story.copies.values():
        sent, lane = story.sent.get(copy.token), story.lane(copy.place)
        tries = [one for one in sent.tries if one.result not in ("refused", "unreached")] if sent else []
        if not tries or not copy.gots or lane is None or lane.is_dead_of or lane.redriven:
            continue
        due = min(one.t0 + one.delay for one in tries)
        early = due - MARGIN_S - copy.gots[0].t1
        text = (
            f"{copy.token} at {copy.place}: sent line {tries[0].n} at {tries[0].t0:.2f} s, delay "
            f"{tries[0].delay}, came {early:.2f} s early"
        )
        verdict.judge(early > 0, False, f"{text}, {told(copy.gots[0])}")
    return verdict


def due_again(story: Story, copy: Copy, got: Got, before: Got) -> tuple[float, bool]:
    """The earliest time at which a message that `got` holds may be leased to `before`, and whether
    a loss may have forgotten it.
    """
    due, excused = got.t0 + got.lease, story.excused(got.t0, got.t1, before.t1)
    for act in sorted(copy.changes, key=lambda act: act.t0):
        if act.handle != got.handle or not act.possible or act.t0 > before.t1:
            continue
        if act.op == "kill":
            continue
        new = act.t0 + act.lease
        due = new if act.result == DONE and act.t1 < before.t0 else min(due, new)
        excused = excused or story.excused(act.t0, act.t1, before.t1)
    return due, excused


def leases(story: Story) -> Verdict:
    """While a lease lasts nobody else is leased the message; a released one does not come before
    its time.
    """
    verdict = Verdict("one holder at a time, none before its lease is over")
    for copy in story.copies.values():
        for i, later in enumerate(copy.gots):
            for earlier in copy.gots[max(0, i - 4) : i]:
                due, excused = due_again(story, copy, earlier, later)
                other, other_excused = due_again(story, copy, later, earlier)
                # Of two receives at the same time either may have been first.
                possible = later.t1 >= due - MARGIN_S or (later.t0 < earlier.t1 and earlier.t1 >= other - MARGIN_S)
                where = f"{copy.token} ({copy.id}) at {copy.place}"
                text = f"{where}: leased {told(earlier)} for {earlier.lease} s, due {due:.2f}, again {told(later)}"
                verdict.judge(not possible, excused or other_excused, text)
    return verdict


def settled(story: Story) -> Verdict:
    """A message does not come to a receive that was asked for after its ack was answered."""
    verdict = Verdict("what is settled stays settled")
    for copy in story.copies.values():
        lane = story.lane(copy.place)
        for end in copy.ends:
            if not story.firm(copy, end):
                continue
            after = next((got for got in copy.gots if got.t0 > end.t1), None)
            excuse = after is not None and not (lane and lane.durable) and story.excused(end.t0, end.t1, after.t1)
            last = max((begin for begin, _ in story.losses if after and begin <= after.t1), default=0.0)
            text = (
                f"{copy.token} ({copy.id}) at {copy.place}: settled {told(end)}, came again "
                f"{told(after) if after else ''}"
            )
            verdict.judge(
                after is not None,
                excuse,
                f"{text}; the ack was {last - end.t1:.1f} s old at the last loss ({last:.2f} s)",
            )
    return verdict


def counts(story: Story) -> Verdict:
    """Receive counts grow with each delivery, and are no less than what clients have seen."""
    verdict = Verdict("receive counts grow, and understate nothing")
    for copy in story.copies.values():
        for i, got in enumerate(copy.gots):
            before = [one for one in copy.gots[:i] if one.t1 < got.t0]
            if not before:
                verdict.judge(got.count < 1, False, f"{copy.token} at {copy.place}: count {got.count}, {told(got)}")
                continue
            last = before[-1]
            forgotten = [one for one in before if story.excused(one.t0, one.t1, got.t1)]
            fell = got.count <= last.count
            understated = got.count < len(before) - len(forgotten) + 1
            where = f"{copy.token} ({copy.id}) at {copy.place}"
            text = f"{where}: count {last.count} {told(last)}, then {got.count} {told(got)}, seen {len(before)} before"
            verdict.judge(fell or understated, bool(forgotten), text)
    return verdict


def uncarried(story: Story) -> Verdict:
    """A delivery that no answer carried is not counted; a receive whose answer nobody has may have
    carried some.

    SQS goes on counting in a dead-letter queue where the source left off.
    """
    verdict = Verdict("no delivery is counted that no answer carried")
    for place, copies in story.at.items():
        lane = story.lane(place)
        if lane is None:
            continue
        claims, texts = [], []
        for copy in copies:
            if not copy.gots:
                continue
            top = max(copy.gots, key=lambda got: got.count)
            # An answer may reach its client later than that of a receive which came after it.
            seen = sum(got.t0 <= top.t1 for got in copy.gots)
            if lane.is_dead_of and top.by == "sqs":
                seen += sum(len(before.gots) for at in story.at if at.partition("@")[0] == lane.is_dead_of
                            for before in story.at[at] if before.token == copy.token)  # fmt: skip
            begin = story.sent[copy.token].first if copy.token in story.sent else 0.0
            claims.append(Claim(max(0, top.count - seen), begin, top.t1))
            texts.append(
                f"{copy.token} ({copy.id}) at {place}: count {top.count} at {told(top)}, received {seen} times"
            )
        for claim, text, explained in zip(claims, texts, story.carried(place).explained(claims), strict=True):
            verdict.judge(claim.missing > 0, explained, text)
    return verdict
