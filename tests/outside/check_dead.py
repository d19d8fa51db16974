"""Dead letters: delivered as often as the policy says to clients, there once, ended once, not
late.
"""

from __future__ import annotations

from tests.outside.carried import Claim
from tests.outside.lanes import Lane
from tests.outside.story import Copy, Story, told
from tests.outside.verdict import Verdict

# A lost mover is waited for 30 s (docs/reference/failures.md), and the service is back 20 s after a
# fault, 40 s on a full machine.
MOVER_S, BACK_S, BACK_LOADED_S = 30.0, 20.0, 40.0


def back_within(story: Story) -> float:
    """The bound on recovery: it depends on how busy the machine was made."""
    return BACK_LOADED_S if story.loaded else BACK_S


def undelivered(story: Story) -> Verdict:
    """Every dead letter was delivered max_receive_count times, to clients that got the answer."""
    verdict = Verdict("no letter dies undelivered")
    for place, lane in _dead(story):
        source = lane.is_dead_of
        needed = story.lanes[source].dies_after
        claims, texts = [], []
        for copy in story.at.get(place, ()):
            if not copy.gots or any(
                act.possible
                for one in story.of.get((source, copy.token), ())
                for act in one.changes
                if act.op == "kill"
            ):
                continue
            first = copy.gots[0]
            sources = story.of.get((source, copy.token), [])
            seen = max((sum(got.t0 < first.t1 for got in one.gots) for one in sources), default=0)
            begin = story.sent[copy.token].first if copy.token in story.sent else 0.0
            claims.append(Claim(max(0, needed - seen), begin, first.t1))
            text = (
                f"{copy.token}: letter {told(first)}, died after {first.died_after}, received {seen} of {needed} times"
            )
            texts.append(
                f"{text} at {source} since {begin:.2f} s; receives without an answer meanwhile: "
                f"{_failed(story, source, begin, first.t0)}"
            )
        for claim, text, explained in zip(claims, texts, story.carried(source).explained(claims), strict=True):
            verdict.judge(claim.missing > 0, explained, text)
    return verdict


def _failed(story: Story, place: str, begin: float, end: float) -> str:
    rows = [
        row
        for row in story.by_op["receive"]
        if row["place"] == place and row["outcome"] == "unknown" and begin < row["t1"] and row["t0"] < end
    ]
    return (
        "; ".join(
            f"line {row['n']} {row['t0']:.1f}-{row['t1']:.1f} s {row.get('status')} {row.get('code', '')[:40]}"
            for row in rows[:3]
        )
        or "none"
    )


def overdelivered(story: Story) -> Verdict:
    """A message is not delivered more often than its policy says, but for counts that a loss of
    Redis may have taken back.
    """
    verdict = Verdict("max_receive_count is kept")
    for name, lane in story.lanes.items():
        for copy in story.at.get(name, ()) if lane.dies_after else ():
            forgotten = sum(story.excused(got.t0, got.t1, copy.gots[-1].t1) for got in copy.gots)
            over = len(copy.gots) - lane.dies_after
            text = (
                f"{copy.token} ({copy.id}): {len(copy.gots)} deliveries, {lane.dies_after} allowed, last "
                f"{told(copy.gots[-1])}"
                if copy.gots
                else ""
            )
            verdict.judge(over > 0, over <= forgotten, text)
    return verdict


def once(story: Story) -> Verdict:
    """A message that may die or be redriven ends once: one ack over all its copies."""
    verdict = Verdict("each ends once, through death and redrive")
    for sent in story.sent.values():
        lane = story.lanes.get(sent.queue)
        if lane is None or not lane.dead or not sent.answered or len(sent.tries) > 1:
            continue
        copies = [copy for place in story.family(lane, "") for copy in story.of.get((place, sent.token), ())]
        ends = [(copy, end) for copy in copies for end in copy.ends if story.firm(copy, end)]
        firsts = list({copy.id: (copy, end) for copy, end in reversed(ends)}.values())
        excuse = any(_forgotten(story, copy) for copy in copies)
        text = ", ".join(f"{copy.id} at {copy.place} {told(end)}" for copy, end in firsts)
        verdict.judge(len(firsts) > 1, excuse, f"{sent.token} was settled as {len(firsts)} messages: {text}")
    return verdict


def _forgotten(story: Story, copy: Copy) -> bool:
    """A loss may have taken back a death: it is not in the book when that was, so the time of the
    last lease's end counts.
    """
    lapses = [(got.t0 + got.lease, got.t0 + got.lease + MOVER_S) for got in copy.gots]
    kills = [(act.t0, act.t1 + MOVER_S) for act in copy.changes if act.op == "kill"]
    ends = [(end.t0, end.t1) for end in copy.ends]
    return any(story.excused(t0, t1) for t0, t1 in (*lapses, *kills, *ends))


def late(story: Story) -> Verdict:
    """A letter is there within the bounds of a lost mover and of recovery, after it was due and the
    last fault before it was over.
    """
    verdict = Verdict("letters are not late")
    bound = MOVER_S + back_within(story)
    for place, lane in _dead(story):
        if lane.redriven:
            continue
        for copy in story.at.get(place, ()):
            sources = [got for one in story.of.get((lane.is_dead_of, copy.token), ()) for got in one.gots]
            if (
                not sources
                or not copy.gots
                or any(row["t0"] < copy.gots[0].t0 for row in story.by_op["counts"] if row.get("rest"))
            ):
                continue
            due = max(got.t1 + got.lease for got in sources)
            came = copy.gots[0].t1
            # What is under way still when the letter comes delays it no longer.
            healed = max(
                (min(fault.end, came) for fault in story.faults if fault.begin < min(due + bound, came)), default=0
            )
            waited = came - max(due, healed)
            verdict.judge(
                waited > bound,
                False,
                f"{copy.token}: due {due:.2f} s, last heal {healed:.2f} s, came {told(copy.gots[0])}, "
                f"{waited:.1f} s late",
            )
    return verdict


def _dead(story: Story) -> list[tuple[str, Lane]]:
    return [(name, lane) for name, lane in story.lanes.items() if lane.is_dead_of]
