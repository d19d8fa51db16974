"""Why a figure grows: written by hand after a look at the tables, and put under them by `page` when the figure did grow.

Neighbours: `page`. It must not know numbers that are measured: those are in the tables.
"""

from state.replies import MAX_OPEN

_OPEN = "the design: an open message is a member of sorted sets and hashes in Redis, without its body (docs/decisions/0004), up to "
_FILE = (
    "its append-only file. A million open messages are 63 MB of it, and it is written anew whenever it has doubled: "
    "3 s of a child's time, every 10 s or so here. "
    "Scripts take 1.25x as long too (42 to 53 us a message): more memory, less of it in the caches."
)
_ALONE = (
    "nothing is shared. Connections that use a queue together share its calls to Kafka and Redis (docs/decisions/0007); here each is "
    "alone in its queue: ten messages are a send, a receive and an ack of their own, and units are taken up and given up all the time."
)
_BEHIND = (
    "what is sent does not go to the window, which is full, but is read from Kafka again and loaded when its turn comes: 1.7x, "
    "once there is any backlog. From 100,000 to 5,000,000 it is as good as flat."
)

_BEFORE = (
    "what the step before left: 8,000 units given up and their floors told to Kafka, and the machine itself (an hour before, the same "
    "cell made 1.11x of the first step; 500 queues make 1.10x of it here)."
)

# Series -> figure -> why.
WHY: dict[str, dict[str, str]] = {
    "partitions": {"CPU ms: kafka": "the journal. Each partition with traffic is drained by an append of its own, every 0.1 s."},
    "tags": {"Redis commands": "a body that two tags or more hold is counted (`refs`): more commands for each message settled."},
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
        "CPU ms: kafka": "each produce request has the ten messages of one send, not of up to eight. Kafka's CPU is some 0.6 ms a request.",
        "CPU ms: redis": "each call is for the ten messages of one caller (Redis commands, below).",
        "Redis commands": "the same; and until a unit is given up, its journal is asked for twice a second and its lease renewed.",
        "Redis MiB": "2 KiB of cursors and counts for each queue.",
    },
    "backlog": {
        "msg/s": _BEHIND,
        "CPU ms: worker": _BEHIND,
        "CPU ms: redis": _BEHIND,
        "CPU ms: all": _BEHIND,
        "Redis commands": "0.24 script calls a message, not 0.10: all partitions have messages, so receives and acks are of more of them.",
        "Redis MiB": "the window. It is full at 8,000 bodies or 6 MB of them a partition, whatever waits in Kafka behind it.",
    },
    "in-flight": {
        "Redis MiB": f"{_OPEN}{MAX_OPEN:,} in a partition under a tag.",
        "CPU ms: redis": _FILE,
        "CPU ms: all": "Redis' file, and the snapshots of all open deliveries that the worker makes once half as many have changed.",
        "msg/s": "what CPU goes to Redis' file and to snapshots is not there for messages: two cores, both busy.",
        "Redis commands": "one HSTRLEN more: while a window is half full, what is lent gives up its body, and its ack looks for one.",
    },
    "delayed": {"Redis MiB": f"{_OPEN}{MAX_OPEN:,} in a partition under a tag.", "CPU ms: redis": _FILE},
}
