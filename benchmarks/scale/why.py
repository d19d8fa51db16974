"""Why a figure grows: written by hand after a look at the tables, and put under them by `page` when
the figure did grow.
"""

from state.replies import MAX_OPEN

_OPEN = "the design: an open message is a member of sorted sets and hashes in Redis, without its body, up to "
_FILE = (
    "its append-only file. A million open messages are 63 MB of it, and it is written anew whenever it has doubled: "
    "3 s of a child's time, every 10 s or so here. "
    "Scripts take longer too (1.25x on 2026-11-22): more memory, less of it in the caches."
)
_ALONE = (
    "nothing is shared. Connections that use a queue together share its calls to Kafka and Redis "
    "(docs/decisions/0007); here each is "
    "alone in its queue: ten messages are a send, a receive and an ack of their own, and units are taken up "
    "and given up all the time."
)
_BEHIND = (
    "what is sent while the window is full is read from Kafka again and loaded, with its body, when its turn "
    "comes. At 100,000 the worker "
    "keeps nearly all bodies (64 MB, docs/decisions/0008) and the window has all messages, 1,000 with bodies; "
    "from some 130,000 on it has "
    "32,000 with bodies, whatever waits behind them."
)

_BEFORE = "what the step before left: 8,000 units are given up and their floors told to Kafka meanwhile."
_SNAPSHOTS = (
    "the snapshots of all open deliveries, which the worker makes and Kafka gets once half as many have changed."
)

# Series -> figure -> why.
WHY: dict[str, dict[str, str]] = {
    "partitions": {
        "CPU ms: kafka": "the journal. Each partition with traffic is drained by an append of its own, every 0.1 s.",
        "Redis commands": "receives, acks and drains are of more partitions, a script call each with its own "
        "15 to 20 commands.",
    },
    "tags": {
        "Redis commands": "a body that two tags or more hold is counted (`refs`): more commands for each "
        "message settled.",
        "CPU ms: redis": "these commands (below).",
    },
    "queues, one busy": {
        "Redis MiB": "2 KiB of cursors and counts for each queue.",
        "msg/s": _BEFORE,
        "CPU ms: worker": _BEFORE,
        "CPU ms: all": _BEFORE,
    },
    "queues, all busy": {
        "msg/s": _ALONE,
        "CPU ms: worker": _ALONE,
        "CPU ms: all": _ALONE,
        "CPU ms: kafka": "each produce request has the ten messages of one send, not of up to eight. Kafka's "
        "CPU is some 0.6 ms a request.",
        "CPU ms: redis": "each call is for the ten messages of one caller (Redis commands, below).",
        "Redis commands": "the same; and until a unit is given up, its journal is asked for twice a second and "
        "its lease renewed.",
        "Redis MiB": "2 KiB of cursors and counts for each queue.",
    },
    "backlog": {
        "msg/s": _BEHIND,
        "CPU ms: worker": _BEHIND,
        "CPU ms: redis": _BEHIND,
        "CPU ms: all": _BEHIND,
        "CPU ms: kafka": "what was sent is read from it again.",
        "Redis commands": "all partitions have messages, so receives and acks are of more of them; and a body "
        "in the window takes one more "
        "to load and one to end.",
        "Redis MiB": "the window. It is full at 8,000 bodies or 6 MB of them a partition, whatever waits in "
        "Kafka behind it.",
    },
    "in-flight": {
        "Redis MiB": f"{_OPEN}{MAX_OPEN:,} in a partition under a tag.",
        "CPU ms: redis": _FILE,
        "CPU ms: worker": _SNAPSHOTS,
        "CPU ms: kafka": _SNAPSHOTS,
        "CPU ms: all": "Redis' file, and these snapshots.",
        "msg/s": "what CPU goes to Redis' file and to snapshots is not there for messages: two cores, both busy.",
        "Redis commands": "one HSTRLEN more: while a window is half full, what is leased gives up its body, "
        "and its ack looks for one.",
    },
    "delayed": {
        "Redis MiB": f"{_OPEN}{MAX_OPEN:,} in a partition under a tag.",
        "CPU ms: redis": _FILE,
        "CPU ms: all": "half of it is Redis; the worker and Kafka are as at the first step, within the spread "
        "of its rounds.",
    },
}
