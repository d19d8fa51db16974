"""deploy/monitoring/grafana.json: a dashboard of a service, its worst queues, and one queue.

Series of queues are the same from every worker, so `max` makes one of those that several scrapes
brought. Series of workers may come from one worker at one scrape and from another at the next, so
they are looked at over minutes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

WIDTH: Final = 24  # columns of Grafana
HEIGHT: Final = 7
RATE: Final = "[$__rate_interval]"
# What is in a queue, and what was done under each of its tags.
QUEUE: Final = '{queue="$queue"}'
TAG: Final = '{queue="$queue",tag=~"$tag"}'


@dataclass(frozen=True)
class Panel:
    """A chart with a line for each series of its expressions, by the text of each line. `kind` and
    `unit` as Grafana calls them.
    """

    title: str
    unit: str
    lines: dict[str, str]
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False
    about: str = ""


def _quantile(share: str) -> str:
    buckets = f'sum by (le) (rate(leaseway_request_seconds_bucket{{verb!~".*[Rr]eceive.*"}}{RATE}))'
    return f"histogram_quantile({share}, {buckets})"


def _time(place: str, share: str) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate(leaseway_time_in_{place}_seconds_bucket{RATE})))"


def _of_workers(metric: str) -> str:
    return f"sum(max by (instance, worker) (last_over_time({metric}[2m])))"


def _rate(metric: str) -> str:
    return f"sum(rate({metric}{RATE}))"


def _worst(expression: str) -> str:
    return f"topk(10, {expression})"


def _by_queue(metric: str, over: str) -> str:
    return f"sum by (queue) (max by (queue, tag) ({over}({metric}{RATE if over == 'rate' else '[1h]'})))"


def _of_tag(metric: str) -> str:
    return f"max by (tag) (rate({metric}{TAG}{RATE}))"


def _waiting(by: str, at: str = "") -> str:
    """Of all workers, each as it was scraped last."""
    return _of_receives(by, f"last_over_time(leaseway_queue_waiting_receives{at}[2m])")


def _empty(by: str, at: str = "") -> str:
    return _of_receives(by, f"rate(leaseway_queue_empty_receives_total{at}{RATE})")


def _sent_bytes(by: str, at: str = "") -> str:
    """A second, of all workers, of each of which two jobs may have brought it."""
    return f"sum by ({by}) (max by (instance, worker, queue) (rate(leaseway_queue_sent_bytes_total{at}{RATE})))"


def _of_receives(by: str, expression: str) -> str:
    """Added up over workers, of each of which two jobs may have brought it."""
    return f"sum by ({by}) (max by (instance, worker, queue, tag) ({expression}))"


AGES: Final = "max by (queue) (leaseway_queue_oldest_message_age_seconds)"
SERVICE: Final = (
    Panel(
        "Workers",
        "short",
        {"": "count(count by (instance, worker) (last_over_time(leaseway_units_owned[5m])))"},
        "stat",
        4,
    ),
    Panel(
        "Alarms",
        "short",
        {"": "count(max by (kind, queue) (last_over_time(leaseway_alarm[2m]))) or vector(0)"},
        "stat",
        4,
    ),
    Panel("Messages", "short", {"{{state}}": "max by (state) (leaseway_messages)"}, width=8, stacked=True),
    Panel("Requests by verb", "reqps", {"{{verb}}": f"sum by (verb) (rate(leaseway_requests_total{RATE}))"}, width=8),
    Panel(
        "Answers that are no success",
        "reqps",
        {"{{status}}": f'sum by (status) (rate(leaseway_requests_total{{status!~"2.."}}{RATE}))'},
    ),
    Panel("Time of requests, without receives", "s", {"p50": _quantile("0.5"), "p99": _quantile("0.99")}),
    Panel("Time in queues", "s", {"p50": _time("queue", "0.5"), "p99": _time("queue", "0.99")}),
    Panel(
        "Time in hand",
        "s",
        {"p50": _time("hand", "0.5"), "p99": _time("hand", "0.99")},
        about="From a delivery to its ack or release.",
    ),
    Panel(
        "Refused",
        "reqps",
        {
            "quota": _rate("leaseway_quota_refusals_total"),
            "no room": _rate("leaseway_requests_without_room_total"),
            "gave way": _rate("leaseway_requests_gave_way_total"),
            "connections": _rate("leaseway_connections_refused_total"),
            "wrong secrets": _rate("leaseway_wrong_secrets_total"),
        },
    ),
    Panel(
        "Served by",
        "reqps",
        {"{{way}} {{reason}}": f"sum by (way, reason) (rate(leaseway_plane_requests_total{RATE}))"},
    ),
    Panel(
        "Journal lag",
        "s",
        {"{{instance}} {{worker}}": "max by (instance, worker) (max_over_time(leaseway_journal_lag_seconds[2m]))"},
    ),
    Panel(
        "Receives that wait, and partitions owned",
        "short",
        {"waiting": _of_workers("leaseway_long_polls_waiting"), "owned": _of_workers("leaseway_units_owned")},
    ),
    Panel(
        "CPU of workers",
        "percentunit",
        {"{{instance}} {{worker}}": f"sum by (instance, worker) (rate(process_cpu_seconds_total{RATE}))"},
    ),
    Panel(
        "Memory of workers",
        "bytes",
        {"{{instance}} {{worker}}": "max by (instance, worker) (last_over_time(process_resident_memory_bytes[2m]))"},
    ),
    Panel("Calls of Redis", "ops", {"scripts": _rate("leaseway_redis_scripts_total")}),
)
WORST: Final = (
    Panel("Oldest messages", "s", {"{{queue}}": _worst(AGES)}),
    Panel(
        "Most messages",
        "short",
        {"{{queue}}": _worst("sum by (queue) (max by (queue, state) (leaseway_queue_messages))")},
    ),
    Panel(
        "Nearest to the end of their retention",
        "percentunit",
        {"{{queue}}": _worst(f"{AGES} / max by (queue) (leaseway_queue_retention_seconds)")},
    ),
    Panel(
        "Most died within an hour",
        "short",
        {"{{queue}}": _worst(_by_queue("leaseway_queue_dead_total", "increase"))},
    ),
    Panel(
        "Most deliveries that are repeated",
        "percentunit",
        {
            "{{queue}}": _worst(
                f"{_by_queue('leaseway_queue_redelivered_total', 'rate')}"
                f" / {_by_queue('leaseway_queue_received_total', 'rate')}"
            )
        },
    ),
    Panel(
        "Most receives that find nothing",
        "ops",
        {"{{queue}}": _worst(_empty("queue"))},
    ),
    Panel("Most receives that wait", "short", {"{{queue}}": _worst(_waiting("queue"))}),
    Panel("Most bytes sent", "Bps", {"{{queue}}": _worst(_sent_bytes("queue"))}),
    Panel(
        "Nearest to the bound in flight",
        "percentunit",
        {
            "{{queue}}": _worst(
                'max by (queue) (leaseway_queue_messages{state="leased"})'
                " / max by (queue) (leaseway_queue_in_flight_limit)"
            )
        },
    ),
)
ONE: Final = (
    Panel(
        "Messages of $queue",
        "short",
        {"{{state}}": f"max by (state) (leaseway_queue_messages{QUEUE})"},
        width=12,
        stacked=True,
    ),
    Panel(
        "Oldest message",
        "s",
        {
            "age": f"max(leaseway_queue_oldest_message_age_seconds{QUEUE})",
            "retention": f"max(leaseway_queue_retention_seconds{QUEUE})",
        },
        width=12,
    ),
    Panel(
        "In and out",
        "ops",
        {
            "sent": f"max(rate(leaseway_queue_sent_total{QUEUE}{RATE}))",
            "received {{tag}}": _of_tag("leaseway_queue_received_total"),
            "acked {{tag}}": _of_tag("leaseway_queue_acked_total"),
        },
        width=12,
    ),
    Panel(
        "Receives",
        "ops",
        {"empty {{tag}}": _empty("tag", TAG)},
        width=12,
        about="They were answered without a message.",
    ),
    Panel(
        "Receives that wait",
        "short",
        {"{{tag}}": _waiting("tag", TAG)},
        width=12,
    ),
    Panel(
        "Not acked",
        "ops",
        {
            "repeated {{tag}}": _of_tag("leaseway_queue_redelivered_total"),
            "released {{tag}}": _of_tag("leaseway_queue_released_total"),
            "dead {{tag}}": _of_tag("leaseway_queue_dead_total"),
        },
        width=12,
    ),
)
FIFO: Final = (
    Panel(
        "Messages of parked groups",
        "short",
        {"{{queue}}": _worst('max by (queue) (leaseway_queue_messages{state="parked"}) > 0')},
    ),
    Panel("Groups in flight", "short", {"{{queue}}": _worst("max by (queue) (leaseway_queue_groups_in_flight) > 0")}),
    Panel("Noisy groups", "short", {"{{queue}}": _worst("max by (queue) (leaseway_queue_noisy_groups) > 0")}),
    Panel(
        "Messages behind those of quiet groups",
        "short",
        {"{{queue}}": _worst("max by (queue) (leaseway_queue_set_back_messages) > 0")},
    ),
    Panel(
        "Groups",
        "ops",
        {"parked": _rate("leaseway_groups_parked_total"), "unparked": _rate("leaseway_groups_unparked_total")},
    ),
    Panel(
        "Receives at a bound in flight",
        "ops",
        {"receives": _rate("leaseway_receives_over_limit_total")},
        about="They found as many messages leased as may be: of the queue, or 120,000.",
    ),
)
MOVES: Final = (
    Panel(
        "Rebuilt from Kafka",
        "ops",
        {
            "partitions": _rate("leaseway_rebuilds_total"),
            "settled messages": _rate("leaseway_rebuilt_settled_total"),
            "deliveries": _rate("leaseway_rebuilt_deliveries_total"),
        },
    ),
    Panel(
        "Journal",
        "ops",
        {
            "entries written": _rate("leaseway_journal_entries_total"),
            "entries read": _rate("leaseway_journal_entries_read_total"),
            "snapshots": _rate("leaseway_snapshots_total"),
        },
    ),
    Panel("Moved by redrive tasks", "ops", {"messages": _rate("leaseway_messages_moved_total")}),
    Panel(
        "Deliveries given back",
        "ops",
        {
            "in time": _rate("leaseway_deliveries_returned_total"),
            "too late": _rate("leaseway_deliveries_too_late_to_return_total"),
        },
        about="No answer carried them.",
    ),
    Panel("Stale handles", "ops", {"{{reason}}": f"sum by (reason) (rate(leaseway_stale_handles_total{RATE}))"}),
    Panel(
        "Transactions",
        "ops",
        {
            "prepared": _rate("leaseway_transactions_prepared_total"),
            "committed": _rate("leaseway_transactions_committed_total"),
            "ended by the service": _rate("leaseway_transactions_ended_total"),
        },
    ),
)
ROWS: Final = {
    "Service": SERVICE,
    "Worst ten queues": WORST,
    "One queue: $queue": ONE,
    "FIFO and fairness": FIFO,
    "Rebuilds and moves": MOVES,
}
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def page() -> str:
    """The dashboard as Grafana imports it."""
    board = {
        "title": "Leaseway",
        "uid": "leaseway",
        "tags": ["leaseway"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": list(_panels()),
    }
    return json.dumps(board, indent=1) + "\n"


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"},
        _values("queue", "Queue", "label_values(leaseway_queue_messages, queue)"),
        {
            **_values("tag", "Tag", 'label_values(leaseway_queue_received_total{queue="$queue"}, tag)'),
            "includeAll": True,
            "multi": True,
            "current": {"text": ["All"], "value": ["$__all"]},
        },
    ]


def _values(name: str, label: str, query: str) -> dict[str, Any]:
    asked = {"query": query, "refId": name}
    own = {"name": name, "type": "query", "label": label, "datasource": SOURCE, "query": asked}
    return {**own, "refresh": 2, "sort": 1}


def _panels() -> Iterator[dict[str, Any]]:
    top, number = 0, 0
    for title, panels in ROWS.items():
        number += 1
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        yield {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}
        top, left = top + 1, 0
        for panel in panels:
            number += 1
            if left + panel.width > WIDTH:
                top, left = top + HEIGHT, 0
            yield _drawn(panel, number, {"x": left, "y": top, "w": panel.width, "h": HEIGHT})
            left += panel.width
        top += HEIGHT


def _drawn(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    custom = {"lineWidth": 1, "fillOpacity": 10, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    targets = [
        {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
        for place, (legend, expression) in enumerate(panel.lines.items())
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
        if panel.kind == "timeseries"
        else {"reduceOptions": {"calcs": ["lastNotNull"]}},
        "targets": targets,
    }
