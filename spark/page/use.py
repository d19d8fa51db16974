"""The parts of the page about who used how much, who asked for what, and who changed what. Rows in,
HTML out.
"""

from __future__ import annotations

from html import escape

from spark.page.labels import count, duration, moment, size
from spark.page.markup import Figures, Row, column, section, table, text_column

_DAILY = {
    "SEND_REQUEST": "Send requests", "RECEIVE_REQUEST": "Receive requests", "CHANGE_REQUEST": "Change requests",
    "DELETE_REQUEST": "Ack requests", "sentMessageNumber": "Messages sent", "receivedMessageNumber": "Deliveries",
    "deletedMessageNumber": "Messages acknowledged", "deadMessageNumber": "Messages dead-lettered",
}  # fmt: skip
# Said wherever requests are shown that nobody has counted where they come in.
REQUESTS = (
    "Requests are about right, but where they are said to be exact: they are counted from the log, not where they "
    "come in. Receives and acks that came together are one entry of it (800 calls were counted as 572), a call that "
    "touched several partitions is one for each (145 were counted as 178), and a receive that got nothing leaves no "
    "trace."
)


def use(shown: Figures) -> str:
    """Who used how much, and each day in EMQ's words."""
    meter = [
        text_column("Day", "date"),
        text_column("Principal", "principal"),
        text_column("As", "role"),
        text_column("Queue", "queueName"),
    ]
    meter += [
        column("Requests, about", "requests", count, summed=True),
        column("Messages", "messages", count, summed=True),
    ]
    meter.append(column("Bytes", "bytes", size, summed=True))
    daily = [text_column("Day", "date"), text_column("Queue", "queueName"), text_column("Tag", "tagName")]
    daily += [column(head, name, count, summed=True) for name, head in _DAILY.items()]
    daily.append(text_column("Requests are", "requests_are"))
    days = [{**row, "requests_are": "exact" if row["exact"] else "about right"} for row in shown["daily"]]
    about = (
        "The journal does not say who received: what consumers did is metered for the owner of the queue. "
        "A principal native is a Kafka-native producer. Days are UTC days."
    )
    note = f'<p class="note">{escape(REQUESTS)}</p>'
    metering = note + "<h4>By principal</h4>" + table(shown["metering"], meter, 30)
    return section(
        "use",
        "Use by principal and day",
        about,
        metering,
        "<h4>Daily statistics</h4>" + table(days, daily, 30),
    )


def asked(shown: Figures) -> str:
    """Who asked for what, and how it was answered."""
    heads = (("Day", "date"), ("Principal", "principal"), ("Queue", "queue"), ("Verb", "verb"), ("Dialect", "dialect"))
    cells = [*(text_column(head, name) for head, name in heads), text_column("Outcome", "outcome")]
    cells += [
        column("Requests", "requests", count, summed=True),
        column("Mean", "mean_ms", duration),
        column("Longest", "max_ms", duration),
    ]
    about = (
        "Counted where requests come in, so exact, by what each was answered; a receive that waits takes as long as "
        "it waits. Most requests first."
    )
    rows = table(shown["asked"], cells, 50, "The workers have written down no request of this time.")
    return section("requests", "Requests", about, rows)


def audit(summary: Row) -> str:
    """Who changed what, and who was refused."""
    cells = [text_column(head, name) for head, name in (("Day", "date"), ("Principal", "principal"), ("Verb", "verb"))]
    cells += [
        text_column("Queue", "queue"),
        text_column("Outcome", "outcome"),
        column("Requests", "requests", count, summed=True),
    ]
    cells += [
        column("Not written down", "suppressed", count, summed=True),
        column("Last", "last_at", moment),
        text_column("Why", "last_error"),
    ]
    about = (
        "What changed queues, rights and keys, and what was refused; with LEASEWAY_AUDIT=all every request. "
        "Not written down: failures of a flood, of which each worker writes ten a second. A refusal without a "
        "principal is one of nobody "
        "who is known."
    )
    return section(
        "audit",
        "Audit",
        about,
        table(summary.get("audit", []), cells, 50, "Nobody changed anything, and nobody was refused."),
    )
