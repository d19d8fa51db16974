"""Messages: none lost, none invented, none doubled; what was refused did not happen; the log has
what was answered.

Each check is a function of a story.
"""

from __future__ import annotations

from collections import Counter

from tests.outside.book import DONE
from tests.outside.lanes import Lane
from tests.outside.story import Copy, Sent, Story, told
from tests.outside.verdict import Verdict


def wants(lane: Lane, tag: str, sent: Sent) -> bool:
    """Whether a tag takes it: `b` is made with a filter: kind must be there."""
    return not tag or bool(sent.kind)


def lost(story: Story) -> Verdict:
    """Nothing answered is lost: after the drain, each answered message was settled by somebody
    under each tag that wants it.
    """
    verdict = Verdict("nothing answered is lost")
    purges = {name: _purges(story, name) for name, lane in story.lanes.items() if lane.purged}
    for sent in story.sent.values():
        lane = story.lanes.get(sent.queue)
        if lane is None or lane.still or not sent.answered or _repeat(sent):
            continue
        if any(sent.first <= end for end in purges.get(sent.queue, ())):
            continue
        for tag in lane.tags:
            if not wants(lane, tag, sent):
                continue
            copies = [copy for place in story.family(lane, tag) for copy in story.of.get((place, sent.token), ())]
            ended = any(end.possible for copy in copies for end in copy.ends)
            sends = ", ".join(
                f"line {one.n} {one.result} ({one.t0:.2f}-{one.t1:.2f} s, {one.by})" for one in sent.tries[:3]
            )
            seen = f"; received {sum(len(copy.gots) for copy in copies)} times, last {_last(copies)}"
            verdict.judge(
                not ended,
                False,
                f"{sent.token} under {sent.queue}@{tag or 'default'}: sent {sends}{seen}, never settled",
            )
    return verdict


def _last(copies: list[Copy]) -> str:
    times = [got.t1 for copy in copies for got in copy.gots]
    return f"at {max(times):.2f} s" if times else "never"


def _repeat(sent: Sent) -> bool:
    return "~" in sent.token


def _purges(story: Story, queue: str) -> list[float]:
    """When each purge that may have been done was over at the latest: one without an answer may lie
    in a process that stands still.
    """
    ends = []
    for row in story.by_op["purge"]:
        if row["place"] == queue and row["outcome"] != "refused":
            heals = [fault.end for fault in story.faults if fault.begin <= row["t1"]]
            ends.append(row["t1"] if row["outcome"] == DONE else max([row["t1"], *heals]) + 5)
    return ends


def phantoms(story: Story) -> Verdict:
    """Nothing is delivered that was not sent, was refused, is not whole, or is not what the tag
    takes.
    """
    verdict = Verdict("nothing but what was sent")
    whole = {
        (row["place"], got["id"]) for row in story.by_op["receive"] for got in row["got"] if not got.get("whole", True)
    }
    for copy in story.copies.values():
        if not copy.gots:
            continue
        sent = story.sent.get(copy.token)
        lane, tag = story.lane(copy.place), copy.place.partition("@")[2]
        text = f"{copy.token} ({copy.id}) at {copy.place}, line {copy.gots[0].n}"
        verdict.judge(sent is None, False, f"{text}: nobody sent it")
        verdict.judge((copy.place, copy.id) in whole, False, f"{text}: body is not what was sent")
        if sent is None or lane is None:
            continue
        verdict.judge(
            not sent.possible,
            False,
            f"{text}: every send of it was refused ({sent.tries[0].result}, line {sent.tries[0].n})",
        )
        verdict.judge(not wants(lane, tag, sent), False, f"{text}: kind {sent.kind!r} is not what the tag takes")
        verdict.judge((lane.is_dead_of or lane.name) != sent.queue, False, f"{text}: sent to {sent.queue}")
    return verdict


def doubled(story: Story) -> Verdict:
    """One send makes one message; in a FIFO queue all sends of one deduplication id within five
    minutes do.
    """
    verdict = Verdict("one send, one message; dedup within five minutes")
    for (place, token), copies in story.of.items():
        sent, lane = story.sent.get(token), story.lane(place)
        seen = [copy for copy in copies if copy.gots]
        if sent is None or lane is None or lane.redriven or not seen:
            continue
        most = 1 if lane.fifo or lane.is_dead_of else sum(one.result in (DONE, "unknown") for one in sent.tries)
        text = ", ".join(f"{copy.id} line {copy.gots[0].n} at {copy.gots[0].t1:.2f} s" for copy in seen)
        verdict.judge(
            len(seen) > most, False, f"{token} at {place}: {len(seen)} messages of {len(sent.tries)} sends: {text}"
        )
        if lane.fifo and _repeat(sent):
            first = story.sent.get(sent.dedup)
            repeated = first is not None and first.answered and sent.tries[-1].t1 - first.first < 290
            verdict.judge(
                repeated,
                False,
                f"{token}: a repeat of {sent.dedup} (first sent at {first.first if first else 0:.2f} s) came: {text}",
            )
    return verdict


def in_the_log(story: Story) -> Verdict:
    """A Kafka-native reader finds every answered send in the queue's topic; in a standard queue
    once, and never twice.
    """
    verdict = Verdict("Kafka-native readers see each answered send once")
    rows = [tuple(row) for entry in story.by_op["log"] for row in entry["rows"]]
    if not rows:
        return verdict
    seen = Counter((queue, token) for queue, token in {(q, t, p, o): (q, t) for q, p, o, t in rows}.values())
    for sent in story.sent.values():
        lane = story.lanes.get(sent.queue)
        if lane is None or lane.purged or not sent.tries:
            continue
        times = seen[sent.queue, sent.token]
        if sent.answered:
            verdict.judge(
                times == 0, False, f"{sent.token}: answered (line {sent.tries[-1].n}), not in lw.q.{sent.queue}"
            )
        if not lane.fifo and not lane.redriven:
            most = sum(one.result in (DONE, "unknown") for one in sent.tries)
            verdict.judge(times > most, False, f"{sent.token}: {times} times in lw.q.{sent.queue}, sent {most} times")
    return verdict


def purges(story: Story) -> Verdict:
    """What was answered before a purge does not come to a receive that was asked for after the
    purge's answer.
    """
    verdict = Verdict("a purge removes what was before")
    for row in story.by_op["purge"]:
        if row["outcome"] != DONE:
            continue
        for sent in story.sent.values():
            if sent.queue != row["place"] or not all(one.result == DONE and one.t1 < row["t0"] for one in sent.tries):
                continue
            gots = [got for copy in story.of.get((row["place"], sent.token), ()) for got in copy.gots]
            after = next((got for got in gots if got.t0 > row["t1"]), None)
            excuse = after is not None and story.excused(row["t0"], row["t1"], after.t1)
            text = (
                f"{sent.token}: sent line {sent.tries[0].n}, purged line {row['n']} "
                f"({row['t0']:.2f}-{row['t1']:.2f} s), came "
            )
            verdict.judge(after is not None, excuse, text + (told(after) if after else ""))
    return verdict
