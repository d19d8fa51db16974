"""The part of the page about dead letters: where from, when, how old, which causes. Rows in, HTML
out.
"""

from __future__ import annotations

from collections import defaultdict
from html import escape
from typing import Any

from spark.page.charts import COLOURS, WIDE, Series, bars, columns
from spark.page.labels import NONE, count, duration, moment, share, size
from spark.page.markup import Figures, Row, column, figure, grid, section, table, text_column
from spark.page.sections import steps

_ABOUT = (
    "Messages that were received too often, or were killed by a consumer, and now lie in a dead-letter queue. "
    "A cause is a group of dead letters whose bodies have in common what messages that succeeded do not have."
)

NOTHING_SUCCEEDED = "no cause can be told, since no message of the queue succeeded"


def dead_letters(shown: Figures) -> str:
    """All about dead letters; one sentence when there are none."""
    if not shown["dead_letter_sources"]:
        return section("dead_letters", "Dead letters", _ABOUT, '<p class="none">No message died in this time.</p>')
    charts = grid(_over_time(shown), _by_age(shown))
    return section(
        "dead_letters", "Dead letters", _ABOUT, charts, _sources(shown), _bursts(shown), _causes(shown), _shapes(shown)
    )


def _over_time(shown: Figures) -> str:
    found: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row in shown["dead_letter_minutes"]:
        found[_source(row)][row["at_ms"]] += row["dead_letters"]
    ordered = sorted(found, key=lambda name: -sum(found[name].values()))
    others: dict[int, int] = defaultdict(int)
    for name in ordered[COLOURS - 1 :]:
        for ms, number in found[name].items():
            others[ms] += number
    kept = {name: found[name] for name in ordered[: COLOURS - 1]} | ({"others": others} if others else {})
    series = [Series(name, [(ms, at.get(ms, 0)) for ms in steps(shown)]) for name, at in kept.items()]
    whole = sum(row["dead_letters"] for row in shown["dead_letter_sources"])
    first = sum(found[ordered[0]].values())
    says = f"{count(first)} of {count(whole)} dead letters came from {ordered[0]}."
    drawing = columns(series, shown["step_ms"], shown["begin_ms"], shown["end_ms"])
    return figure(f"Dead letters per {duration(shown['step_ms']).removeprefix('1 ')}", says, drawing, list(kept))


def _by_age(shown: Figures) -> str:
    by_queue: dict[str, dict[str, int]] = defaultdict(dict)
    ages: dict[int, str] = {}
    for row in shown["dead_letter_ages"]:
        by_queue[row["queue"]][row["age"]] = row["dead_letters"]
        ages[row["age_order"]] = row["age"]
    names = [ages[order] for order in sorted(ages)]
    title = "Dead letters at rest, by how long they have been dead"
    if not names:
        return figure(title, "None is at rest: all were redriven, acknowledged or deleted.", "")
    rows = sorted(
        ((queue, [found.get(age, 0) for age in names]) for queue, found in by_queue.items()),
        key=lambda pair: -sum(pair[1]),
    )
    oldest = max(row["oldest_ms"] for row in shown["dead_letter_ages"])
    return figure(title, f"The oldest one lies there for {duration(oldest)}.", bars(rows[:8], names), names)


def _sources(shown: Figures) -> str:
    cells = [
        text_column("Source", "source_queue"),
        text_column("Tag", "source_tag"),
        text_column("Reason", "reason"),
        text_column("Dead-letter queue", "queue"),
    ]
    cells += [
        column("Dead letters", "dead_letters", count, summed=True),
        column("At rest", "at_rest", count, summed=True),
    ]
    cells += [
        column("Bytes", "body_bytes", size, summed=True),
        column("Age at death (half of them at most)", "lived_ms_p50", duration),
    ]
    cells += [column("First", "first_seen_at", moment), column("Last", "last_seen_at", moment)]
    return "<h4>Where they come from</h4>" + table(shown["dead_letter_sources"], cells)


def _bursts(shown: Figures) -> str:
    cells = [
        text_column("Source", "source_queue"),
        text_column("Reason", "reason"),
        column("Began", "began_at", moment),
        column("Ended", "ended_at", moment),
    ]
    cells += [
        column("Dead letters", "dead_letters", count, summed=True),
        column("Peak per minute", "peak_per_minute", count),
    ]
    cells.append(column("Usual per minute", "usual_per_minute", count))
    empty = "No source gave far more dead letters in a minute than it usually does."
    return "<h4>Bursts</h4>" + table(shown["dead_letter_bursts"], cells, 15, empty)


def _causes(shown: Figures) -> str:
    found = shown["dead_letter_clusters"]
    if not found:
        return (
            '<h4>Causes</h4><p class="none">No group of similar dead letters is large enough (20 dead '
            "letters) to be called a cause.</p>"
        )
    named = [(f"{row['cluster']}: {_mark(row)}", [row["dead_letters"]]) for row in found[:12]]
    of_all = sum(row["share"] for row in found)
    says = (
        f"{share(min(1.0, of_all))} of the dead letters belong to one of {len(found)} causes; the rest is "
        "alike to few others."
    )
    chart = grid(figure("Dead letters by cause", says, bars(named, ["dead_letters"], width=WIDE), wide=True))
    return f"<h4>Causes</h4>{chart}" + "".join(_cause(row) for row in found[:12])


def _mark(row: Row) -> str:
    """The thing that most sets a cluster apart, in few words; where nothing succeeded, that there
    is nothing to set it apart from.
    """
    if not row["apart"]:
        return str(row["shape"])
    if all(mark["in_succeeded"] is None for mark in row["apart"]):
        return NOTHING_SUCCEEDED
    first = row["apart"][0]
    return f"{first['field']} {first['what']}".strip()


def causes(shown: Figures) -> list[dict[str, Any]]:
    """What summary.json says of each cause, the largest first; the console reads it. Of very many
    dead letters a part was looked at: their numbers are what that part says of all.
    """
    kept = ("share", "queues", "source_queues", "reasons")
    return [
        {
            "says": _mark(row),
            **{name: row[name] * row.get("one_in", 1) for name in ("dead_letters", "at_rest")},
            **{name: row[name] for name in kept},
        }
        for row in shown["dead_letter_clusters"]
    ]


def _cause(row: Row) -> str:
    where = ", ".join(filter(None, row["source_queues"])) or "a queue that is gone"
    said = (
        f"{count(row['dead_letters'])} dead letters ({share(row['share'])}), {count(row['at_rest'])} of them "
        f"at rest; from {where}, "
        f"{' and '.join(row['reasons'])}; {moment(row['first_seen_at'])} to {moment(row['last_seen_at'])}"
    )
    if row.get("one_in", 1) > 1:
        said += f"; counted on one dead letter in {row['one_in']}"
    cells = [text_column("Field", "field"), text_column("What", "what")]
    cells += [
        column("Of these dead letters", "in_cluster", share),
        column("Of messages that succeeded", "in_succeeded", share),
    ]
    apart = table(
        [_as_dict(mark) for mark in row["apart"] or []], cells, empty="Nothing sets them apart but their likeness."
    )
    example = escape(row["example"]) if row["example"] else f"The body is no text: {escape(str(row['shape']))}"
    title = f"<h3>Cause {row['cluster']}: {escape(_mark(row))}</h3>"
    address = f"<p>Example, at {escape(str(row['example_address'] or NONE))}:</p>"
    return f'<div class="cause">{title}<p>{escape(said)}</p>{apart}{address}<pre>{example}</pre></div>'


def _as_dict(mark: Row) -> dict[str, Any]:
    """A mark as people say it."""
    field = mark["field"]
    return {**mark, "field": f"attribute {field[1:]}" if field.startswith("@") else field or "(body)"}


def _shapes(shown: Figures) -> str:
    rows = [{**row, "shape": row["shape"] or "(empty)"} for row in shown["dead_letter_shapes"]]
    cells = [
        text_column("Source", "source_queue"),
        text_column("Kind", "body_kind"),
        text_column("Shape of the body", "shape"),
    ]
    cells += [
        column("Dead letters", "dead_letters", count, summed=True),
        column("At rest", "at_rest", count, summed=True),
    ]
    cells.append(column("Last", "last_seen_at", moment))
    return "<h4>Shapes of bodies</h4>" + table(rows, cells, 12)


def _source(row: Row) -> str:
    return f"{row['source_queue'] or 'a queue that is gone'}, {row['reason']}"
