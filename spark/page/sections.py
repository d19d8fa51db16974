"""The parts of the page about traffic, waiting, backlog, redelivery and leases. Rows in, HTML
out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from schemas.vocabulary import DEFAULT_TAG
from spark.page.charts import WIDE, Series, bars, histogram, lines
from spark.page.labels import count, duration, moment, share, size
from spark.page.markup import Figures, Row, column, figure, grid, section, table, text_column

_TRAFFIC = {
    "sent": "sent",
    "leased": "received",
    "acked": "acknowledged",
    "dead": "dead-lettered",
    "arrived": "moved in",
}
# What the chart tells apart; `removed` is the sum of the others, each of which has a column of the
# table.
_ENDS = ("acked", "released", "lapsed", "killed", "removed", "open")
_REMOVED = ("purged", "expired", "deleted", "moved")


def traffic(shown: Figures, summary: Row) -> str:
    """What came and went."""
    per_minute = shown["step_ms"] / 60_000
    found: dict[str, dict[int, float]] = {measure: {} for measure in _TRAFFIC}
    for row in shown["traffic"]:
        found[row["measure"]][row["at_ms"]] = row["messages"] / per_minute
    series = [
        Series(name, [(ms, found[measure].get(ms, 0)) for ms in steps(shown)]) for measure,
        name in _TRAFFIC.items() if found[measure]
    ]  # fmt: skip
    says = "Nothing was sent."
    if found["sent"]:
        ms, peak = max(found["sent"].items(), key=lambda pair: pair[1])
        says = f"Peak: {count(round(peak))} messages/min at {_hour(ms)}."
    drawing = lines(series, shown["begin_ms"], shown["end_ms"], width=WIDE)
    chart = figure("Messages a minute, all queues", says, drawing, [one.name for one in series], wide=True)
    by_tag: dict[tuple[str, str], dict[str, Any]] = defaultdict(lambda: dict.fromkeys((*_TRAFFIC, "bytes"), 0))
    for row in summary["queues"]:
        if row["measure"] in _TRAFFIC:
            # Every queue has the default tag: what happens to the queue itself stands there.
            entry = by_tag[row["queue"], row["tag"] or DEFAULT_TAG]
            entry[row["measure"]] += row["messages"]
            entry["bytes"] += row["bytes"]
    rows = [{"queue": queue, "tag": tag, **entry} for (queue, tag), entry in sorted(by_tag.items())]
    cells = [text_column("Queue", "queue"), text_column("Tag", "tag")]
    cells += [column(name.capitalize(), measure, count, summed=True) for measure, name in _TRAFFIC.items()]
    about = (
        "Sends belong to the queue and stand beside its default tag; what happened to messages belongs to each tag. "
        "Moved in: as a dead letter, or by a redrive."
    )
    return section(
        "traffic", "Traffic", about, grid(chart), table(rows, [*cells, column("Bytes", "bytes", size, summed=True)])
    )


def waiting(shown: Figures, summary: Row) -> str:
    """How long messages wait and leases last."""
    drawn = [
        _percentiles(shown, "send_to_receive", "waited", "From receivable to received"),
        _percentiles(shown, "receive_to_ack", "took", "From received to acknowledged"),
    ]
    names = {"send_to_receive": "waits", "receive_to_ack": "takes"}
    rows = [{**row, "what": names[row["measure"]]} for row in summary["latency"]]
    cells = [
        text_column("Queue", "queue"),
        text_column("Tag", "tag"),
        text_column("What", "what"),
        column("Count", "count", count),
    ]
    heads = {
        "Mean": "mean_ms",
        "Half of them at most (p50)": "p50_ms",
        "95 of 100 (p95)": "p95_ms",
        "99 of 100 (p99)": "p99_ms",
        "999 of 1,000 (p99.9)": "p999_ms",
        "Longest": "max_ms",
    }
    cells += [column(head, name, duration) for head, name in heads.items()]
    about = (
        "A message waits from when it is receivable (send + delay) to its first delivery, and takes from "
        "delivery to acknowledgement. "
        "The charts have the median of each step, p95 and p99 of its worst minute; the scale is logarithmic."
    )
    return section(
        "waiting", "Waiting and working", about, grid(*(one for few in drawn for one in few)), table(rows, cells, 30)
    )


def _percentiles(shown: Figures, measure: str, verb: str, title: str) -> list[str]:
    by_tag: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in shown["latency"]:
        if row["measure"] == measure:
            by_tag[row["queue"], row["tag"]].append(row)
    found = []
    for (queue, tag), rows in by_tag.items():
        at = {row["at_ms"]: row for row in rows}
        names = (("p50_ms", "median"), ("p95_ms", "p95"), ("p99_ms", "p99"))
        series = [Series(name, [(ms, at[ms][key] if ms in at else None) for ms in steps(shown)]) for key, name in names]
        worst = max(rows, key=lambda row: row["p99_ms"])
        says = (
            f"One in a hundred {verb} {duration(worst['p99_ms'])} or longer in the worst minute, at "
            f"{_hour(worst['at_ms'])}."
        )
        drawing = lines(series, shown["begin_ms"], shown["end_ms"], duration, log=True)
        found.append(figure(f"{title}: {_of(queue, tag)}", says, drawing, [name for _, name in names]))
    return found


def backlog(shown: Figures) -> str:
    """What is not settled, over time and now."""
    by_tag: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in shown["backlog"]:
        by_tag[row["queue"], row["tag"]].append(row)
    drawn = []
    names = (("backlog", "not settled"), ("in_flight", "leased"), ("delayed", "delayed"))
    for (queue, tag), rows in by_tag.items():
        most = max(rows, key=lambda row: row["backlog"])
        says = f"At most {count(most['backlog'])} at {_hour(most['at_ms'])}; {count(rows[-1]['backlog'])} at the end."
        series = [Series(name, [(row["at_ms"], row[key]) for row in rows]) for key, name in names]
        drawing = lines(series, shown["begin_ms"], shown["end_ms"], steps=True)
        drawn.append(figure(f"Backlog: {_of(queue, tag)}", says, drawing, [name for _, name in names]))
    cells = [
        text_column("Queue", "queue"),
        text_column("Tag", "tag"),
        column("Messages", "messages", count, summed=True),
    ]
    cells += [
        column("Not settled", "open", count, summed=True),
        column("Behind by (offsets)", "lag", count),
        column("Oldest", "oldest_ms", duration),
    ]
    about = (
        "Messages that no acknowledgement, death or other end has settled. Lag is from the first of them to "
        "the end of the log, "
        "in the worst partition."
    )
    return section("backlog", "Backlog and tag lag", about, grid(*drawn), table(shown["lag"], cells))


def redelivery(shown: Figures, summary: Row) -> str:
    """How deliveries ended, and which messages never succeed."""
    rows: Sequence[Row] = sorted(summary["redelivery"], key=lambda row: -row["deliveries"])
    chart = ""
    if rows:
        worst = max(rows, key=lambda row: row["redelivery_share"])
        of = _of(worst["queue"], worst["tag"])
        says = f"{share(worst['redelivery_share'])} of the deliveries of {of} were not the first of their message."
        summed = [{**row, "removed": sum(row[end] for end in _REMOVED)} for row in rows[:10]]
        named = [(_of(row["queue"], row["tag"]), [row[end] for end in _ENDS]) for row in summed]
        chart = grid(figure("How deliveries ended", says, bars(named, _ENDS, width=WIDE), _ENDS, wide=True))
    cells = [
        text_column("Queue", "queue"),
        text_column("Tag", "tag"),
        column("Messages", "messages", count, summed=True),
    ]
    for head, name in (
        ("Deliveries", "deliveries"),
        ("Redeliveries", "redeliveries"),
        ("Messages redelivered", "redelivered"),
    ):
        cells.append(column(head, name, count, summed=True))
    cells += [column("Redelivery rate", "redelivery_share", share), column("Most deliveries", "most_deliveries", count)]
    how = (*(end for end in _ENDS if end not in ("removed", "open")), *_REMOVED, "open")
    ended = [*cells[:2], column("Deliveries", "deliveries", count, summed=True)]
    ended += [column(end.capitalize(), end, count, summed=True) for end in how]
    about = (
        "A message is delivered again after it was released (also by a lease that was set to end at once), or "
        "after its lease has lapsed "
        "without an acknowledgement, whether or not anybody has noticed. Removed: purged, expired, deleted by "
        "id, or redriven."
    )
    ends = "<h4>How deliveries ended</h4>" + table(rows, ended)
    return section("redelivery", "Redelivery", about, chart, table(rows, cells), ends, _poison(shown["poison"]))


def _poison(rows: Sequence[Row]) -> str:
    """Returns the table of the messages that were delivered often and never acknowledged."""
    cells = [
        text_column("Queue", "queue"),
        text_column("Tag", "tag"),
        column("Partition", "partition", str),
        column("Offset", "offset", str),
        column("Deliveries", "deliveries", count),
        text_column("Last ended", "last_how"),
        text_column("Settled", "settled_how"),
        column("Last received", "last_received_at", moment),
    ]
    none = "No message was delivered three times without an acknowledgement."
    return "<h4>Poison: delivered three times or more and never acknowledged</h4>" + table(rows, cells, 15, none)


def leases(shown: Figures) -> str:
    """Whether leases are long enough for their consumers."""
    buckets = [(f"<{duration(row['below_ms'])}", row["count"]) for row in shown["leases"]]
    chart = ""
    if buckets:
        row = max(shown["leases"], key=lambda row: row["count"])
        low, high, total = (
            duration(row["below_ms"] // 2),
            duration(row["below_ms"]),
            sum(row["count"] for row in shown["leases"]),
        )
        says = (
            f"The longest bar: {count(row['count'])} of {count(total)} acknowledged messages were worked on "
            f"for {low} to {high}."
        )
        chart = grid(figure("How long work on an acknowledged message took", says, histogram(buckets)))
    cells = [
        text_column("Queue", "queue"),
        text_column("Tag", "tag"),
        column("Hour", "hour", moment),
        column("Leases", "leases", count, summed=True),
    ]
    for head, name in (("Lapsed", "lapsed"), ("Late", "late"), ("Nearly late", "near"), ("Extended", "extended")):
        cells.append(column(head, name, count, summed=True))
    cells += [
        column("Half of them at most (p50)", "lease_p50_ms", duration),
        column("99 of 100 (p99)", "lease_p99_ms", duration),
        column("Longest", "longest_ms", duration),
    ]
    about = (
        "Late: acknowledged or released after the lease was over. Nearly late: after 80 % of it. Hours "
        "without any are left out."
    )
    slow = table(shown["slow_leases"], cells, 15, "No lease lapsed or was nearly too short.")
    return section("leases", "Slow consumers", about, chart, slow, _stale(shown["stale"]))


def _stale(rows: Sequence[Row]) -> str:
    """Returns the table of the handles that were good for nothing."""
    cells = [text_column("Queue", "queue"), text_column("Reason", "reason")]
    cells.append(column("Handles", "handles", count, summed=True))
    none = "Each handle that was used was good."
    return "<h4>Stale handles: acks, extends, releases and kills that came too late</h4>" + table(rows, cells, 15, none)


def steps(shown: Figures) -> range:
    """The beginnings of all steps of the charts, epoch ms."""
    return range(shown["begin_ms"], shown["end_ms"], shown["step_ms"])


def _of(queue: str, tag: str) -> str:
    return queue if tag == DEFAULT_TAG else f"{queue} @ {tag}"


def _hour(ms: int) -> str:
    from spark.page.figures import utc

    return f"{utc(ms):%Y-%m-%d %H:%M}"
