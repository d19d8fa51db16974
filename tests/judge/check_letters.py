"""Checker of dead letters: every message of a queue with a redrive policy ends exactly once,
through all its copies.

A message dies at most once as each copy, each death makes one letter, each letter is redriven at
most once or acked. So the copies of a message together have exactly one ack.
"""

from __future__ import annotations

from tests.judge.story import Delivery, Message, Plan, Settle, Story
from tests.judge.verdict import Verdict


def letters(story: Story) -> Verdict:
    """Each message ends by one ack, as itself, as a letter or redriven; letters say the truth about
    where they come from.
    """
    verdict = Verdict("DLQ conservation")
    for plan in story.plans.values():
        if not plan.dead_letters or story.ops("purge", plan.name):
            continue
        _copied_twice(story, verdict, plan)
        for uid, message in story.messages[plan.name].items():
            here = story.by_uid.get((plan.name, uid), [])
            dead = story.by_uid.get((plan.dead_letters, uid), [])
            _ends_once(story, verdict, message, here, dead)
            _no_more_letters_than_deaths(verdict, here, dead)
            for d in dead:
                _true_origin(story, verdict, plan, d)
    return verdict


def _copied_twice(story: Story, verdict: Verdict, plan: Plan) -> None:
    """One copy of a message has at most one child: at rest a letter, or a redriven message, is
    there once.
    """
    children: dict[tuple[str, str, str], Delivery] = {}
    for d in story.all_deliveries():
        if d.queue not in (plan.name, plan.dead_letters) or d.it.origin is None:
            continue
        first = children.setdefault((d.queue, d.it.origin.from_id, d.it.origin.from_tag), d)
        if first.it.id != d.it.id:
            verdict.breach("two copies", f"of {d.it.origin.from_id}: {first.where()} and {d.where()}")


def _ends_once(story: Story, verdict: Verdict, message: Message, here: list[Delivery], dead: list[Delivery]) -> None:
    verdict.saw("messages")
    acked: dict[str, Settle] = {}
    unknown: set[str] = set()
    for d in here + dead:
        for s in d.by("ack"):
            if s.done:
                acked.setdefault(d.it.id, s)
            else:
                unknown.add(d.it.id)
    verdict.saw("died", bool(dead))
    if len(acked) > 1:
        in_time = sorted(acked.values(), key=lambda s: s.op.began)
        risen = {key for key, s in acked.items() if _rose(story, key, s, here + dead)}
        # All but the last may have been forgotten with Redis.
        kept = [s for s in in_time[:-1] if not story.excused(s.op.began, s.op.ended, in_time[-1].op.ended)]
        if len(acked) - len(risen) > 1 and kept:
            verdict.breach(
                "ended twice", f"{message.sent.uid}: ack at {kept[0].op.where()} and at {in_time[-1].op.where()}"
            )
        else:
            verdict.saw("ends excused")
    elif not acked and not unknown and message.op.ok:
        last = (here + dead)[-1].where() if here + dead else f"sent at {message.op.where()}"
        verdict.breach("never ended", last)


def _rose(story: Story, id: str, ack: Settle, found: list[Delivery]) -> bool:
    """Whether a copy died, a loss of Redis forgot that, and it was acked after: its letter is there
    as well.
    """
    deaths = [(s.op.began, s.op.ended) for d in found if d.it.id == id for s in d.by("kill")]
    deaths += [
        (at, at)
        for child in story.children.get(id, [])
        for at in [child.it.sent_ms * 1_000_000 - story.history.wall_ns]
    ]
    return any(began < ack.op.ended and story.excused(began, ended, ack.op.ended) for began, ended in deaths)


def _no_more_letters_than_deaths(verdict: Verdict, here: list[Delivery], dead: list[Delivery]) -> None:
    """Letters, seen or told of by a redriven copy, are at most as many as the copies that could
    die.
    """
    redriven = {d.it.origin.from_id for d in here if d.it.origin is not None}
    seen = {d.it.id for d in dead}
    verdict.saw("letters", len(seen | redriven))
    verdict.saw("redriven", len(redriven))
    if len(seen | redriven) > 1 + len(redriven):
        verdict.breach(
            "too many letters", f"{len(seen | redriven)} letters, {len(redriven)} redriven: {dead[-1].where()}"
        )


def _true_origin(story: Story, verdict: Verdict, plan: Plan, letter: Delivery) -> None:
    origin = letter.it.origin
    if origin is None:
        return  # a phantom: its own checker says so
    source = story.deliveries.get((plan.name, origin.from_tag, origin.from_id), [])
    if origin.original_queue != plan.name:
        verdict.breach("wrong origin", f"{letter.where()} says {origin.original_queue}")
    if any(d.it.uid != letter.it.uid for d in source):
        verdict.breach("wrong origin", f"{letter.where()} says {origin.from_id}, which is another message")
    kills = [(d, s) for d in source for s in d.by("kill")]
    if origin.reason == "killed":
        if not kills:
            verdict.breach("wrong reason", f"{letter.where()} says killed; nobody has asked for it")
        elif all(s.done for _, s in kills) and origin.count != kills[-1][0].it.count:
            verdict.breach("wrong count", f"{letter.where()} says {origin.count}, killed in {kills[-1][0].where()}")
    elif origin.reason == "exhausted":
        if origin.count != plan.max_count:
            verdict.breach("wrong count", f"{letter.where()} says exhausted after {origin.count} of {plan.max_count}")
        killed = [s for _, s in kills if s.done and not story.excused(s.op.began, s.op.ended, letter.op.ended)]
        if killed:
            verdict.breach("wrong reason", f"{letter.where()} says exhausted; killed at {killed[0].op.where()}")
    else:
        verdict.breach("wrong reason", f"{letter.where()} says {origin.reason!r}")
