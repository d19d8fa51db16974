"""The figures of a run as one JSON object, and tables of many runs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.judge.check_rest import recoveries
from tests.judge.story import SECOND, Story
from tests.judge.verdict import Verdict


def report(story: Story, verdicts: list[Verdict]) -> dict[str, Any]:
    """Counts of the run; `recovery_s` and `outage_s` hold the seconds from heal and from begin, by
    fault.
    """
    by_name = {verdict.name: verdict for verdict in verdicts}
    ops = story.ops("send")
    answered = sum(len(op.line.sends) for op in ops if op.ok)
    ends = [op.end.at for op in ops if op.end is not None]
    seconds = (max(ends) - ops[0].began) / SECOND if ends else 0.0
    leases, acks = by_name["lease exclusivity"].counts, by_name["acked stays acked"].counts
    deliveries = sum(len(found) for found in story.deliveries.values())
    again = acks["delivered again after an ack"] + leases["overlaps excused"] + leases["overlap"]
    recovery, outage = defaultdict(list), defaultdict(list)
    after = recoveries(story)
    for fault in story.history.faults:
        if fault.op in after:
            recovery[fault.name].append(round(after[fault.op], 2))
            outage[fault.name].append(round(after[fault.op] + (fault.healed - fault.began) / SECOND, 2))
    return {
        "sends": answered,
        "seconds": round(seconds, 1),
        "rate_per_s": round(answered / seconds) if seconds else 0,
        "deliveries": deliveries,
        "lost": by_name["no acked send lost"].broken,
        "altered": by_name["no phantom, no altered body"].broken,
        "again_after_ack": acks["delivered again after an ack"],
        "acks_forgotten": acks["ack forgotten"],
        "duplicates_per_million": round(again / deliveries * 1e6, 1) if deliveries else 0.0,
        "overlaps_excused": leases["overlaps excused"],
        "overlaps": leases["overlap"],
        "letters": by_name["DLQ conservation"].counts["letters"],
        "dlq_imbalance": by_name["DLQ conservation"].broken,
        "fifo_breaches": by_name["FIFO order within a group"].broken,
        "recovery_s": recovery,
        "outage_s": outage,
        "answers": by_name["answers"].counts,
        "broken": {verdict.name: verdict.broken for verdict in verdicts if not verdict.valid},
        "verdicts": [verdict.line() for verdict in verdicts],
        "breaches": [text for verdict in verdicts for text in verdict.breaches],
    }
