"""The page in a headless Chromium: charts are drawn, nothing is asked for, no script runs, it fits
phones and paper, light and dark.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from spark.page.charts import nice
from spark.page.dead_letters import NOTHING_SUCCEEDED, causes
from spark.page.labels import count, duration, share, short, size
from spark.page.page import page_of
from tests.browser.chromium import Page

STEP_MS, BEGIN_MS = 900_000, 1_772_323_200_000
END_MS = BEGIN_MS + 24 * STEP_MS
HOSTILE = "<script>document.title = 'owned'</script><img src=http://127.0.0.1:1/x onerror=\"document.title = 'owned'\">"
FIRST, LAST = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 1, 6, tzinfo=UTC)
# One drawn thing in each chart that is wider or higher than nothing.
EMPTY_CHARTS = """[...document.querySelectorAll('figure')].filter(
  figure => ![...figure.querySelectorAll('svg .line, svg .area, svg .dot')]
    .some(drawn => drawn.getBBox().width + drawn.getBBox().height > 1)
).map(figure => figure.querySelector('h3').textContent)"""
CUT_WORDS = """[...document.querySelectorAll('svg text')].filter(text => {
  const svg = text.ownerSVGElement.viewBox.baseVal, box = text.getBBox();
  return box.x < -1 || box.x + box.width > svg.width + 1 }).map(text => text.textContent)"""


def _series(**fields: Any) -> list[dict[str, Any]]:
    def row(n: int) -> dict[str, Any]:
        return {
            "at_ms": BEGIN_MS + n * STEP_MS,
            **{name: value(n) if callable(value) else value for name, value in fields.items()},
        }

    return [row(n) for n in range(24)]


def _shown() -> dict[str, Any]:
    tag = {"queue": "orders", "tag": "default", "place": 0}
    cluster = {
        "dead_letters": 120, "at_rest": 100, "share": 0.6, "queues": ["orders-dead"], "source_queues": ["orders"],
        "reasons": ["exhausted"],
        "body_kind": "json", "shape": "amount: number", "first_seen_at": FIRST, "last_seen_at": LAST,
        "example_address": "0a1b/0/7",
        "example": HOSTILE, "one_in": 1,
        "apart": [{"field": "currency", "what": f"= {HOSTILE}"[:40], "in_cluster": 1.0, "in_succeeded": 0.0}],
    }  # fmt: skip
    source = {"queue": "orders-dead", "source_queue": "orders", "source_tag": "default", "reason": "exhausted"}
    return {
        "begin_ms": BEGIN_MS, "end_ms": END_MS, "step_ms": STEP_MS,
        "traffic": [row for m in ("sent", "leased", "acked") for row in _series(measure=m,
                                                                                messages=lambda n: 1000 + n * 50)],
        "latency": [
            row for m in ("send_to_receive", "receive_to_ack")
            for row in _series(**tag, measure=m, p50_ms=4.5, p95_ms=30, p99_ms=lambda n: 50 if n == 5 else 2_000)
        ],
        "backlog": _series(**tag, backlog=lambda n: n * 7, in_flight=lambda n: n % 3, delayed=0),
        "leases": [{"below_ms": 2**n, "count": 10 * n} for n in range(4, 14)],
        "slow_leases": [], "lag": [{**tag, "messages": 3, "open": 1, "lag": 2, "oldest_ms": 99_000}],
        "poison": [{**tag, "partition": 0, "offset": 7, "deliveries": 9, "last_how": "lapsed", "settled_how": None,
                    "last_received_at": LAST}],
        "metering": [{"date": date(2026, 3, 1), "principal": HOSTILE, "role": "sender", "queueName": "orders",
                      "requests": 1, "messages": 2,
                      "bytes": 3}],
        "daily": [{"date": date(2026, 3, 1), "queueName": "orders", "tagName": "", "SEND_REQUEST": 7,
                   "RECEIVE_REQUEST": 0, "CHANGE_REQUEST": 0, "DELETE_REQUEST": 0, "sentMessageNumber": 9,
                   "receivedMessageNumber": 0, "deletedMessageNumber": 0, "deadMessageNumber": 0, "exact": True}],
        "stale": [{"queue": "orders", "reason": "superseded", "handles": 90}],
        "asked": [{"date": date(2026, 3, 1), "principal": HOSTILE, "queue": "orders", "verb": "receive",
                   "dialect": "sqs", "outcome": "not_allowed", "requests": 11, "mean_ms": 0.4, "max_ms": 20_000}],
        "dead_letter_minutes": _series(source_queue="orders", reason="exhausted", dead_letters=lambda n: n),
        "dead_letter_sources": [{**source, "dead_letters": 200, "at_rest": 180, "body_bytes": 9_999,
            "lived_ms_p50": 120_000, "first_seen_at": FIRST,
                            "last_seen_at": LAST}],
        "dead_letter_ages": [{"queue": "orders-dead", "age": "1 h to 1 day", "age_order": 2, "dead_letters": 180,
                              "oldest_ms": 7_200_000}],
        "dead_letter_bursts": [{**source, "began_at": FIRST, "ended_at": LAST, "dead_letters": 90,
            "peak_per_minute": 40, "usual_per_minute": 1.5}],
        "dead_letter_shapes": [{**source, "body_kind": "text", "shape": HOSTILE, "dead_letters": 200, "at_rest": 180,
            "last_seen_at": LAST}],
        "dead_letter_clusters": [{**cluster, "cluster": 1}, {**cluster, "cluster": 2, "example": None, "apart": None}],
    }  # fmt: skip


def _summary() -> dict[str, Any]:
    tag = {"queue": "orders", "tag": "default"}
    times = {"mean_ms": 5.5, "p50_ms": 4, "p95_ms": 30, "p99_ms": 50, "p999_ms": 60, "max_ms": 90_000}
    return {
        "from": "2026-03-01T00:00:00+00:00", "to": "2026-03-01T06:00:00+00:00", "made_at": "2026-03-02T00:00:00+00:00",
        "totals": [{"measure": "sent", "requests": 9, "messages": 37_800, "bytes": 37_800_000}],
        "queues": [{**tag, "tag": "", "measure": "sent", "requests": 9, "messages": 37_800, "bytes": 37_800_000},
                   {**tag, "measure": "acked", "requests": 9, "messages": 20, "bytes": 0},
                   {**tag, "measure": "dead", "requests": 9, "messages": 60, "bytes": 0}],
        "earlier": [("the day before", {
            "totals": [{"measure": "sent", "requests": 9, "messages": 20_000, "bytes": 9}], "redelivery": [],
            "queues": [{**tag, "tag": "", "measure": "sent", "requests": 9, "messages": 20_000, "bytes": 9}],
            "open": [],
        })],
        "latency": [{**tag, "measure": "send_to_receive", "count": 5, **times}],
        "open": [{**tag, "open": 161, "oldest_ms": 99_000}],
        "redelivery": [{**tag, "messages": 5, "deliveries": 9, "redeliveries": 4, "redelivered": 2,
                        "most_deliveries": 9, "acked": 4,
                        "released": 2, "lapsed": 1, "killed": 1, "purged": 1, "expired": 0, "deleted": 0, "moved": 0,
                        "open": 0,
                        "redelivery_share": 4 / 9}],
        "unread": [{"topic": "lw.q.orders", "partition": 0, "reason": "unknown_schema", "schema_id": 77, "records": 2,
                    "first_offset": 5,
                    "last_offset": 6}],
    }  # fmt: skip


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_of(_summary(), _shown()), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize(
    ("width", "dark", "media"), [(1100, False, ""), (1100, True, ""), (390, False, ""), (720, True, "print")]
)
def test_all_charts_are_drawn_and_nothing_is_asked_for(
    chromium: Page, address: str, width: int, dark: bool, media: str
) -> None:
    chromium.requests.clear()
    chromium.open(address, width, dark, media)

    assert chromium.value("document.querySelectorAll('figure svg').length") == 9
    assert chromium.value(EMPTY_CHARTS) == [] and chromium.value(CUT_WORDS) == []
    assert chromium.value("document.title") == "Leaseway: 2026-03-01 00:00 to 2026-03-01 06:00"
    assert chromium.value("document.scripts.length + document.images.length") == 0
    assert (chromium.requests, chromium.complaints) == ([address], [])
    assert chromium.value("document.documentElement.scrollWidth") <= width
    paper = {(False, ""): "rgb(255, 255, 255)", (True, ""): "rgb(20, 24, 29)", (True, "print"): "rgb(255, 255, 255)"}[
        dark, media
    ]
    assert chromium.value("getComputedStyle(document.body).backgroundColor") == paper
    assert len(chromium.picture()) > 20_000


def test_a_purged_delivery_has_a_column_and_requests_say_that_they_are_about_right(
    chromium: Page, address: str
) -> None:
    chromium.open(address)
    heads = "[...document.querySelectorAll('#%s th')].map(head => head.textContent)"
    assert {"Purged", "Expired", "Deleted", "Moved"} < set(chromium.value(heads % "redelivery"))
    assert "Requests, about" in chromium.value(heads % "use")
    cells = "[...document.querySelectorAll('#%s table:last-of-type td')].map(cell => cell.textContent)"
    assert "exact" in chromium.value(cells % "use") and {"superseded", "90"} < set(chromium.value(cells % "leases"))
    asked = ["2026-03-01", HOSTILE, "orders", "receive", "sqs", "not_allowed", "11", "0.4 ms", "20 s"]
    assert chromium.value(cells % "requests") == asked
    notes = chromium.value("[...document.querySelectorAll('#use .note')].map(note => note.textContent)")
    assert len(notes) == 1 and "800 calls were counted as 572" in notes[0]


FINDINGS = "[...document.querySelectorAll('.findings a')].map(a => [a.className, a.textContent, a.hash])"


def test_the_first_screen_says_what_is_wrong_and_where(chromium: Page, address: str) -> None:
    chromium.open(address, 390)
    worst, dead, oldest = chromium.value(FINDINGS)
    assert worst == ["bad", "Look hereWorst queue: orders60 of its messages died: 75.0 % of those that ended",
                     "#dead_letters"]  # fmt: skip
    looked = "They died in this time, and nobody has looked after them yet: in orders-dead"
    assert dead[:2] == ["bad", f"Look here180 dead letters at rest{looked}"]
    says = "All rightOldest message: 1.65 minIn orders, not settled; messages that are not settled in all: 1"
    assert oldest == ["good", says, "#backlog"]
    bottom = "document.querySelector('.findings').getBoundingClientRect().bottom"
    assert chromium.value(bottom) < 844, "on the first screen of a phone"
    text = chromium.value("document.querySelector('.tiles').textContent")
    assert "more by 89 % than the day before" in text and "none the day before" in text
    notes = chromium.value("[...document.querySelectorAll('body > .note')].map(note => note.textContent)")
    assert notes == [
        "Changed most since the day before: orders: 0 to 60 dead letters; orders: 20,000 to 37,800 messages sent."
    ]


def test_what_strangers_wrote_is_shown_as_text(chromium: Page, address: str) -> None:
    chromium.open(address)
    assert chromium.value("document.querySelector('pre').textContent") == HOSTILE
    assert HOSTILE in chromium.value("document.querySelector('#use table').textContent")


def test_it_prints_on_some_pages(chromium: Page, address: str) -> None:
    chromium.open(address)
    paper = chromium.paper()
    assert paper.startswith(b"%PDF") and 2 <= paper.count(b"/Type /Page\n") <= 12


def test_numbers_are_written_as_people_read_them() -> None:
    assert [count(1234567), count(None), short(1234), short(999), short(2.5e6)] == [
        "1,234,567",
        "\u2013",
        "1.23k",
        "999",
        "2.5M",
    ]
    assert [duration(ms) for ms in (0, 840, 12_500, 204_000, 7_560_000, 112_320_000, None)] == [
        "0 ms", "840 ms", "12.5 s", "3.4 min", "2.1 h", "1.3 d", "\u2013",
    ]  # fmt: skip
    assert [size(999), size(2048), size(5 << 30), share(0.1234), share(1)] == [
        "999 B",
        "2.0 KiB",
        "5.0 GiB",
        "12.3 %",
        "100 %",
    ]
    assert [nice(most) for most in (0, 1, 7, 60, 199)] == [
        [0, 1],
        [0, 1],
        [0, 2, 4, 6, 8],
        [0, 20, 40, 60],
        [0, 50, 100, 150, 200],
    ]


def test_dead_letters_of_a_queue_where_nothing_succeeded_have_no_cause() -> None:
    cause = {
        "shape": "a: number", "dead_letters": 40, "at_rest": 40, "share": 1.0, "queues": ["q.dead"],
        "source_queues": ["q"], "reasons": ["exhausted"],
    }  # fmt: skip
    alike = {"field": "", "what": "format json", "in_cluster": 1.0, "in_succeeded": None}
    none = {"dead_letter_clusters": [{**cause, "apart": [alike]}]}
    some = {"dead_letter_clusters": [{**cause, "apart": [alike, {**alike, "in_succeeded": 0.0}]}]}

    assert [found["says"] for found in causes(none)] == [NOTHING_SUCCEEDED]
    assert [found["says"] for found in causes(some)] == ["format json"]
