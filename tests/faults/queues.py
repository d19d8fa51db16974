"""The queues of the workload, each with the plan that the checkers are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LEASE_MS = 6000
MAX_COUNT = 3


@dataclass(frozen=True, slots=True)
class Kind:
    """A queue: the body of its creation, what the checkers are told, its tags with the kind that
    each takes.
    """

    body: dict[str, Any]
    plan: dict[str, Any]
    tags: tuple[tuple[str, str], ...] = ()


STEADY = {"steady": True}
QUEUES: dict[str, Kind] = {
    "plain": Kind({}, STEADY),
    # By SQS JSON without attributes, which the plane serves.
    "hot": Kind({}, STEADY),
    "durable": Kind({"durable_acks": True}, {"durable": True, **STEADY}),
    "tagged": Kind({}, {"tags": {"default": "", "red": "red"}, **STEADY}, (("red", "red"),)),
    "delayed": Kind({}, {}),
    "letters": Kind({}, {}),
    "dead": Kind(
        {"redrive_policy": {"dead_letter_queue": "letters", "max_receive_count": MAX_COUNT}},
        {"dead_letters": "letters", "max_count": MAX_COUNT},
    ),
    "purged": Kind({"partitions": 2}, {}),
    "still": Kind({"partitions": 2}, {"kept": True}),
    "fifo": Kind({"fifo": True}, {"fifo": True, **STEADY}),
}

# The same, and what is received at once has the shortest retention that a queue may have: a clock
# that is set by more than that must not end anything.
BRIEF = {
    name: Kind({**kind.body, "retention_seconds": 60}, kind.plan, kind.tags)
    if name in ("plain", "delayed", "fifo")
    else kind
    for name, kind in QUEUES.items()
}
