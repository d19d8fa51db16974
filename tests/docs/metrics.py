"""docs/reference/metrics.md: every metric that the code can show, with what it means.

The names are read from the code; their meaning is here. A name without a meaning, or the other way
round, is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import ProcessCollector

from engine.handles.handles import METRIC as STALE_HANDLES
from engine.plane.whys import WHYS
from engine.queues.alarms import KINDS
from engine.queues.clock_skew import ABOUT as ABOUT_SKEW
from engine.queues.clock_skew import KIND as CLOCK_SKEW
from facade.http.queue_metrics import (
    AGE,
    BOUNDS,
    DONE,
    EMPTY,
    FAMILIES,
    GROUPS,
    IN_FLIGHT_LIMIT,
    MESSAGES,
    NOISY,
    PAUSED,
    RECEIVES,
    RETENTION,
    SENT,
    SENT_BYTES,
    SET_BACK,
    TOTAL,
    WAITING,
)
from tests.docs.markdown import item, wrapped

_DONE = {
    "received": "Deliveries by `queue` and `tag`, without those that no answer carried.",
    "redelivered": "Of these, those of messages delivered before.",
    "acked": "Messages acknowledged, by `queue` and `tag`.",
    "released": "Deliveries that consumers gave back, by `queue` and `tag`.",
    "dead": "Messages moved to a dead-letter queue, by the `queue` and `tag` where they died.",
}
ROOT = Path(__file__).resolve().parents[2]
_PREFIX = "leaseway_"
HEAD = """# Metrics

Written by `make docs`. `GET /metrics` has them in the text format of Prometheus, for the worker
that accepted the connection. Where several workers share a port, series of one have the label
`worker`. What is in queues is the same from every worker, without that label, of the 50 queues with
the oldest messages; `GET /metrics/queues?prefix=&family=` has all. A counter with a `reason` or a
`status`, and receives by queue, appear when they have counted something; the others begin with 0.

"""
# Metric -> kind, meaning. An alarm's labels are in a section of their own.
MEANINGS = {
    "leaseway_requests_total": (
        "counter",
        (
            "Requests by `verb` and `status` (499: the client left). Verbs of the dialects begin with `sqs.`, "
            "`emq.`, `mns.`, `rocketmq.`."
        ),
    ),
    "leaseway_request_seconds": (
        "histogram",
        "Time from a request's head to its reply, waits included, by `verb`.",
    ),
    "leaseway_time_in_queue_seconds": (
        "histogram",
        (
            "Time from the send of a message to its first delivery, which was by this worker. One that no "
            "answer carried may count again."
        ),
    ),
    "leaseway_time_in_hand_seconds": (
        "histogram",
        (
            "Time from a delivery to its end, by `verb`: `ack`, or `release` (also a lease set to 0). Leases that "
            "lapsed are in none."
        ),
    ),
    "leaseway_plane_requests_total": (
        "counter",
        ("Of `leaseway_requests_total`, by `way`: `plane`, or `python` with a `reason`; see below."),
    ),
    "leaseway_receives_in_progress": ("gauge", "Receives being served; nearly all wait."),
    "leaseway_request_bytes_held": ("gauge", "Bytes of requests in hand, those still coming included."),
    "leaseway_requests_coming": ("gauge", "Requests that are not whole yet."),
    "leaseway_requests_gave_way_total": (
        "counter",
        "Slow requests refused when others needed their room.",
    ),
    "leaseway_requests_without_room_total": ("counter", "Requests, or parts, without room."),
    "leaseway_connections_refused_total": ("counter", "Connections beyond the bound, while none was idle."),
    "leaseway_connections_idle_closed_total": ("counter", "Idle connections closed for new ones."),
    "leaseway_alarm": ("gauge", "What needs attention, by `kind` and `queue`; see below."),
    TOTAL: ("gauge", "Messages, not settled, of all queues that the caller may look at, by `state`."),
    MESSAGES: (
        "gauge",
        "The same by `queue`, added up over its tags.",
    ),
    AGE: (
        "gauge",
        ("Age of the oldest open message of a `queue`, leased or with a delay under five minutes too; 0 = none."),
    ),
    RETENTION: ("gauge", "The `queue`'s retention."),
    IN_FLIGHT_LIMIT: ("gauge", "Messages of the `queue` that may be leased at once under each tag."),
    PAUSED: ("gauge", "1 while a `queue`, or a tag of it, is paused."),
    GROUPS: (
        "gauge",
        (
            "Groups of a `queue` with leased messages, added up over tags, of a standard queue over partitions "
            "too. Of a FIFO queue 2,000 messages of a partition and tag are looked at."
        ),
    ),
    NOISY: (
        "gauge",
        "[Noisy](sqs.md#fair-queues) groups of a standard `queue`, added up over its tags.",
    ),
    SET_BACK: (
        "gauge",
        "Ready messages of noisy groups behind those of others, as far as receives have met them.",
    ),
    SENT: (
        "counter",
        ("Records written to a `queue` since it was made, [as the API counts](native.md#what-is-in-all-queues)."),
    ),
    **{family: ("counter", _DONE[name]) for family, name in DONE.items()},
    WAITING: (
        "gauge",
        "Receives that wait at this worker, by `queue` and `tag`, of the 50 tags with the most.",
    ),
    SENT_BYTES: (
        "counter",
        (
            "Bytes of messages (body and attributes) that clients sent to this worker and Kafka has taken, by `queue`, "
            "of the 50 with the most; without transactions."
        ),
    ),
    EMPTY: (
        "counter",
        ("Receives that this worker answered without a message, by `queue` and `tag`, of the 50 tags with the most."),
    ),
    "leaseway_journal_lag_seconds": (
        "gauge",
        "Age of the oldest change that Kafka lacks, of partitions that this worker owns.",
    ),
    "leaseway_long_polls_waiting": ("gauge", "Receives that wait for a message."),
    "leaseway_long_polls_waiting_of_one": (
        "gauge",
        "The same for the principal, queue, user or account with the most, at this worker.",
    ),
    "leaseway_quota_refusals_total": ("counter", "Requests beyond a quota of requests, bytes or waiting receives."),
    "leaseway_queues": ("gauge", "Queues of the service."),
    "leaseway_partitions": ("gauge", "Partitions of all queues."),
    "leaseway_units_owned": ("gauge", "Partitions that this worker loads and journals."),
    "leaseway_redis_scripts_total": ("counter", "Calls of Lua scripts."),
    "leaseway_background_failures_total": (
        "counter",
        "Background tasks that ended by an unexpected exception, which is a defect.",
    ),
    "leaseway_journal_entries_total": ("counter", "Entries written to the journal."),
    "leaseway_journal_entries_read_total": (
        "counter",
        "Those read for snapshots, rebuilds and verification.",
    ),
    "leaseway_journal_gaps_total": ("counter", "Times that Kafka had deleted journal records before they were folded."),
    "leaseway_loaded_chunks_total": ("counter", "Reads from Kafka that brought messages into Redis."),
    "leaseway_snapshots_total": ("counter", "Snapshots of partitions written."),
    "leaseway_rebuilds_total": ("counter", "Partitions whose state was rebuilt from Kafka."),
    "leaseway_rebuilt_settled_total": ("counter", "Settled messages that rebuilds restored."),
    "leaseway_rebuilt_deliveries_total": ("counter", "Deliveries that rebuilds restored."),
    "leaseway_write_through_failed_total": (
        "counter",
        "Sends that Redis did not take at once, and takes later.",
    ),
    "leaseway_deliveries_returned_total": ("counter", "Deliveries given back because no answer carried them."),
    "leaseway_deliveries_too_late_to_return_total": (
        "counter",
        "The same, but the lease had ended before.",
    ),
    "leaseway_receives_over_limit_total": ("counter", "Receives that met the limit of messages in flight."),
    "leaseway_stale_handles_total": (
        "counter",
        ("Stale handles, by [`reason`](../how-to/troubleshoot.md#why-a-handle-is-stale)."),
    ),
    "leaseway_messages_moved_total": ("counter", "Messages moved by redrive tasks."),
    "leaseway_groups_parked_total": ("counter", "Groups of FIFO queues parked."),
    "leaseway_groups_unparked_total": ("counter", "Groups unparked."),
    "leaseway_transactions_open": ("gauge", "Transactions that nobody has decided."),
    "leaseway_transactions_prepared_total": ("counter", "Transactions prepared."),
    "leaseway_transactions_committed_total": ("counter", "Transactions whose messages were sent."),
    "leaseway_transactions_ended_total": (
        "counter",
        "Transactions that the service decided: nobody knew, too old, or without a queue.",
    ),
    "leaseway_transaction_checks_total": ("counter", "Times that producers could be asked about a transaction."),
    "leaseway_webhooks_failed_total": ("counter", "Checks by webhook without an answer that can be used."),
    "leaseway_wrong_secrets_total": (
        "counter",
        "Requests with a wrong secret or signature, or of a key that is not there.",
    ),
    "leaseway_attempts_refused_total": (
        "counter",
        "Requests refused without a look at their secret, after too many wrong ones.",
    ),
    "leaseway_control_refused_total": (
        "counter",
        "Control records whose seal does not hold: forged, altered or played back.",
    ),
    "leaseway_undecodable_records_total": ("counter", "Unreadable records, skipped."),
    "leaseway_torn_batch_records_total": (
        "counter",
        "Records of atomic batches that never became whole, skipped: nobody was answered for them.",
    ),
    "leaseway_late_commits_total": (
        "counter",
        "Copies of committed messages that came too late to count, skipped.",
    ),
    "leaseway_brought_total": ("counter", "Deferred messages that came back into the window, under each tag."),
    "leaseway_delay_pointers_total": ("counter", "Pointers to deferred messages that went to the wheel."),
    "leaseway_wheel_repairs_total": (
        "counter",
        "Times that the wheel had lost pointers; the queue's topic has them.",
    ),
    "leaseway_lost_to_retention_total": ("counter", "Messages that Kafka deleted before they were settled."),
    "leaseway_topics_lost_total": ("counter", "Topics of queues that were gone, made again."),
    "leaseway_meter_records_dropped_total": (
        "counter",
        "Counts of requests dropped after Kafka took nothing for an hour.",
    ),
    "leaseway_audit_records_dropped_total": (
        "counter",
        "Records of the audit dropped: Kafka took none, and 10,000 waited.",
    ),
    "leaseway_audit_suppressed_total": (
        "counter",
        "Failed requests that the audit only counts: a worker writes 10 a second.",
    ),
    "leaseway_alerts_told_total": (
        "counter",
        "Notifications and daily statistics that a webhook or mail server has taken.",
    ),
    "leaseway_alerts_not_told_total": ("counter", "Those that nothing took, after three tries."),
    "leaseway_lost_with_topic_total": ("counter", "Messages that were lost with them."),
    "process_cpu_seconds_total": ("counter", "CPU time of the worker."),
    "process_resident_memory_bytes": ("gauge", "Memory in use."),
    "process_virtual_memory_bytes": ("gauge", "Addresses of the worker."),
    "process_start_time_seconds": ("gauge", "When it started (Unix time)."),
    "process_open_fds": ("gauge", "Open file descriptors."),
    "process_max_fds": ("gauge", "File descriptors that may be open."),
}
REASON = """Why the [plane](../how-to/use-the-native-front.md) gave a request to Python, which is slower. A worker
without a plane counts none."""
REASONS = {
    "off": "The plane did not start; `GET /health` says why.",
    "verb": "It is no send, receive or verb on handles of SQS over JSON, of the native API or of EMQ.",
    "head": "Its head has [what only Python reads](../how-to/use-the-native-front.md#see-what-it-does).",
    "fields": "Its body has such a field or value.",
    "key": "Its signature is wrong, missing, or not known to the library yet or any more.",
    "new": "It is among the first of its caller to its queue.",
    "size": "It or a message is larger than the plane takes.",
    "attributes": "Sends with attributes, to a queue with tags that have filters.",
    "busy": "Too much was in hand: bytes, receives, sends to Kafka, or messages in flight.",
    "redis": "The plane had no connection to Redis, or Redis did not do what it was asked.",
    "changed": "The queue, a right or a quota changed meanwhile, or a script had refused the queue.",
    "bodies": "A message had no body in the window, or attributes or a lease of its own.",
    "empty": "It does not wait, and found nothing: Python looks at the ends of the log first.",
    "handle": "A handle of another tag or queue, for one use, or none; or a refused change of visibility.",
    "slow": "Its body was not whole after a second.",
    "kafka": "Kafka did not take the send, and has nothing of it.",
    "refused": "The caller may not, or there is no such queue or tag.",
    "quota": "A quota counts such requests one by one, or more bytes of the day must be taken from it first.",
    "key_ends": "The caller's key ends within a minute.",
    "failed": "The plane had begun it; how far Redis or Kafka came is unknown.",
    "fifo": "The queue is a FIFO queue.",
    "priority": "The queue has priorities.",
    "on_exhausted": "The queue has `on_exhausted`.",
    "retention_from": "Retention counts from the send.",
    "max_in_flight": "The queue bounds what is in flight.",
    "paused": "Receives: the queue, or the tag, is paused.",
    "partitions": "The queue has more than 512 partitions and tags, multiplied.",
    "delay": "Sends with a delay of five minutes or more, or the first with a delay for an hour.",
}
ALARM = """`leaseway_alarm` is there while an alarm lasts. Every worker looks at all queues every 30 s, but only
the owner of a partition knows `load_stopped`, and `records_skipped` is of this worker. `journal_gap` and
`control_refused` last until the worker ends. The `queue` of `journal_gap` is a partition of the journal, of
`control_refused` the reason (`unsealed`, `other_secret`, `altered`, `stale`, `replayed`), of `clock_skew` whose
clock differs. `GET /health` counts the queues, or clocks, with each kind."""
_REDIS_EVICTS = "1 while Redis has a maxmemory-policy that evicts keys; it names no queue"
_CONTROL_REFUSED = "control records that this worker has refused: somebody else wrote them, or they were played back"
_JOURNAL_GAP = (
    "records of the journal that Kafka deleted before they were folded: acks in them are forgotten if Redis is lost"
)


def _calls(tree: ast.AST, name: str) -> Iterator[ast.expr]:
    """First arguments of calls of `name`, as a function or a method."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and node.args
            and name in (getattr(node.func, "attr", None), getattr(node.func, "id", None))
        ):
            yield node.args[0]


def _counted(tree: ast.AST) -> Iterator[str]:
    for argument in _calls(tree, "count"):
        if isinstance(argument, ast.Constant) and str(argument.value).endswith("_total"):
            yield _PREFIX + str(argument.value)


def _told(tree: ast.AST) -> Iterator[str]:
    """Keys of what a method `counts` of the engine returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "counts":
            for part in ast.walk(node):
                if isinstance(part, ast.Dict):
                    yield from (
                        _PREFIX + key.value
                        for key in part.keys
                        if isinstance(key, ast.Constant) and isinstance(key.value, str)
                    )


def counted() -> set[str]:
    """Every counter of the engine without a label that something is counted by, some time."""
    return {name for file in (ROOT / "engine").rglob("*.py") for name in _counted(ast.parse(file.read_text()))}


def names() -> set[str]:
    """Every name that the code can show."""
    found = counted()
    found.update(_told(ast.parse((ROOT / "engine" / "wiring" / "worker.py").read_text())))  # `Parts.counts`
    found.add(_PREFIX + STALE_HANDLES)
    found.update(_told(ast.parse((ROOT / "facade" / "http" / "bounds" / "bounds.py").read_text())))
    tree = ast.parse((ROOT / "facade" / "http" / "metrics.py").read_text())
    for family in ("CounterMetricFamily", "GaugeMetricFamily", "HistogramMetricFamily"):
        for argument in _calls(tree, family):
            if isinstance(argument, ast.Constant):
                found.add(str(argument.value) + ("_total" if family.startswith("Counter") else ""))
    process = {one.name for family in ProcessCollector(registry=None).collect() for one in family.samples}
    return found | FAMILIES.keys() | BOUNDS.keys() | RECEIVES.keys() | {SENT_BYTES, TOTAL} | process


def page() -> str:
    """The page. Raises AssertionError when code and meanings differ."""
    assert names() == MEANINGS.keys(), f"without a meaning, or without code: {sorted(names() ^ MEANINGS.keys())}"
    others = {
        "journal_gap": _JOURNAL_GAP,
        "control_refused": _CONTROL_REFUSED,
        CLOCK_SKEW: ABOUT_SKEW,
        "redis_evicts": _REDIS_EVICTS,
    }
    kinds = {**KINDS, **others}
    assert set(WHYS) == REASONS.keys(), f"without a meaning, or without code: {sorted(set(WHYS) ^ REASONS.keys())}"
    return (
        HEAD
        + "".join(_kind(kind) for kind in ("gauge", "histogram", "counter"))
        + "## What the plane serves\n\n"
        + wrapped(f"{REASON} The reasons are:")
        + "".join(item(f"`{why}`: {about}") for why, about in REASONS.items())
        + "\n## Alarms\n\n"
        + wrapped(f"{ALARM} The kinds, and what the number counts:")
        + "".join(item(f"`{kind}`: {about}") for kind, about in kinds.items())
    )


def _kind(kind: str) -> str:
    rows = [item(f"`{name}`: {meaning}") for name, (of, meaning) in MEANINGS.items() if of == kind]
    return f"## {kind.capitalize()}s\n\n{''.join(rows)}\n"
