"""Checkers of messages: none lost, none invented or altered, batches whole, purged ones gone, equal
ones once.
"""

from __future__ import annotations

from collections import defaultdict

from tests.judge.history import NEVER, Op
from tests.judge.story import Message, Plan, Story
from tests.judge.verdict import Verdict

DEDUP_WINDOW_NS = 300 * 1_000_000_000


def lost(story: Story) -> Verdict:
    """Every answered send comes to every tag that wants it, and is not gone before somebody has
    settled it.
    """
    verdict = Verdict("no acked send lost")
    for queue, messages in story.messages.items():
        plan = story.plans[queue]
        purges = story.ops("purge", queue)
        for message in messages.values():
            if any(p.ended >= message.op.began for p in purges):
                verdict.saw("purged")
            elif message.op.ok and not plan.kept:
                _lost_one(story, verdict, plan, message)
    return verdict


def _lost_one(story: Story, verdict: Verdict, plan: Plan, message: Message) -> None:
    verdict.saw("sends")
    for tag in plan.tags:
        if not plan.wants(tag, message.sent):
            continue
        found = story.deliveries.get((plan.name, tag, message.id), [])
        if message.id in story.moved:
            continue
        if not found and _repeats(story, plan, message):
            verdict.saw("repeats answered anew")
        elif not found:
            verdict.breach(
                "lost", f"{message.sent.uid} (id {message.id}) of {plan.name}/{tag}, answered at {message.op.where()}"
            )
        elif not any(s for d in found for s in d.by("ack", "kill")):
            # Only where the queue was empty at the end is a message that nobody settled gone;
            # `counters` says if it was not.
            verdict.breach("vanished", f"nobody settled {found[-1].where()}")


def _repeats(story: Story, plan: Plan, message: Message) -> bool:
    """Whether it repeats an earlier message that was delivered, and was answered with an id of its
    own while the service was hurt.
    """
    key = _dedup_key(plan, message)
    if key is None or not story.hurt(plan.name, message.op.began, _end(message.op)):
        return False
    earlier = (
        m for m in story.messages[plan.name].values() if _dedup_key(plan, m) == key and m.op.began < _end(message.op)
    )
    return any(d.it.id != message.id for m in earlier for d in story.by_uid.get((plan.name, m.sent.uid), []))


def _dedup_key(plan: Plan, message: Message) -> tuple[str, str] | None:
    key = message.sent.dedup or (message.sent.body if plan.content_dedup else "")
    return (message.sent.group if plan.dedup_scope == "group" else "", key) if plan.fifo and key else None


def phantoms(story: Story) -> Verdict:
    """What is delivered was sent, with this body and these attributes; one send makes one message;
    a tag gets what its filter takes.
    """
    verdict = Verdict("no phantom, no altered body")
    sent = {uid: (queue, message) for queue, messages in story.messages.items() for uid, message in messages.items()}
    first_ids: dict[tuple[str, str], str] = {}
    for d in story.all_deliveries():
        verdict.saw("deliveries")
        queue, message = sent.get(d.it.uid, ("", None))
        if message is None or (queue != d.queue and d.queue != story.plans[queue].dead_letters):
            verdict.breach("phantom", d.where())
            continue
        if (d.it.body, d.it.attributes) != (message.sent.body, message.sent.attributes):
            verdict.breach("altered", f"{d.where()}, sent at {message.op.where()}")
        if d.queue == queue and not story.plans[queue].wants(d.tag, message.sent):
            verdict.breach("not wanted", d.where())
        if d.it.origin is not None:
            continue
        if d.queue != queue:
            verdict.breach("no origin", d.where())
        if message.op.outcome == "fail":
            verdict.breach("refused", f"{d.where()}, refused at {message.op.where()}")
        first = first_ids.setdefault((queue, d.it.uid), message.id or d.it.id)
        if first != d.it.id:
            verdict.breach("doubled", f"{d.where()}, also with id {first}, sent at {message.op.where()}")
    return verdict


def batches(story: Story) -> Verdict:
    """Of the messages of one send, all are shown or none; all when it was answered, none when it
    was refused.
    """
    verdict = Verdict("atomic batches all or none")
    for op in story.ops("send"):
        plan = story.plans[op.line.queue]
        if len(op.line.sends) < 2 or plan.fifo or plan.kept or story.ops("purge", plan.name):
            continue
        verdict.saw("batches")
        for tag in plan.tags:
            wanted = [s.uid for s in op.line.sends if plan.wants(tag, s)]
            shown = [uid for uid in wanted if _shown(story, plan, tag, uid)]
            if shown and len(shown) < len(wanted):
                missing = sorted(set(wanted) - set(shown))
                verdict.breach(
                    "torn", f"{plan.name}/{tag} shows {shown[0]} and not {missing[0]}, {op.outcome} at {op.where()}"
                )
    return verdict


def _shown(story: Story, plan: Plan, tag: str, uid: str) -> bool:
    """Under this tag or, when it died unseen, as a letter of it."""
    if any(d.tag == tag for d in story.by_uid.get((plan.name, uid), [])):
        return True
    letters = story.by_uid.get((plan.dead_letters, uid), [])
    return any(d.it.origin is not None and d.it.origin.from_tag == tag for d in letters)


def purges(story: Story) -> Verdict:
    """Nothing that was sent and answered before a purge began is delivered after the purge was
    answered.
    """
    verdict = Verdict("purge")
    answered = [op for op in story.ops("purge") if op.ok]
    verdict.saw("purges", len(answered))
    for op in answered:
        after_ms = story.history.ms(op.ended)
        for message in story.messages[op.line.queue].values():
            if not message.op.ok or message.op.ended >= op.began:
                continue
            verdict.saw("purged")
            late = [d for d in story.by_uid.get((op.line.queue, message.sent.uid), []) if d.received_ms > after_ms]
            if not late:
                continue
            if story.excused(op.began, op.ended, late[0].op.ended):
                verdict.saw("excused")
            else:
                verdict.breach("came back", f"{late[0].where()}, purged at {op.where()}")
    return verdict


def dedup(story: Story) -> Verdict:
    """Sends with equal deduplication ids within five minutes are one message: one id delivered, and
    equal ids in the answers.

    While the service is hurt a repeat may be answered with an id of its own (docs/decisions/0004).
    """
    verdict = Verdict("dedup window")
    for queue, messages in story.messages.items():
        plan = story.plans[queue]
        if not plan.fifo:
            continue
        groups: dict[tuple[str, str], list[Message]] = defaultdict(list)
        for message in messages.values():
            found = _dedup_key(plan, message)
            if found is not None:
                groups[found].append(message)
        for (_, key), same in groups.items():
            same.sort(key=lambda m: m.op.began)
            for window in _windows(same):
                _one_message(story, verdict, queue, key, window)
    return verdict


def _windows(same: list[Message]) -> list[list[Message]]:
    """Runs of sends, all within five minutes of the first of the run as sent and answered."""
    runs: list[list[Message]] = []
    for message in same:
        if runs and _end(message.op) - runs[-1][0].op.began < DEDUP_WINDOW_NS:
            runs[-1].append(message)
        else:
            runs.append([message])
    return runs


def _end(op: Op) -> int:
    return op.end.at if op.end is not None else NEVER


def _one_message(story: Story, verdict: Verdict, queue: str, key: str, window: list[Message]) -> None:
    verdict.saw("dedup ids")
    verdict.saw("repeats", len(window) - 1)
    answered = {m.id for m in window if m.op.ok}
    calm = {m.id for m in window if m.op.ok and not story.hurt(queue, m.op.began, _end(m.op))}
    if len(answered) > 1 and len(calm) <= 1:
        verdict.saw("answered anew", len(answered) - 1)
    elif len(answered) > 1:
        verdict.breach(
            "two ids", f"{key} of {queue} was answered with {sorted(answered)}, first at {window[0].op.where()}"
        )
    uids = {m.sent.uid for m in window}
    shown = {d.it.id for uid in uids for d in story.by_uid.get((queue, uid), []) if d.it.origin is None}
    if len(shown) > 1:
        verdict.breach("delivered twice", f"{key} of {queue} is {sorted(shown)}, first sent at {window[0].op.where()}")
