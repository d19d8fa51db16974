"""Checkers of dead letters: every message of a queue with a redrive policy ends exactly once,
through all its copies, was delivered as often as the policy says, and dies in time.

A message dies at most once as each copy, each death makes one letter, each letter is redriven at
most once or acked. So the copies of a message together have exactly one ack.
"""

from __future__ import annotations

from tests.judge.carried import Claim, carried, unexplained
from tests.judge.history import SQS, Op
from tests.judge.losses import SECOND
from tests.judge.story import Delivery, Message, Plan, Settle, Story
from tests.judge.verdict import Verdict

# A lost mover is waited for so long (docs/reference/failures.md).
MOVER_S = 30.0


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
    # SQS tells a letter under the id of the message that died.
    acked: dict[tuple[str, str], Settle] = {}
    unknown = False
    for d in here + dead:
        for s in d.by("ack"):
            if s.done:
                acked.setdefault((d.queue, d.it.id), s)
            else:
                unknown = True
    verdict.saw("died", bool(dead))
    if len(acked) > 1 and len(message.tries) == 1:
        in_time = sorted(acked.values(), key=lambda s: s.op.began)
        risen = {key for key, s in acked.items() if _rose(story, key, s, here + dead)}
        # All but the last may have been forgotten with Redis.
        kept = [s for s in in_time[:-1] if not story.excused(s.op.began, s.op.ended, in_time[-1].op.ended)]
        verdict.judge(
            not (len(acked) - len(risen) > 1 and kept),
            "ended twice",
            f"{message.sent.uid}: acks at {', '.join(s.op.where() for s in in_time)}",
        )
    elif not acked and not unknown and message.ok:
        last = (here + dead)[-1].where() if here + dead else f"sent at {message.op.where()}"
        verdict.breach("never ended", last)


def _rose(story: Story, key: tuple[str, str], ack: Settle, found: list[Delivery]) -> bool:
    """Whether a copy died, a loss of Redis forgot that, and it was acked after: its letter is there
    as well.

    Its letter tells when it died; of a letter that SQS told, only the end of the last lease is
    known.
    """
    queue, died = key
    deaths = [(s.op.began, s.op.ended) for d in found if d.it.id == died for s in d.by("kill")]
    deaths += [(at, at) for child in story.children.get(died, []) for at in [_sent_at(story, child)]]
    if any(d.op.line.by == SQS and d.queue != queue for d in found):
        lapses = [_lapsed_at(story, d) for d in found if (d.queue, d.it.id) == key]
        deaths += [(at, at + int(MOVER_S * SECOND)) for at in lapses]
    return any(began < ack.op.ended and story.excused(began, ended, ack.op.ended) for began, ended in deaths)


def _sent_at(story: Story, letter: Delivery) -> int:
    """Monotonic ns of the time at which a letter was made."""
    return letter.it.sent_ms * 1_000_000 - story.history.wall_ns


def _lapsed_at(story: Story, d: Delivery) -> int:
    """Monotonic ns at which the lease of a delivery was over at the latest, if it was not used
    up.
    """
    leases = [(d.op.ended, int(d.op.line.args["lease_ms"]))]
    leases += [(s.op.left, s.op.line.args.get("lease_ms", 0)) for s in d.by("extend")]
    return max(at + lease_ms * 1_000_000 for at, lease_ms in leases)


def _no_more_letters_than_deaths(verdict: Verdict, here: list[Delivery], dead: list[Delivery]) -> None:
    """Letters, seen or told of by a redriven copy, are at most as many as the copies that could
    die.
    """
    redriven = {d.it.origin.from_id for d in here if d.it.origin is not None}
    if redriven and any(d.op.line.by == SQS for d in here):
        return  # which does not tell that a copy was redriven
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
        return  # not told by SQS; else a phantom: its own checker says so
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


def undelivered(story: Story) -> Verdict:
    """Every dead letter that was not killed was delivered as often as the policy says, to clients
    that got the answer, or to some of which nobody knows it.
    """
    verdict = Verdict("no letter dies undelivered")
    for plan in story.plans.values():
        claims: dict[str, list[tuple[Claim, Delivery]]] = {}
        for letter in _letters(story, plan):
            source = _source(story, plan, letter)
            tag = letter.it.origin.from_tag if letter.it.origin is not None else "default"
            killed = any(True for d in source for _ in d.by("kill"))
            verdict.saw("killed" if killed else "letters")
            if killed:
                continue
            copies: dict[str, int] = {}
            for d in source:
                copies[d.it.id] = copies.get(d.it.id, 0) + (d.op.began < letter.op.ended)
            message = story.messages[plan.name].get(letter.it.uid)
            missing = max(0, plan.max_count - max(copies.values(), default=0))
            claim = Claim(missing, message.began if message else 0, letter.op.ended)
            claims.setdefault(tag, []).append((claim, letter))
        for tag, some in claims.items():
            explained, rest = unexplained(carried(story, plan.name, tag), some)
            verdict.saw("explained, excused", explained)
            for d in rest:
                verdict.breach("too few", f"of {plan.max_count} deliveries were received: {d.where()}")
    return verdict


def _letters(story: Story, plan: Plan) -> list[Delivery]:
    """The first delivery of each dead letter of a queue."""
    dead = plan.dead_letters
    return [found[0] for (queue, _, _), found in story.deliveries.items() if dead and queue == dead]


def _source(story: Story, plan: Plan, letter: Delivery) -> list[Delivery]:
    """The deliveries of the copy that died, or of all where it is not told which of them did."""
    if letter.it.origin is not None:
        return story.deliveries.get((plan.name, letter.it.origin.from_tag, letter.it.origin.from_id), [])
    return story.by_uid.get((plan.name, letter.it.uid), [])


def overdelivered(story: Story) -> Verdict:
    """A message is not delivered more often than its policy says, but for counts that a loss of
    Redis may have taken back.
    """
    verdict = Verdict("the most deliveries are kept")
    for (queue, _, _), found in story.deliveries.items():
        most = story.plans[queue].max_count
        if not most:
            continue
        verdict.saw("messages")
        forgotten = sum(story.excused(d.op.began, d.op.ended, found[-1].op.ended) for d in found)
        if len(found) > most:
            text = f"{len(found)} of {most} deliveries: {found[-1].where()}"
            verdict.judge(len(found) - most <= forgotten, "too many", text)
    return verdict


def late(story: Story, back_s: float) -> Verdict:
    """A letter is there within the bounds of a lost mover and of recovery (seconds), after it was
    due and the last fault before it was over.
    """
    verdict = Verdict("letters are not late")
    bound = int((MOVER_S + back_s) * SECOND)
    for plan in story.plans.values():
        looks: list[Op] = [op for op in story.ops("info", plan.name) if op.line.args.get("rest")]
        for letter in _letters(story, plan):
            source = _source(story, plan, letter)
            told = letter.it.origin is not None
            # One that was sent back may die again, and SQS does not tell which death it was. At the
            # end a letter comes when somebody asks for it.
            if not source or (not told and (story.ops("redrive", plan.dead_letters) or _over(looks, letter))):
                continue
            verdict.saw("letters")
            due = max(_lapsed_at(story, d) for d in source)
            # The clock of a worker, which says when it was moved, may have been set.
            came = min(_sent_at(story, letter), letter.op.ended) if told else letter.op.ended
            # What is under way still when the letter comes delays it no longer.
            healed = [min(f.healed, came) for f in story.history.faults if f.began < min(due + bound, came)]
            if came - max([due, *healed]) > bound:
                seconds = (came - max([due, *healed])) / SECOND
                verdict.breach("late", f"{seconds:.1f} s after it was due: {letter.where()}")
    return verdict


def _over(looks: list[Op], letter: Delivery) -> bool:
    return any(look.began < letter.op.began for look in looks)
