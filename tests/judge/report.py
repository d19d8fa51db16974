"""The figures of a run as one JSON object, and as lines for people."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.judge.check_rest import recoveries
from tests.judge.history import SQS
from tests.judge.losses import SECOND
from tests.judge.story import Story
from tests.judge.verdict import Verdict


def report(story: Story, verdicts: list[Verdict]) -> dict[str, Any]:
    """Counts of the run; `recovery_s` and `outage_s` hold the seconds from heal and from begin, by
    fault. `held`: no promise was broken, and no client of the driver failed (`defects`).
    """
    by_name = {verdict.name: verdict for verdict in verdicts}
    ops = story.ops("send")
    tries = [one for messages in story.messages.values() for message in messages.values() for one in message.tries]
    answered = sum(one.outcome == "ok" for one in tries)
    ends = [op.end.at for op in ops if op.end is not None]
    seconds = (max(ends) - min(op.began for op in ops)) / SECOND if ends else 0.0
    leases, acks = by_name["lease exclusivity"].counts, by_name["acked stays acked"].counts
    deliveries = sum(len(found) for found in story.deliveries.values())
    again_after_ack = acks["ack forgotten"] + acks["ack forgotten, excused"]
    again = again_after_ack + leases["overlap, excused"] + leases["overlap"]
    defects = [str(note.args["text"]) for note in story.notes("defect")]
    dead = story.sources()
    return {
        "held": not defects and all(verdict.valid for verdict in verdicts),
        "defects": defects[:5],
        "sends": answered,
        "sends_unknown": sum(one.outcome == "info" for one in tries),
        "seconds": round(seconds, 1),
        "rate_per_s": round(answered / seconds) if seconds else 0,
        "deliveries": deliveries,
        "acks": acks["acks"],
        "letters": sum(queue in dead for queue, _, _ in story.deliveries),
        "lives": sum(op.ok for op in story.ops("create") if "life" in op.line.args),
        "sent_by_sqs": _share(Counter(op.line.by for op in ops for _ in op.line.sends)),
        "received_by_sqs": _share(Counter(d.op.line.by for d in story.all_deliveries())),
        "lost": by_name["no acked send lost"].broken,
        "altered": by_name["no phantom, no altered body"].broken,
        "again_after_ack": again_after_ack,
        "acks_forgotten": acks["ack forgotten"],
        "overlaps": leases["overlap"],
        "overlaps_excused": leases["overlap, excused"],
        "duplicates_per_million": round(again / deliveries * 1e6, 1) if deliveries else 0.0,
        "dlq_imbalance": by_name["DLQ conservation"].broken,
        "fifo_breaches": by_name["FIFO order within a group"].broken,
        **_recovery(story),
        "answers": by_name["answers"].counts,
        "broken": {verdict.name: verdict.broken for verdict in verdicts if not verdict.valid},
        "looked": {verdict.name: verdict.looked for verdict in verdicts},
        "excused": sum(verdict.excused for verdict in verdicts),
        "verdicts": [verdict.line() for verdict in verdicts],
        "breaches": [text for verdict in verdicts for text in verdict.breaches],
    }


def _share(by: Counter[str]) -> float:
    """Which part spoke SQS."""
    return round(by[SQS] / max(1, by.total()), 2)


def _recovery(story: Story) -> dict[str, dict[str, list[float]]]:
    recovery, outage = defaultdict(list), defaultdict(list)
    after = recoveries(story)
    for fault in story.history.faults:
        if fault.op in after:
            recovery[fault.name].append(round(after[fault.op], 2))
            held = fault.healed - fault.began if fault.held else 0
            outage[fault.name].append(round(after[fault.op] + held / SECOND, 2))
    return {"recovery_s": recovery, "outage_s": outage}


# What a line of figures begins with; the run itself has said the others.
HEAD = ("sends", "sends_unknown", "rate_per_s", "deliveries", "acks", "letters", "lives", "sent_by_sqs")


def printed(told: dict[str, Any], first: tuple[str, ...] = ()) -> str:
    """A report for people. What was broken comes last: the end is what is left of a long log."""
    lines = [f"{name}: {told[name]}" for name in (*first, *HEAD) if name in told]
    lines += [f"back after {times} s: {name}" for name, times in told["recovery_s"].items()]
    lines += sorted(told["verdicts"], reverse=True)
    lines += [f"       {text}" for text in told["breaches"]]
    lines += [f"DEFECT of the harness: {text}" for text in told["defects"]]
    return "\n".join(lines)
