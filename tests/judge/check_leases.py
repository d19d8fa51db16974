"""Checkers of deliveries under one tag: one holder at a time, acked is acked, stale is harmless,
counts grow, nothing is early.

All times compared are the server's own: no tolerance.
"""

from __future__ import annotations

import itertools

from tests.judge.history import UNTOLD, Sent
from tests.judge.story import Delivery, Settle, Story
from tests.judge.verdict import Verdict


def exclusive(story: Story) -> Verdict:
    """While a lease lasts, nobody else is leased the message under that tag; a delivery is told to
    one receive.
    """
    verdict = Verdict("lease exclusivity")
    for found in story.deliveries.values():
        holder: Delivery | None = None
        for d in found:
            verdict.saw("leases")
            until = _held_until(story, holder, d.op.ended) if holder is not None else 0.0
            if holder is not None and d.received_ms < until:
                if story.excused(_leased_from(holder), _leased_to(holder), d.op.ended):
                    verdict.saw("overlaps excused")
                else:
                    verdict.breach(
                        "overlap", f"{holder.where()} lasts {until - d.received_ms:.0f} ms more; {d.where()}"
                    )
            if _held_until(story, d, d.op.ended) >= until:
                holder = d
    for twins in story.by_handle.values():
        if len(twins) > 1:
            verdict.breach("told twice", f"{twins[0].where()} and line {twins[1].op.lines[1]} have one handle")
    return verdict


def _held_until(story: Story, d: Delivery, seen_at: int) -> float:
    """Server ms until which the lease surely lasts, after all that was or may have been done with
    its handle until `seen_at`.

    What was asked later does not count: a handle that was stale may be good again, when a loss has
    forgotten the delivery after it.
    """
    until: float = d.it.visible_ms
    for s in sorted((s for s in d.settles if s.op.began < seen_at), key=lambda s: s.op.began):
        if s.verb == "extend" and s.done and s.result is not None:
            until = s.result.visible_ms
        elif s.verb == "release" and s.done and s.result is not None:
            until = min(until, s.result.visible_ms - s.op.line.args["delay_ms"])
        elif s.done or s.unknown:
            until = min(until, story.history.ms(s.op.began))
    return until


def _leased_from(d: Delivery) -> int:
    return d.op.began


def _leased_to(d: Delivery) -> int:
    """The latest change of the lease: an extension that was not drained is forgotten with a
    loss.
    """
    return max([d.op.ended] + [s.op.ended for s in d.settles if s.verb == "extend" and s.done])


def acked_stays(story: Story) -> Verdict:
    """A message is not delivered again after an ack of its latest delivery was answered by ok."""
    verdict = Verdict("acked stays acked")
    for (queue, _, _), found in story.deliveries.items():
        for index, d in enumerate(found):
            ack = d.acked()
            if ack is None:
                continue
            verdict.saw("acks")
            later = [other for other in found[index + 1 :] if other.received_ms > d.received_ms]
            # A stale handle that was taken for good is the next checker's.
            later = [other for other in later if not _known_before(other, ack)]
            if not later:
                continue
            verdict.saw("delivered again after an ack")
            if not story.plans[queue].durable and story.excused(ack.op.began, ack.op.ended, later[0].op.ended):
                verdict.saw("excused")
            else:
                verdict.breach("ack forgotten", f"acked at {ack.op.where()}, then {later[0].where()}")
    return verdict


def stale(story: Story) -> Verdict:
    """A handle whose message was delivered again since, changes nothing and is answered so."""
    verdict = Verdict("stale handles harmless")
    for found in story.deliveries.values():
        for index, d in enumerate(found):
            for s in d.settles:
                verdict.saw("handles used")
                verdict.saw("stale answers", s.result is not None and s.result.status == "stale")
                newer = [
                    other
                    for other in found[index + 1 :]
                    if other.received_ms > d.received_ms and _known_before(other, s)
                ]
                # Redis may have forgotten the newer delivery: then the older one is the latest that
                # it knows.
                newer = [n for n in newer if not story.excused(n.op.began, n.op.ended, s.op.ended)]
                if s.done and newer:
                    verdict.breach(
                        "stale handle obeyed", f"{s.verb} at {s.op.where()} of {d.where()}, after {newer[0].where()}"
                    )
            _settled_twice(story, verdict, d)
    return verdict


def _settled_twice(story: Story, verdict: Verdict, d: Delivery) -> None:
    """One handle ends its delivery once: by an ack, a kill or a release."""
    done = [s for s in d.settles if s.done and s.verb in ("ack", "kill", "release")]
    for first, second in itertools.pairwise(done):
        if not story.excused(first.op.began, first.op.ended, second.op.ended):
            verdict.breach(
                "settled twice",
                f"{first.verb} at {first.op.where()}, {second.verb} at {second.op.where()}: {d.where()}",
            )


def _known_before(other: Delivery, s: Settle) -> bool:
    """Whether the client of `other` had it before the verb was asked for."""
    return other.op.ended < s.op.began


def counts(story: Story) -> Verdict:
    """Receive counts of a message under a tag grow by one or more; only what was not drained may be
    forgotten with Redis.
    """
    verdict = Verdict("receive counts monotone")
    for found in story.deliveries.values():
        for index, d in enumerate(found):
            verdict.saw("deliveries")
            if d.it.count == UNTOLD:
                continue
            if d.it.count < 1:
                verdict.breach("no count", d.where())
            higher = [e for e in found[:index] if e.it.count >= d.it.count and e.received_ms <= d.received_ms]
            forgotten = [e for e in higher if story.excused(e.op.began, e.op.ended, d.op.ended)]
            if higher and len(forgotten) == len(higher):
                verdict.saw("falls excused")
            elif higher:
                kept = next(e for e in higher if e not in forgotten)
                verdict.breach("fell", f"{kept.where()}, then {d.where()}")
    return verdict


def never_early(story: Story) -> Verdict:
    """No delivery before the send's delay, or a release's, is over."""
    verdict = Verdict("never early")
    for (queue, _, _), found in story.deliveries.items():
        for index, d in enumerate(found):
            sent = _sent(story, queue, d)
            if sent is not None and sent.delay_ms:
                verdict.saw("delays")
                if d.received_ms < d.it.sent_ms + sent.delay_ms:
                    verdict.breach(
                        "early",
                        f"{d.it.sent_ms + sent.delay_ms - d.received_ms} ms before its delay is over: {d.where()}",
                    )
            for s in d.settles:
                if s.verb == "release" and s.done:
                    _after_release(story, verdict, s, found[index + 1 :])
    return verdict


def _sent(story: Story, queue: str, d: Delivery) -> Sent | None:
    """The send that this delivery is of; a moved copy has no delay."""
    message = story.messages[queue].get(d.it.uid)
    return message.sent if message is not None and d.it.origin is None else None


def _after_release(story: Story, verdict: Verdict, s: Settle, later: list[Delivery]) -> None:
    verdict.saw("releases")
    due = s.result.visible_ms if s.result is not None else 0
    for d in later[:1]:
        if d.received_ms < due and not story.excused(s.op.began, s.op.ended, d.op.ended):
            verdict.breach("early", f"{due - d.received_ms} ms before its release at {s.op.where()}: {d.where()}")
