"""The commands of `leaseway`: what each is about, and where it is.

`LOCAL` run on this machine: they start the service, or read its Kafka and its Redis. `REMOTE` use
the native API of a running service. Importing this imports nothing else.
"""

from __future__ import annotations

from typing import Final

# None: it is not in the help.
LOCAL: Final[dict[str, str | None]] = {
    "up": "start Kafka, Redis and the facade from one folder; Ctrl-C stops all",
    "serve": "start facade workers against an existing Kafka and Redis",
    "console": "serve the console: pages that show and change what the API can",
    "demo": "stream a real data set through a queue and show what went where",
    "spark": "run a PySpark file, or a shell, with the Kafka and Avro connectors",
    "sql": "run SQL over messages, journal, deliveries, dead_letters, queues: read from Kafka by Spark",
    "report": "write latency, backlog, statistics, redelivery, dead letters: Parquet and an HTML page",
    "live": "count the same as it happens, from checkpoints, and write rates to a topic",
    "lake": "copy messages, journal, meters and audit from Kafka into tables of Iceberg",
    "spark-server": "serve tables to notebooks and sessions of Spark Connect on this machine",
    "redrive": "move dead letters that match an SQL condition back to their source queues",
    "spark-zip": "write the jobs and schemas as one zip for --py-files of your own Spark",
    "verify": "compare the state in Redis with a rebuild from Kafka alone; 0 = no difference",
    "rebuild": "rebuild the state in Redis from Kafka, also while traffic runs",
    "seal": "list the control records that LEASEWAY_SECRET has not sealed, and seal or delete them",
    "config": "print all settings, their values and where they came from",
    "jars": "fetch the pinned jars of Kafka, of Spark's connectors, or of Iceberg",
    "worker": None,
    "prepare": None,
}

# The module of each has it as `command`.
REMOTE: Final[dict[str, tuple[str, str]]] = {
    "queue": (
        "facade.programs.cli.nouns.queue",
        "list, create, change, pause, purge and delete queues, and unpark their groups",
    ),
    "tag": ("facade.programs.cli.nouns.tag", "list, create, pause, seek and delete tags of a queue"),
    "message": ("facade.programs.cli.nouns.message", "send, receive, settle, search, copy and delete messages"),
    "dlq": ("facade.programs.cli.nouns.dlq", "look at dead letters, and redrive them"),
    "task": ("facade.programs.cli.nouns.task", "list, watch and cancel redrive tasks"),
    "tx": ("facade.programs.cli.nouns.tx", "prepare, decide and look at transactions"),
    "key": ("facade.programs.cli.nouns.key", "list, create, change, rotate and delete access keys"),
    "user": ("facade.programs.cli.nouns.user", "look at users, and set their contacts and quotas"),
    "grant": ("facade.programs.cli.nouns.grant", "list, give and take away levels on a queue"),
    "audit": ("facade.programs.cli.tools.audit", "list who has asked for what, and what came of it"),
    "alert": ("facade.programs.cli.nouns.alert", "list, create and delete alert policies of a queue"),
    "export": ("facade.programs.cli.tools.export", "print queues, tags, levels, alerts and users as one document"),
    "diff": ("facade.programs.cli.tools.diff", "say what of a document differs from what is there"),
    "apply": ("facade.programs.cli.tools.apply", "create and change what differs from a document"),
    "top": ("facade.programs.cli.tools.top", "show what is in queues, as it changes"),
    "doctor": ("facade.programs.cli.tools.doctor", "say whether the service is reachable, ready and healthy"),
    "bench": ("facade.programs.cli.tools.bench", "measure sends and receives a second"),
    "api": ("facade.programs.cli.tools.api", "send any request to the API"),
    "completion": ("facade.programs.cli.tools.completion", "print what lets a shell complete commands"),
}
