"""Checkers of the whole: counters at rest, answers, and how soon the service is back after a
fault.
"""

from __future__ import annotations

from tests.judge.history import NEVER, Fault, Op
from tests.judge.story import SECOND, Plan, Story
from tests.judge.verdict import Verdict

STATES = ("waiting", "delayed", "leased")


def counters(story: Story) -> Verdict:
    """Counts of a queue at rest are what the history says: between what is certain and what unknown
    outcomes allow.

    An `info` of args `rest` is a look while no verb is under way on that queue; every queue must
    have one, the last one counts. `empty`: all was received until nothing came any more. waiting =
    ready + stored: how they share is the window's affair.
    """
    verdict = Verdict("counters true at rest")
    looks = {op.line.queue: op for op in story.ops("info") if op.line.args.get("rest")}
    for plan in story.plans.values():
        look = looks.get(plan.name)
        if look is None or not look.ok or look.end is None:
            verdict.breach("no look", f"queue {plan.name} was never seen at rest")
            continue
        for tag, told in look.end.answer.items():
            verdict.saw("counts", len(STATES))
            empty = look.line.args.get("empty")
            bounds = dict.fromkeys(STATES, (0, 0)) if empty else _bounds(story, plan, tag, look)
            found = {**told, "waiting": told["ready"] + told["stored"]}
            for state, (least, most) in bounds.items():
                if not least <= found[state] <= most:
                    wanted = str(least) if least == most else f"{least} to {most}"
                    verdict.breach(
                        "untrue", f"{plan.name}/{tag} has {found[state]} {state}, not {wanted}: {look.where()}"
                    )
    return verdict


def _bounds(story: Story, plan: Plan, tag: str, look: Op) -> dict[str, tuple[int, int]]:
    """State -> least and most. Unknown sends, receives and acks widen all of them alike: simple,
    and zero when all is known.
    """
    at_ms = story.history.ms(look.began)
    tally = dict.fromkeys(STATES, 0)
    doubt = sum(op.line.args["max"] for op in story.ops("receive", plan.name) if not op.ok and op.outcome == "info")
    for message in story.messages[plan.name].values():
        if message.op.outcome == "info":
            doubt += 1
        elif message.op.ok and plan.wants(tag, message.sent):
            state, unsure = _state(
                story, plan, tag, message.id, at_ms, message.sent.delay_ms, story.history.ms(message.op.ended)
            )
            doubt += unsure
            if state:
                tally[state] += 1
    return {state: (max(0, n - doubt), n + doubt) for state, n in tally.items()}


def _state(
    story: Story, plan: Plan, tag: str, id: str, at_ms: float, delay_ms: int, sent_ms: float
) -> tuple[str, bool]:
    """(state or '' when it is gone, whether something about it is unknown)."""
    found = [d for d in story.deliveries.get((plan.name, tag, id), []) if story.history.ms(d.op.ended) < at_ms]
    unsure = any(s.unknown for d in found for s in d.settles)
    for d in found:
        unsure = unsure or story.excused(d.op.began, d.op.ended, NEVER)
        unsure = unsure or any(story.excused(s.op.began, s.op.ended, NEVER) for s in d.settles if s.done)
    if not found:
        return "delayed" if sent_ms + delay_ms > at_ms else "waiting", unsure
    last = found[-1]
    for s in last.settles:
        if s.done and s.verb in ("ack", "kill"):
            return "", unsure
        if s.done and s.verb == "release" and s.result is not None:
            return "delayed" if s.result.visible_ms > at_ms else "waiting", unsure
    until = max(
        [last.it.visible_ms] + [s.result.visible_ms for s in last.settles if s.done and s.verb == "extend" and s.result]
    )
    return "leased" if until > at_ms else "waiting", unsure


def answers(story: Story) -> Verdict:
    """Right requests are never refused as wrong (4xx but 429, and 409 while another change is under
    way) and never end in 500.
    """
    verdict = Verdict("answers")
    for op in story.history.ops:
        status = op.end.args.get("status", 0) if op.end is not None else 0
        verdict.saw(str(status) if status else "cut")
        if status == 500 or (400 <= status < 500 and status != 429 and not _in_use(op)):
            verdict.breach(
                "refused",
                f"{op.line.verb} {op.line.queue} got {status} {op.end.answer if op.end else ''}: {op.where()}",
            )
    return verdict


def _in_use(op: Op) -> bool:
    """Another purge, maybe one whose client has gone, still has the queue: refused, nothing
    changed.
    """
    return op.end is not None and isinstance(op.end.answer, dict) and op.end.answer.get("code") == "queue_in_use"


def recoveries(story: Story) -> dict[int, float]:
    """Fault number -> seconds from its heal until every steady queue had taken a send and leased a
    message; inf when that never came.
    """
    steady = {plan.name for plan in story.plans.values() if plan.steady}
    sends = _times(story, "send", steady)
    leases = _times(story, "receive", steady)
    found: dict[int, float] = {}
    for fault in story.history.faults:
        if fault.healed == NEVER:
            continue
        first = [
            min((t for t in times[queue] if t >= fault.healed), default=NEVER)
            for times in (sends, leases)
            for queue in steady
        ]
        last = max(first, default=NEVER)
        found[fault.op] = float("inf") if last == NEVER else (last - fault.healed) / SECOND
    return found


def _times(story: Story, verb: str, queues: set[str]) -> dict[str, list[int]]:
    """When verbs of a queue were answered; of receives, those that brought something."""
    times: dict[str, list[int]] = {queue: [] for queue in queues}
    for op in story.ops(verb):
        if op.ok and op.line.queue in queues and op.end is not None and (verb == "send" or op.end.deliveries):
            times[op.line.queue].append(op.end.at)
    return times


def live(story: Story, within_s: float) -> Verdict:
    """After each heal, every steady queue takes a send and leases a message within the bound."""
    verdict = Verdict("liveness after heal")
    after = recoveries(story)
    for fault in story.history.faults:
        verdict.saw("faults")
        seconds = after.get(fault.op)
        if seconds is None:
            verdict.breach("not healed", f"{fault.name}, line {fault.line}")
        elif seconds > within_s and not _hit_again(story, fault, seconds):
            verdict.breach(
                "not back", f"{seconds:.1f} s after {fault.name}, line {fault.line}; {within_s:.0f} s are promised"
            )
    return verdict


def redrives(story: Story) -> Verdict:
    """Redrive tasks end: the harness notes those that do not, a minute after the last heal."""
    verdict = Verdict("redrive tasks end")
    for note in story.history.notes:
        if note.verb == "redrive":
            verdict.saw("ended", note.args["ended"])
            for task in note.args["stuck"]:
                verdict.breach("stuck", f"task {task} still runs")
    return verdict


def _hit_again(story: Story, fault: Fault, seconds: float) -> bool:
    """Another fault came before it was back: that one's recovery counts."""
    until = fault.healed + int(min(seconds, 1e9) * SECOND)
    return any(other.op != fault.op and fault.healed <= other.began < until for other in story.history.faults)
