"""What a run ends with, and how it went: counts of queues at rest, statuses, tasks, recovery after
each fault.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.outside.book import BROKEN, DONE, REFUSED, Entry
from tests.outside.check_dead import back_within
from tests.outside.check_messages import wants
from tests.outside.stage import REST
from tests.outside.story import Fault, Story
from tests.outside.verdict import Verdict

# What SQS answers to a handle whose delivery is over (docs/reference/sqs.md).
_STALE = ("InvalidParameterValue", "MessageNotInflight", "ReceiptHandleIsInvalid")
_AGAIN = ("RequestThrottled", "ThrottlingException")


def counts(story: Story) -> Verdict:
    """The counts of queues at rest are what the book says; after the drain they are nothing."""
    verdict = Verdict("counts at rest are the book's")
    rows = [row for row in story.by_op["counts"] if row.get("rest")]
    said = {row["place"]: row for row in rows if row["outcome"] == DONE}
    for name, lane in story.lanes.items():
        if lane.is_dead_of or lane.still or name.startswith("probe-"):
            continue
        for tag in lane.tags:
            places = story.family(lane, tag)
            if not all(place in said for place in places):
                continue
            total = sum(sum(said[place]["counts"].values()) for place in places)
            low, high = _open(story, name, tag, min(said[place]["t0"] for place in places))
            text = (
                f"{'+'.join(places)}: {total} ({[said[place]['counts'] for place in places]}), the book "
                f"says {low} to {high}"
            )
            verdict.judge(not low <= total <= high, False, f"{text}, lines {[said[place]['n'] for place in places]}")
    if "rest" in said:
        verdict.judge(said["rest"]["counts"] != REST, False, f"rest: {said['rest']['counts']}, it was left with {REST}")
    for row in story.by_op["counts"]:
        if row.get("drained"):
            left = row["counts"] if row["outcome"] == DONE else row["outcome"]
            verdict.judge(
                left != {"ready": 0, "leased": 0, "delayed": 0},
                False,
                f"{row['place']} after the drain: {left}, line {row['n']}",
            )
    return verdict


def _open(story: Story, queue: str, tag: str, at: float) -> tuple[int, int]:
    """How many messages of a lane are open at least, and at most."""
    lane, low, high = story.lanes[queue], 0, 0
    over = [row["t1"] for row in story.by_op["purge"] if row["place"] == queue]
    for sent in story.sent.values():
        if sent.queue != queue or "~" in sent.token or not sent.possible or not wants(lane, tag, sent):
            continue
        copies = [copy for place in story.family(lane, tag) for copy in story.of.get((place, sent.token), ())]
        ends = [(copy, end) for copy in copies for end in copy.ends if end.possible and end.t0 < at]
        purged = any(sent.first <= end + 60 for end in over)
        firm = any(story.firm(copy, end) and not story.excused(end.t0, end.t1) for copy, end in ends)
        many = 1 if lane.fifo else sum(one.result in (DONE, "unknown") for one in sent.tries)
        low += sent.answered and not ends and not purged
        high += 0 if firm and many == 1 else many
    return low, high


def answers(story: Story) -> Verdict:
    """A right request is not refused as wrong, and nothing ends in 500; a wrong one is refused."""
    verdict = Verdict("right requests are not refused, nothing is 500")
    for row in story.entries:
        if "outcome" not in row and row["op"] != "wrong":
            continue
        if row["op"] == "wrong":
            verdict.judge(
                row["status"] not in (400, 404, 503),
                False,
                f"line {row['n']}: an ack with a handle of nobody's was answered {row['status']}",
            )
            continue
        results = [item["result"] for item in row.get("items", ())] or [row["outcome"]]
        text = (
            f"line {row['n']} at {row['t0']:.2f} s: {row['op']} of {row.get('place')}: {row.get('status')} "
            f"{row.get('code')}"
        )
        verdict.judge(BROKEN in results or row["outcome"] == BROKEN, False, text)
        verdict.judge(REFUSED in results and not _may_refuse(row), False, f"refused, {text}")
    return verdict


def _may_refuse(row: Entry) -> bool:
    code = row.get("code", "")
    if str(row.get("place", "")).startswith("reborn-"):
        return row.get("status") in (404, 409)
    if row["op"] in ("purge", "create", "delete", "redrive") and code.startswith("queue_in_use"):
        return True
    if row["op"] == "send" and (row["place"] == "wrong" or "half" in row["items"][0]["token"]):
        return True
    stale = row["op"] in ("settle", "extend") and row["by"] == "sqs" and (not code or code.startswith(_STALE))
    return stale or code.startswith(_AGAIN) or (row["op"] == "settle" and not code and row["by"] == "sqs")


def tasks(story: Story) -> Verdict:
    """Redrive tasks end, and none says failed."""
    verdict = Verdict("redrive tasks end")
    last: dict[str, Entry] = {row["task"]: row for row in story.by_op["task"]}
    for row in story.by_op["redrive"]:
        if row.get("task"):
            status = last.get(row["task"], {}).get("status")
            verdict.judge(
                status not in ("completed", "cancelled"),
                False,
                f"task {row['task']} (line {row['n']}, {row['t0']:.2f} s): {status}",
            )
    return verdict


def recovery(story: Story) -> tuple[Verdict, list[dict[str, Any]]]:
    """After each fault a probe gets through within the bound; and each, with how long it took."""
    verdict, rows, bound = Verdict("back in time"), [], back_within(story)
    good = sorted((row["t0"], row["t1"]) for row in story.by_op["probe"] if row["outcome"] == DONE)
    for fault in story.faults:
        # A killed process and a flushed Redis are healed by the service itself; what stood still
        # was stopped by us.
        since = fault.end if _pauses(fault) else fault.begin
        since = max(
            [since, *(other.end for other in story.faults if _pauses(other) and other.begin <= since < other.end)]
        )
        back = next((end - since for begin, end in good if begin >= since), None)
        rows.append(
            {
                "fault": fault.name,
                "at": fault.begin,
                "lasted": round(fault.end - fault.begin, 1),
                "back": round(back, 2) if back is not None else None,
            }
        )
        verdict.judge(
            back is None or back > bound,
            False,
            f"{fault.name} at {fault.begin:.1f} s: back after {back} s, bound {bound} s",
        )
    return verdict, rows


def _pauses(fault: Fault) -> bool:
    return "pause" in fault.name or "asleep" in fault.name


def works(story: Story) -> Verdict:
    """Each steady queue is sent to and received from again within the bound after a fault that a
    quiet time followed.
    """
    verdict, bound = Verdict("each queue works again after each fault"), back_within(story)
    # Probes are told to stop together with those who send.
    stop = max((row["t1"] for row in story.by_op["probe"]), default=0.0)
    good: dict[tuple[str, str], list[float]] = defaultdict(list)
    for op in ("send", "receive"):
        for row in story.by_op[op]:
            if row["outcome"] == DONE and (op == "send" or row["got"]):
                good[op, row["place"]].append(row["t1"])
    for fault in story.faults:
        quiet = _quiet_after(story, fault, stop)
        for (op, place), times in good.items():
            lane = story.lane(place)
            if lane is None or lane.is_dead_of or lane.still or len(times) < 50:
                continue
            back = min((time - fault.end for time in times if time > fault.end), default=None)
            late = back is None or back > bound
            verdict.judge(
                late and quiet > bound, False, f"{op} at {place} after {fault.name} ({fault.end:.1f} s): {back} s"
            )
    return verdict


def _quiet_after(story: Story, fault: Fault, end: float) -> float:
    """How long nothing struck after a fault, while there was traffic."""
    return min([other.begin for other in story.faults if other.begin > fault.end] + [end]) - fault.end
