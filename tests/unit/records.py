"""Records for tests of what works with them."""

from __future__ import annotations

from typing import Any

from schemas.records import QueueRecord, TagRecord


def queue_record(name: str = "orders", partitions: int = 1, **fields: Any) -> QueueRecord:
    """Returns the record of a queue of alice's with its default tag; `fields` are others than
    those of a new one.
    """
    new: dict[str, Any] = {
        "incarnation": "0123456789ab", "owner": "alice", "created_at_ms": 1, "modified_at_ms": 2,
        "tags": [TagRecord(0, "default", 1, 0, [0] * partitions)], "next_tag_id": 1,
    }  # fmt: skip
    return QueueRecord(name=name, partitions=partitions, **{**new, **fields})
