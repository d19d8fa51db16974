"""Checkers of the whole: counters at rest, answers, and how soon the service is back after a
fault.
"""

from __future__ import annotations

from collections import defaultdict

from tests.judge.history import NEVER, SQS, Fault, Op
from tests.judge.losses import SECOND
from tests.judge.story import Plan, Story
from tests.judge.verdict import Verdict

STATES = ("waiting", "delayed", "leased")
# A purge without an answer may be done so long after it was asked for.
PURGED_NS = 60 * SECOND
# How often a queue has to have worked for one that is busy.
BUSY = 50
# What SQS answers to a handle whose delivery is over (docs/reference/sqs.md).
STALE = ("InvalidParameterValue", "MessageNotInflight", "ReceiptHandleIsInvalid")
THROTTLED = ("RequestThrottled", "ThrottlingException")


def counters(story: Story) -> Verdict:
    """Counts of a queue at rest are what the history says: between what is certain and what unknown
    outcomes allow.

    An `info` of args `rest` is a look while no verb is under way on that queue; every queue must
    have one, the last one counts. `empty`: all was received until nothing came any more. waiting =
    ready + stored: how they share is the window's affair. What a queue keeps is told apart by
    states; else messages and their dead letters are counted together.
    """
    verdict = Verdict("counters true at rest")
    looks: dict[tuple[str, str, bool], Op] = {}
    for op in story.ops("info"):
        if op.line.args.get("rest"):
            for tag in op.end.answer if op.ok and op.end is not None else story.plans[op.line.queue].tags:
                looks[op.line.queue, tag, bool(op.line.args.get("empty"))] = op
    for plan in story.plans.values():
        if not plan.remade and not any(queue == plan.name and op.ok for (queue, _, _), op in looks.items()):
            verdict.breach("no look", f"queue {plan.name} was never seen at rest")
    for (queue, tag, empty), look in looks.items():
        plan = story.plans[queue]
        if not look.ok:
            if empty:
                verdict.breach("no look", f"{queue}/{tag} was not counted at the end: {look.where()}")
        elif empty or plan.kept:
            verdict.saw("counts", len(STATES))
            bounds = dict.fromkeys(STATES, (0, 0)) if empty else _bounds(story, plan, tag, look)
            for state, found in _states(look, tag).items():
                _between(verdict, f"{queue}/{tag} has {found} {state}", look, found, bounds[state])
        elif queue not in story.sources():
            _together(story, verdict, plan, tag, looks)
    return verdict


def _states(look: Op, tag: str) -> dict[str, int]:
    told = look.end.answer[tag] if look.end is not None else {}
    return {**{state: told[state] for state in STATES[1:]}, "waiting": told["ready"] + told["stored"]}


def _between(verdict: Verdict, text: str, look: Op, found: int, bounds: tuple[int, int]) -> None:
    least, most = bounds
    if not least <= found <= most:
        verdict.breach("untrue", f"{text}, not {least if least == most else f'{least} to {most}'}: {look.where()}")


def _together(story: Story, verdict: Verdict, plan: Plan, tag: str, looks: dict[tuple[str, str, bool], Op]) -> None:
    """A tag of a queue and its dead letters have as many messages as are open by the history."""
    places = [(plan.name, tag), *([(plan.dead_letters, "default")] if plan.dead_letters else [])]
    seen = [(look, tag) for queue, tag in places if (look := looks.get((queue, tag, False))) is not None and look.ok]
    if len(seen) < len(places):
        return
    verdict.saw("counts")
    total = sum(sum(_states(look, tag).values()) for look, tag in seen)
    bounds = _open(story, plan, tag, min(look.began for look, _ in seen))
    _between(verdict, f"{plan.name}/{tag} has {total} with its letters", seen[0][0], total, bounds)


def _open(story: Story, plan: Plan, tag: str, at: int) -> tuple[int, int]:
    """How many messages are open at least, and at most; repeats are none."""
    low = high = 0
    keys: set[tuple[str, str]] = set()
    purged = max([0, *(op.left + PURGED_NS for op in story.ops("purge", plan.name))])
    for message in story.messages[plan.name].values():
        key = plan.dedup_key(message.sent)
        if not message.possible or not plan.wants(tag, message.sent) or (key and key in keys):
            continue
        keys |= {key} if key else set()
        ends = [s for s in story.ends(plan, story.found(plan, tag, message)) if s.op.began < at]
        sure = any(s.done and not story.excused(s.op.began, s.op.ended, NEVER) for s in ends)
        many = 1 if plan.fifo else message.possible
        low += message.ok and not ends and message.began > purged
        high += 0 if sure and many == 1 else many
    return low, high


def _bounds(story: Story, plan: Plan, tag: str, look: Op) -> dict[str, tuple[int, int]]:
    """State -> least and most. Unknown sends, receives and acks widen all of them alike: simple,
    and zero when all is known.
    """
    at_ms = story.history.ms(look.began)
    tally = dict.fromkeys(STATES, 0)
    doubt = sum(op.line.args["max"] for op in story.ops("receive", plan.name) if not op.ok and op.outcome == "info")
    for message in story.messages[plan.name].values():
        if not message.ok and message.possible:
            doubt += 1
        elif message.ok and plan.wants(tag, message.sent):
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
    extended = [s.result.visible_ms for s in last.settles if s.done and s.verb == "extend" and s.result]
    until = max([last.until_ms, *extended])
    return "leased" if until > at_ms else "waiting", unsure


def answers(story: Story) -> Verdict:
    """Right requests are never refused as wrong (4xx but 429, and 409 while another change is under
    way) and never end in 500 or the like; wrong ones (args `wrong`) are refused.
    """
    verdict = Verdict("answers")
    for op in story.history.ops:
        verdict.saw(str(op.status) if op.status else "cut")
        text = f"{op.line.verb} {op.line.queue} got {op.status} {op.end.answer if op.end else ''}: {op.where()}"
        results = {result.status for result in op.end.results} if op.end is not None else set()
        if op.line.args.get("wrong"):
            if op.ok or op.status not in (0, 400, 404, 429, 503):
                verdict.breach("not refused", text)
        elif (op.status >= 500 and op.status != 503) or "broken" in results:
            verdict.breach("broken", text)
        elif (400 <= op.status < 500 or "fail" in results) and not _may_refuse(story, op):
            verdict.breach("refused", text)
    return verdict


def _may_refuse(story: Story, op: Op) -> bool:
    """429; a name that comes and goes is not there; another purge, maybe one whose client has gone,
    still has the queue: nothing changed; SQS refuses a handle that is stale.
    """
    verb, code = op.line.verb, op.code
    if op.status == 429 or code.startswith(THROTTLED) or code == "queue_in_use":
        return True
    plan = story.plans.get(op.line.queue)
    if plan is not None and plan.remade and op.status in (404, 409):
        return True
    return op.line.by == SQS and verb in ("ack", "extend") and (not code or code.startswith(STALE))


def recoveries(story: Story) -> dict[int, float]:
    """Fault number -> seconds until the service was back: from when it could be, which is the heal
    of what was held, until every steady queue had taken a send and leased a message, or a probe
    that began then has done both; inf when that never came.
    """
    steady = {plan.name for plan in story.plans.values() if plan.steady}
    sends, leases = _times(story, "send"), _times(story, "receive")
    probes = sorted((op.began, op.left) for op in story.ops("probe") if op.ok)
    probed = bool(story.ops("probe"))
    found: dict[int, float] = {}
    for fault in story.history.faults:
        if fault.healed == NEVER:
            continue
        since = _since(story, fault)
        first = [
            min((t for t in times.get((queue, tag), []) if t >= since), default=NEVER)
            for times in (sends, leases)
            for queue in steady
            for tag in story.plans[queue].tags
            if tag == "default"
        ]
        if probed:
            first.append(next((end for began, end in probes if began >= since), NEVER))
        last = max(first, default=NEVER)
        found[fault.op] = float("inf") if last == NEVER else (last - since) / SECOND
    return found


def _since(story: Story, fault: Fault) -> int:
    """From when on the service may be back: another fault may be held still."""
    since = fault.healed if fault.held else fault.began
    return max([since, *(f.healed for f in story.history.faults if f.held and f.began <= since < f.healed < NEVER)])


def _times(story: Story, verb: str) -> dict[tuple[str, str], list[int]]:
    """When verbs of a tag were answered, in order; of receives, those that brought something."""
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for op in story.ops(verb):
        if op.ok and op.end is not None and (verb == "send" or op.end.deliveries):
            times[op.line.queue, op.line.tag].append(op.end.at)
    return times


def live(story: Story, within_s: float) -> Verdict:
    """After each fault, every steady queue takes a send and leases a message within the bound."""
    verdict = Verdict("liveness after heal")
    after = recoveries(story)
    for fault in story.history.faults:
        verdict.saw("faults")
        seconds = after.get(fault.op)
        if seconds is None:
            verdict.breach("not healed", f"{fault.name}, line {fault.line}")
        elif seconds > within_s and not _hit_again(story, fault, within_s):
            verdict.breach(
                "not back", f"{seconds:.1f} s after {fault.name}, line {fault.line}; {within_s:.0f} s are promised"
            )
    return verdict


def _hit_again(story: Story, fault: Fault, within_s: float) -> bool:
    """Another fault came before it had to be back: that one's recovery counts."""
    since = _since(story, fault)
    until = since + int(within_s * SECOND)
    return any(other.op != fault.op and since <= other.began < until for other in story.history.faults)


def works(story: Story, within_s: float) -> Verdict:
    """Each busy queue is sent to and received from again within the bound after a fault that a
    quiet time followed, while there was traffic.
    """
    verdict = Verdict("each queue works again after each fault")
    dead = story.sources()
    stop = max((op.left for op in story.ops("send") if op.ok), default=0)
    for verb in ("send", "receive"):
        for (queue, tag), times in _times(story, verb).items():
            plan = story.plans[queue]
            if queue in dead or plan.kept or plan.remade or len(times) < BUSY:
                continue
            for fault in story.history.faults:
                verdict.saw("returns")
                quiet = min([f.began for f in story.history.faults if f.began > fault.healed] + [stop]) - fault.healed
                back = min((t for t in times if t > fault.healed), default=NEVER) - fault.healed
                if back > within_s * SECOND and quiet > within_s * SECOND:
                    verdict.breach("stands still", f"{verb} at {queue}/{tag} after {fault.name}, line {fault.line}")
    return verdict


def redrives(story: Story) -> Verdict:
    """Redrive tasks end, and none fails: the drivers ask for those that do not for a minute after
    the last heal.
    """
    verdict = Verdict("redrive tasks end")
    last = {op.line.args["task"]: op.end.answer["status"] for op in story.ops("task") if op.ok and op.end is not None}
    for op in story.ops("redrive"):
        task = op.end.answer["id"] if op.ok and op.end is not None else ""
        if task:
            verdict.saw("tasks")
            if last.get(task) not in ("completed", "cancelled"):
                verdict.breach("stuck", f"task {task}, begun at {op.where()}, is {last.get(task, 'not known')}")
    return verdict
