"""Pieces of the page: what others wrote is text, and totals are of all rows."""

from __future__ import annotations

from spark.page.labels import NONE, count
from spark.page.markup import column, figure, section, table, text_column

CELLS = [text_column("Queue", "queue"), column("Messages", "messages", count, summed=True)]


def test_a_table_shows_the_first_rows_and_sums_all() -> None:
    rows = [{"queue": f"q{n}", "messages": 1_000} for n in range(3)]
    shown = table(rows, CELLS, most=2)
    assert "q1" in shown and "q2" not in shown and "1 more rows" in shown
    assert '<td>all 3</td><td class="n">3,000</td>' in shown


def test_a_table_of_one_row_has_no_total_and_one_of_none_says_so() -> None:
    assert "<tfoot>" not in table([{"queue": None, "messages": 7}], CELLS)
    assert NONE in table([{"queue": None, "messages": 7}], CELLS)
    assert table([], CELLS, empty="No <queue>.") == '<p class="none">No &lt;queue&gt;.</p>'


def test_what_strangers_wrote_is_escaped_everywhere() -> None:
    hostile = "<script>"
    pieces = [
        table([{"queue": hostile, "messages": 1}], CELLS),
        figure(hostile, hostile, "", [hostile]),
        section("id", hostile, hostile),
    ]
    assert not any(hostile in piece for piece in pieces)
