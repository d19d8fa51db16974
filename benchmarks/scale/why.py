"""Why a figure grows: written by hand after a look at the tables, and put under them by `page` when the figure did grow.

Neighbours: `page`. It must not know numbers that are measured: those are in the tables.
"""

from state.replies import MAX_OPEN

_OPEN = "the design: an open message is a member of sorted sets and hashes in Redis, without its body (docs/decisions/0004), up to "

# Series -> figure -> why.
WHY: dict[str, dict[str, str]] = {
    "partitions": {"CPU ms: kafka": "the journal. Each partition with traffic is drained by an append of its own, every 0.1 s."},
    "tags": {"Redis commands": "a body that two tags or more hold is counted (`refs`): more commands for each message settled."},
    "backlog": {"Redis MiB": "the window. It is full at 8,000 bodies or 6 MB of them a partition, whatever waits in Kafka behind it."},
    "in-flight": {"Redis MiB": f"{_OPEN}{MAX_OPEN:,} in a partition under a tag."},
    "delayed": {"Redis MiB": f"{_OPEN}{MAX_OPEN:,} in a partition under a tag."},
}
