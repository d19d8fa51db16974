"""All checks over a book: `python -m tests.outside.judge book.jsonl`. Exit status 1 = a promise was
broken.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.outside import check_dead, check_leases, check_lives, check_messages, check_order, check_rest
from tests.outside.book import DONE, UNKNOWN, Entry, read
from tests.outside.story import Story
from tests.outside.verdict import Verdict

CHECKS: dict[str, Callable[[Story], Verdict]] = {
    "lost": check_messages.lost,
    "phantoms": check_messages.phantoms,
    "doubled": check_messages.doubled,
    "log": check_messages.in_the_log,
    "purges": check_messages.purges,
    "delays": check_leases.delays,
    "leases": check_leases.leases,
    "settled": check_leases.settled,
    "receive counts": check_leases.counts,
    "uncarried": check_leases.uncarried,
    "order": check_order.order,
    "undelivered": check_dead.undelivered,
    "overdelivered": check_dead.overdelivered,
    "once": check_dead.once,
    "late letters": check_dead.late,
    "lives": check_lives.lives,
    "counts": check_rest.counts,
    "answers": check_rest.answers,
    "tasks": check_rest.tasks,
    "works": check_rest.works,
    "recovery": lambda story: check_rest.recovery(story)[0],
}
KEPT = 25


def judge(entries: list[Entry]) -> dict[str, Any]:
    """The verdicts and figures of a book."""
    story = Story(entries)
    verdicts = {name: check(story) for name, check in CHECKS.items()}
    defects = [row["text"] for row in story.by_op["defect"]]
    sends = [item for row in story.by_op["send"] for item in row["items"]]
    began = min((row["t0"] for row in story.by_op["send"]), default=0)
    took = max(1.0, max((row["t1"] for row in story.by_op["probe"]), default=0) - began)
    return {
        "held": not defects and not any(verdict.breaches for verdict in verdicts.values()),
        "defects_of_the_harness": defects[:5],
        "sends": sum(item["result"] == DONE for item in sends),
        "sends_unknown": sum(item["result"] == UNKNOWN for item in sends),
        "sends_a_second": round(sum(item["result"] == DONE for item in sends) / took),
        "deliveries": sum(len(row["got"]) for row in story.by_op["receive"]),
        "settled": sum(item["result"] == DONE for row in story.by_op["settle"] for item in row["items"]),
        "sent_by_sqs": _share(story, "send"),
        "received_by_sqs": _share(story, "receive"),
        "letters": sum(
            bool(copy.gots) for name, lane in story.lanes.items() if lane.is_dead_of for copy in story.at.get(name, ())
        ),
        "lives": sum(row["outcome"] == DONE for row in story.by_op["create"] if "life" in row),
        "faults": dict(Counter(fault.name for fault in story.faults)),
        "recovery": check_rest.recovery(story)[1],
        "verdicts": {
            name: {
                "promise": one.name,
                "looked": one.looked,
                "breaches": len(one.breaches),
                "excused": one.excused,
                "told": one.breaches[:KEPT],
            }
            for name, one in verdicts.items()
        },
    }


def _share(story: Story, op: str) -> float:
    """Which part of the messages of an operation spoke SQS."""
    rows = [(row["by"], len(row.get("items") or row.get("got") or ())) for row in story.by_op[op]]
    return round(sum(n for by, n in rows if by == "sqs") / max(1, sum(n for _, n in rows)), 2)


def printed(report: dict[str, Any]) -> str:
    """The report for people."""
    head = (
        "seed",
        "script",
        "workers",
        "seconds",
        "load",
        "nice",
        "load_average",
        "struck",
        "sends",
        "sends_unknown",
        "sends_a_second",
        "deliveries",
        "settled",
        "letters",
        "lives",
        "sent_by_sqs",
        "received_by_sqs",
    )
    lines = [f"{name}: {report[name]}" for name in head if name in report]
    lines += [_verdict(name, row) for name, row in report["verdicts"].items() if not row["breaches"]]
    lines += [
        f"  back after {row['back']} s: {row['fault']} at {row['at']} s ({row['lasted']} s)"
        for row in report["recovery"]
    ]
    # Last, for the end is what is left of a long log.
    for name, row in report["verdicts"].items():
        if row["breaches"]:
            lines += [_verdict(name, row), *(f"           {text}" for text in row["told"][:8])]
    return "\n".join([*lines, *(f"DEFECT of the harness: {text}" for text in report["defects_of_the_harness"])])


def _verdict(name: str, row: dict[str, Any]) -> str:
    mark = "BROKEN" if row["breaches"] else "held"
    return (
        f"  {mark:6} {name}: {row['promise']}: looked {row['looked']}, breaches {row['breaches']}, excused "
        f"{row['excused']}"
    )


if __name__ == "__main__":
    found = judge(read(Path(sys.argv[1])))
    print(printed(found))
    sys.exit(0 if found["held"] else 1)
