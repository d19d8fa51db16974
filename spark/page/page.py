"""The page as a whole: head, first screen, the parts in order, and how things are counted."""

from __future__ import annotations

from datetime import datetime
from html import escape
from importlib.resources import files

from spark.page import sections, use
from spark.page.dead_letters import dead_letters
from spark.page.first import first_screen
from spark.page.labels import count
from spark.page.markup import Figures, Row, column, section, table, text_column

# No script may run and nothing may be loaded, whatever a body holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_PARTS = (
    ("traffic", "Traffic"),
    ("waiting", "Waiting"),
    ("backlog", "Backlog"),
    ("redelivery", "Redelivery"),
    ("leases", "Slow consumers"),
    ("dead_letters", "Dead letters"),
    ("use", "Usage"),
    ("requests", "Requests"),
    ("audit", "Audit"),
    ("unread", "Unread records"),
)


def page_of(summary: Row, shown: Figures) -> str:
    """The page as one text. `summary` is what summary.json says, `shown` what `figures_of` gave."""
    parts = [
        sections.traffic(shown, summary),
        sections.waiting(shown, summary),
        sections.backlog(shown),
        sections.redelivery(shown, summary),
        sections.leases(shown),
        dead_letters(shown),
        use.use(shown),
        use.asked(shown),
        use.audit(summary),
        _unread(summary),
    ]
    style = (files("spark.page") / "style.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{part}">{escape(name)}</a>' for part, name in _PARTS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Leaseway: {escape(_span(summary))}</title><style>{style}</style></head><body>"
        f"<header><h1>Leaseway report</h1><p>{escape(_span(summary))} UTC, made {escape(_time(summary['made_at']))}</p>"
        f"<nav>{links}</nav></header>{first_screen(summary, shown)}<main>{''.join(parts)}</main></body></html>\n"
    )


def _time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"


def _span(summary: Row) -> str:
    return f"{_time(summary['from'])} to {_time(summary['to'])}"


def _unread(summary: Row) -> str:
    cells = [
        text_column("Topic", "topic"),
        column("Partition", "partition", str),
        text_column("Reason", "reason"),
        text_column("Schema id", "schema_id"),
    ]
    cells += [
        column("Records", "records", count, summed=True),
        column("First", "first_offset", str),
        column("Last", "last_offset", str),
    ]
    about = (
        "Records that could not be read in full: broken ones, and those of a schema that this build does not "
        "know (a newer Leaseway's, "
        "or a native producer's own Avro, which counts as a raw message)."
    )
    return section(
        "unread", "Unread records", about, table(summary["unread"], cells, empty="None: every record was read.")
    )
