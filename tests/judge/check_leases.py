"""Checkers of deliveries under one tag: one holder at a time, acked is acked, stale is harmless,
counts grow and have no more than was delivered, nothing is early.

The times compared are the server's own, without tolerance, where answers tell them; else those of
the client's clock, by which the promise is surely broken.
"""

from __future__ import annotations

import itertools

from tests.judge.carried import Claim, carried, unexplained
from tests.judge.history import SQS, UNTOLD
from tests.judge.story import MARGIN_MS, Delivery, Message, Settle, Story
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
            until = story.held_until(holder, d.op) if holder is not None else 0.0
            if holder is not None and d.received_ms < until and not _other_way_round(story, holder, d):
                verdict.judge(
                    _forgotten(story, holder, d),
                    "overlap",
                    f"{holder.where()} lasts {until - d.received_ms:.0f} ms more; {d.where()}",
                )
            if story.held_until(d, d.op) >= until:
                holder = d
    for twins in story.by_handle.values():
        if len(twins) > 1:
            verdict.breach("told twice", f"{twins[0].where()} and line {twins[1].op.lines[1]} have one handle")
    return verdict


def _other_way_round(story: Story, holder: Delivery, d: Delivery) -> bool:
    """Whether `d` may have been leased first, and was over when the holder was leased."""
    return d.early_ms < holder.received_ms and holder.received_ms >= story.held_until(d, holder.op)


def _forgotten(story: Story, holder: Delivery, d: Delivery) -> bool:
    """Whether a loss may have taken back the lease: its latest change, which an extension may
    be.
    """
    ended = max([holder.op.ended] + [s.op.ended for s in holder.settles if s.verb == "extend" and s.done])
    first = d.early_ms < holder.received_ms and story.excused(d.op.began, d.op.ended, holder.op.ended)
    return first or story.excused(holder.op.began, ended, d.op.ended)


def acked_stays(story: Story) -> Verdict:
    """A message is not delivered again after an ack of its latest delivery was answered by ok."""
    verdict = Verdict("acked stays acked")
    for (queue, _, _), found in story.deliveries.items():
        for index, d in enumerate(found):
            ack = next((s for s in d.settles if s.verb == "ack" and s.done), None)
            if ack is None:
                continue
            verdict.saw("acks")
            # A stale handle that was taken for good is the next checker's.
            later = [other for other in found[index + 1 :] if _after(d, ack, other) and not _known_before(other, ack)]
            if later:
                excused = not story.plans[queue].durable and story.excused(
                    ack.op.began, ack.op.ended, later[0].op.ended
                )
                verdict.judge(excused, "ack forgotten", f"acked at {ack.op.where()}, then {later[0].where()}")
    return verdict


def _after(d: Delivery, ack: Settle, other: Delivery) -> bool:
    """Whether a delivery comes after an acked one: by the server's times, or because it was asked
    for after the ack.
    """
    return d.before(other) if d.told and other.told else other.op.began > ack.op.ended


def stale(story: Story) -> Verdict:
    """A handle whose message was delivered again since, changes nothing and is answered so."""
    verdict = Verdict("stale handles harmless")
    for found in story.deliveries.values():
        for index, d in enumerate(found):
            for s in d.settles:
                verdict.saw("handles used")
                verdict.saw("stale answers", s.result is not None and s.result.status == "stale")
                newer = [other for other in found[index + 1 :] if d.before(other) and _known_before(other, s)]
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
    """Receive counts of a message under a tag grow by one or more, and are no less than what
    clients have seen; only what was not drained may be forgotten with Redis.
    """
    verdict = Verdict("receive counts monotone")
    for found in story.deliveries.values():
        for index, d in enumerate(found):
            verdict.saw("deliveries")
            if d.it.count == UNTOLD:
                continue
            if d.it.count < 1:
                verdict.breach("no count", d.where())
            earlier = [e for e in found[:index] if e.before(d) or (e.told and e.received_ms == d.received_ms)]
            kept = [e for e in earlier if not story.excused(e.op.began, e.op.ended, d.op.ended)]
            higher = [e for e in earlier if e.it.count >= d.it.count]
            if higher:
                kept_higher = [e for e in higher if e in kept]
                verdict.judge(not kept_higher, "fell", f"{(kept_higher or higher)[0].where()}, then {d.where()}")
            elif d.it.count <= len(kept):
                verdict.breach("too few", f"{len(kept)} were delivered before {d.where()}")
    return verdict


def uncarried(story: Story) -> Verdict:
    """A delivery that no answer carried is not counted; a receive whose answer nobody has may have
    carried some.

    SQS goes on counting in a dead-letter queue where the source left off.
    """
    verdict = Verdict("no delivery is counted that no answer carried")
    claims: dict[tuple[str, str], list[tuple[Claim, Delivery]]] = {}
    for (queue, tag, _), found in story.deliveries.items():
        if not story.plans[queue].remade:
            verdict.saw("messages")
            top = max(found, key=lambda d: d.it.count)
            claims.setdefault((queue, tag), []).append((_uncounted(story, found, top), top))
    for (queue, tag), some in claims.items():
        explained, rest = unexplained(carried(story, queue, tag), some)
        verdict.saw("explained, excused", explained)
        for d in rest:
            verdict.breach("counted and not carried", d.where())
    return verdict


def _uncounted(story: Story, found: list[Delivery], top: Delivery) -> Claim:
    # An answer may reach its client later than that of a receive which came after it.
    seen = sum(d.op.began <= top.op.ended for d in found)
    source = story.sources().get(top.queue)
    if source is not None and top.op.line.by == SQS:
        seen += len(story.by_uid.get((source.name, top.it.uid), []))
    message = _message(story, top)
    return Claim(max(0, top.it.count - seen), message.began if message else 0, top.op.ended)


def _message(story: Story, d: Delivery) -> Message | None:
    """The message that was sent, to this queue or to that which has its dead letters here."""
    source = story.sources().get(d.queue)
    places = [d.queue, *([source.name] if source else [])]
    return next((m for name in places if (m := story.messages[name].get(d.it.uid)) is not None), None)


def never_early(story: Story) -> Verdict:
    """No delivery before the send's delay, or a release's, is over."""
    verdict = Verdict("never early")
    for (queue, _, _), found in story.deliveries.items():
        for index, d in enumerate(found):
            message = story.messages[queue].get(d.it.uid)
            # A moved copy has no delay.
            if message is not None and d.it.origin is None and message.possible:
                verdict.saw("delays" if message.sent.delay_ms else "sends")
                due = _due(story, message, d)
                if d.received_ms < due:
                    verdict.breach("early", f"{due - d.received_ms:.0f} ms before its delay is over: {d.where()}")
            for s in d.settles:
                if s.verb == "release" and s.done:
                    _after_release(story, verdict, s, found[index + 1 :])
    return verdict


def _due(story: Story, message: Message, d: Delivery) -> float:
    """When a message may come first: by the server's time of its send where it is told, else by the
    first time at which it may have been sent.
    """
    if d.told:
        # The clock of a worker, which says when it was sent, may not be that of leases.
        return d.it.sent_ms + message.sent.delay_ms if message.sent.delay_ms else 0
    first = min(one.op.began for one in message.tries if one.outcome != "fail")
    return story.history.ms(first) + message.sent.delay_ms - MARGIN_MS


def _after_release(story: Story, verdict: Verdict, s: Settle, later: list[Delivery]) -> None:
    verdict.saw("releases")
    due = s.result.visible_ms if s.result is not None else 0
    for d in later[:1]:
        if d.received_ms < due and not story.excused(s.op.began, s.op.ended, d.op.ended):
            verdict.breach("early", f"{due - d.received_ms:.0f} ms before its release at {s.op.where()}: {d.where()}")
