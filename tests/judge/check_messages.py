"""Checkers of messages: none lost, none invented or altered, batches whole, purged ones gone, equal
ones once, and all in the log.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.judge.history import SQS
from tests.judge.losses import SECOND
from tests.judge.story import Delivery, Message, Plan, Story, Try
from tests.judge.verdict import Verdict

DEDUP_WINDOW_NS = 300 * SECOND


def lost(story: Story) -> Verdict:
    """Every answered send comes to every tag that wants it, and is not gone before somebody has
    settled it.
    """
    verdict = Verdict("no acked send lost")
    for queue, messages in story.messages.items():
        plan = story.plans[queue]
        purged = story.purged_until(queue)
        for message in messages.values():
            if purged >= message.began:
                verdict.saw("purged")
            elif message.ok and not plan.kept and not plan.remade:
                _lost_one(story, verdict, plan, message)
    return verdict


def _lost_one(story: Story, verdict: Verdict, plan: Plan, message: Message) -> None:
    verdict.saw("sends")
    for tag in plan.tags:
        if not plan.wants(tag, message.sent):
            continue
        found = story.found(plan, tag, message)
        if not found and _repeats(story, plan, message):
            verdict.saw("repeats answered anew")
        elif not found:
            verdict.breach(
                "lost", f"{message.sent.uid} (id {message.id}) of {plan.name}/{tag}, answered at {message.op.where()}"
            )
        elif not story.ends(plan, found):
            # Only where the queue was empty at the end is a message that nobody settled gone;
            # `counters` says if it was not.
            verdict.breach("vanished", f"nobody settled {found[-1].where()}")


def _repeats(story: Story, plan: Plan, message: Message) -> bool:
    """Whether it repeats an earlier message that was delivered, and was answered with an id of its
    own while the service was hurt.
    """
    key = plan.dedup_key(message.sent)
    if key is None or not story.losses.hurt(plan.name, message.op.began, message.op.left):
        return False
    earlier = (
        m for m in story.messages[plan.name].values() if plan.dedup_key(m.sent) == key and m.began < message.op.left
    )
    return any(d.it.id != message.id for m in earlier for d in story.by_uid.get((plan.name, m.sent.uid), []))


def phantoms(story: Story) -> Verdict:
    """What is delivered was sent, with this body and these attributes; one send makes one message;
    a tag gets what its filter takes.
    """
    verdict = Verdict("no phantom, no altered body")
    sent = {uid: (queue, message) for queue, messages in story.messages.items() for uid, message in messages.items()}
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    for d in story.all_deliveries():
        verdict.saw("deliveries")
        queue, message = sent.get(d.it.uid, ("", None))
        if message is None or (queue != d.queue and d.queue != story.plans[queue].dead_letters):
            verdict.breach("phantom", d.where())
            continue
        plan = story.plans[queue]
        if (d.it.body, d.it.attributes) != (message.sent.body, message.sent.attributes):
            verdict.breach("altered", f"{d.where()}, sent at {message.op.where()}")
        if d.queue == queue and not plan.remade and not plan.wants(d.tag, message.sent):
            verdict.breach("not wanted", d.where())
        if not message.possible:
            verdict.breach("refused", f"{d.where()}, refused at {message.op.where()}")
        if d.it.origin is None and d.queue != queue and d.op.line.by != SQS:
            verdict.breach("no origin", d.where())
        elif d.it.origin is None and d.queue == queue:
            _doubled(verdict, plan, message, d, ids[queue, d.it.uid])
    return verdict


def _doubled(verdict: Verdict, plan: Plan, message: Message, d: Delivery, ids: set[str]) -> None:
    """A send makes one message, of the id that it was answered with; repeats in a FIFO queue are
    one. SQS tells moved copies from others by their ids alone, so where letters are sent back,
    nobody knows.
    """
    if d.op.line.by == SQS and plan.dead_letters:
        return
    most = 1 if plan.fifo else message.possible
    if most == 1 and len(message.tries) == 1 and message.id:
        ids.add(message.id)
    if d.it.id not in ids:
        ids.add(d.it.id)
        if len(ids) > most:
            verdict.breach("doubled", f"{d.where()}, also with ids {sorted(ids)}, sent at {message.op.where()}")


def batches(story: Story) -> Verdict:
    """Of the messages of one send, all are shown or none; all when it was answered, none when it
    was refused.
    """
    verdict = Verdict("atomic batches all or none")
    for op in story.ops("send"):
        plan = story.plans[op.line.queue]
        if len(op.line.sends) < 2 or plan.fifo or plan.kept or plan.remade or story.ops("purge", plan.name):
            continue
        if op.end is not None and any(result.status == "fail" for result in op.end.results):
            continue  # SQS refuses some of a batch, and says which
        verdict.saw("batches")
        for tag in plan.tags:
            wanted = [s.uid for s in op.line.sends if plan.wants(tag, s)]
            shown = [uid for uid in wanted if story.found(plan, tag, story.messages[plan.name][uid])]
            if shown and len(shown) < len(wanted):
                missing = sorted(set(wanted) - set(shown))
                verdict.breach(
                    "torn", f"{plan.name}/{tag} shows {shown[0]} and not {missing[0]}, {op.outcome} at {op.where()}"
                )
    return verdict


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
            if any(one.outcome != "ok" or one.op.ended >= op.began for one in message.tries):
                continue
            verdict.saw("purged")
            late = [d for d in story.by_uid.get((op.line.queue, message.sent.uid), []) if d.early_ms > after_ms]
            if late:
                excused = story.excused(op.began, op.ended, late[0].op.ended)
                verdict.judge(excused, "came back", f"{late[0].where()}, purged at {op.where()}")
    return verdict


def dedup(story: Story) -> Verdict:
    """Sends with equal deduplication ids within five minutes are one message: one id delivered, and
    equal ids in the answers; a repeat of what was answered does not come.

    While the service is hurt a repeat may be answered with an id of its own (docs/decisions/0004).
    """
    verdict = Verdict("dedup window")
    for queue, messages in story.messages.items():
        groups: dict[tuple[str, str], list[tuple[Message, Try]]] = defaultdict(list)
        for message in messages.values():
            key = story.plans[queue].dedup_key(message.sent)
            if key is not None:
                groups[key] += [(message, one) for one in message.tries]
        for (_, name), same in groups.items():
            same.sort(key=lambda row: row[1].op.began)
            for window in _windows(same):
                _one_message(story, verdict, queue, name, window)
    return verdict


def _windows(same: list[tuple[Message, Try]]) -> list[list[tuple[Message, Try]]]:
    """Runs of sends, all within five minutes of the first of the run as sent and answered."""
    runs: list[list[tuple[Message, Try]]] = []
    for row in same:
        if runs and row[1].op.left - runs[-1][0][1].op.began < DEDUP_WINDOW_NS:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _one_message(story: Story, verdict: Verdict, queue: str, key: str, window: list[tuple[Message, Try]]) -> None:
    verdict.saw("dedup ids")
    verdict.saw("repeats", len(window) - 1)
    tries = [one for _, one in window if one.id]
    answered = {one.id for one in tries}
    calm = {one.id for one in tries if not story.losses.hurt(queue, one.op.began, one.op.left)}
    if len(answered) > 1 and len(calm) <= 1:
        verdict.saw("answered anew", len(answered) - 1)
    elif len(answered) > 1:
        verdict.breach(
            "two ids", f"{key} of {queue} was answered with {sorted(answered)}, first at {window[0][1].op.where()}"
        )
    uids = {message.sent.uid for message, _ in window}
    found = [d for uid in uids for d in story.by_uid.get((queue, uid), []) if d.it.origin is None]
    shown = {d.it.id for d in found}
    if len(shown) > 1:
        verdict.breach(
            "delivered twice", f"{key} of {queue} is {sorted(shown)}, first sent at {window[0][1].op.where()}"
        )
    first = next(((message, one) for message, one in window if one.outcome == "ok"), None)
    for message, one in window:
        if first is None or message is first[0] or one is not message.tries[0] or one.op.began <= first[1].op.ended:
            continue
        for d in found:
            if d.it.uid == message.sent.uid:
                verdict.breach("a repeat came", f"{d.where()}, after {first[0].sent.uid}, {first[1].op.where()}")


def log(story: Story) -> Verdict:
    """A Kafka-native reader finds every answered send in the queue's topic; in a standard queue
    once, and never twice.
    """
    verdict = Verdict("Kafka-native readers see each answered send once")
    rows = {tuple(row) for line in story.notes("log") for row in line.args["rows"]}
    seen = Counter((queue, uid) for queue, _, _, uid in rows)
    moves = {plan.name for dead, plan in story.sources().items() if story.ops("redrive", dead)}
    for queue, messages in story.messages.items() if rows else ():
        plan = story.plans[queue]
        if plan.remade or story.ops("purge", queue):
            continue
        for uid, message in messages.items():
            verdict.saw("sends")
            times = seen[queue, uid]
            if message.ok and not times:
                verdict.breach("not stored", f"{uid}, answered at {message.op.where()}, not in the topic of {queue}")
            if not plan.fifo and queue not in moves and times > message.possible:
                verdict.breach("stored twice", f"{uid} is {times} times in the topic of {queue}: {message.op.where()}")
    return verdict
