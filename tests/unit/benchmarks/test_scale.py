"""The scale benchmark's arithmetic, tables and chart, from readings that are given."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.scale import store
from benchmarks.scale.chart import COLUMNS, places, svg
from benchmarks.scale.meter import ticks
from benchmarks.scale.page import UNEXPLAINED, page, table, verdict
from benchmarks.scale.readings import (
    COMMANDS,
    CPU,
    CPU_ALL,
    MEMORY,
    RATE,
    Reading,
    Result,
    Row,
    growth,
    median,
    short,
    worse,
)
from benchmarks.scale.why import WHY
from benchmarks.scale.wire import request

SVG = "{http://www.w3.org/2000/svg}"


def reading(messages: int = 1000, redis: float = 0.1, **more: int) -> Reading:
    given = {"commands": 5000, "redis_bytes": 2 * 2**20, **more}
    return Reading(messages, 2.0, {"worker": 0.3, "kafka": 0.2, "redis": redis}, **given)


def row(step: int, *rounds: Reading, note: str = "") -> Row:
    return Row("backlog", step, list(rounds), note)


def test_figures_are_per_message_acked() -> None:
    one = row(0, reading())
    assert [median(one, figure) for figure in (RATE, *CPU, CPU_ALL, COMMANDS, MEMORY)] == pytest.approx(
        [500, 0.3, 0.2, 0.1, 0.6, 5, 2]
    )


def test_a_round_without_messages_divides_by_nothing() -> None:
    assert median(row(0, reading(messages=0)), COMMANDS) == 5000


def test_median_is_the_middle_round() -> None:
    rounds = [reading(messages=messages) for messages in (3000, 1000, 1100)]
    assert median(row(0, *rounds), RATE) == 550
    assert median(row(0), RATE) is None


def test_growth_compares_with_the_best_step_before() -> None:
    rows = [
        row(step, reading(redis=cpu, messages=messages))
        for step, cpu, messages in ((0, 0.4, 1000), (10, 0.1, 1000), (20, 0.2, 1000))
    ]
    assert growth(rows, CPU[2]) == pytest.approx(2)
    assert growth(rows[:1], CPU[2]) is None
    assert growth([], CPU[2]) is None


def test_growth_passes_over_steps_that_were_not_measured() -> None:
    rows = [row(0, reading()), row(10, reading(redis=0.3)), row(20, note="not measured: no room")]
    assert growth(rows, CPU[2]) == pytest.approx(3)


def test_worse_is_more_cost_or_less_rate_beyond_what_rounds_differ() -> None:
    assert worse([row(0, reading()), row(1, reading(redis=0.12))]) == {}
    assert worse([row(0, reading()), row(1, reading(redis=0.13))]) == {"CPU ms: redis": pytest.approx(1.3)}
    # Everything is per message: half of them in the same time cost twice as much each.
    slower = worse([row(0, reading()), row(1, reading(messages=500))])
    assert slower["msg/s"] == pytest.approx(0.5)
    assert "Redis MiB" not in slower
    assert worse([row(0, reading()), row(1, reading(messages=2000))]) == {}


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (2000, "2,000"), (10_000, "10k"), (5_000_000, "5M"), (12_345, "12,345"), (1_500_000, "1500k")],
)
def test_short(number: int, text: str) -> None:
    assert short(number) == text


def test_ticks_are_those_of_the_process_and_of_children_that_ended() -> None:
    stat = "7 (a ) name) S 1 7 7 0 -1 0 0 0 0 0 100 20 3 4 20 0 1 0 99 0 0"
    assert ticks(stat) == 127


def test_a_request_says_its_length() -> None:
    head, _, body = request("/v1/queues/a/ack", {"handles": ["x", "y"]}).partition(b"\r\n\r\n")
    assert body == b'{"handles":["x","y"]}'
    assert head.split(b"\r\n")[0] == b"POST /v1/queues/a/ack HTTP/1.1"
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")


def test_table_has_a_line_for_each_step_and_the_growth() -> None:
    lines = table(
        [
            row(0, reading()),
            row(100_000, reading(redis=0.2), reading(redis=0.3), reading(redis=0.1), note="2 answers were no 200"),
        ]
    )
    assert lines[2] == "| 0 | 500 | 0.300 | 0.200 | 0.100 | 0.600 | 5.0 | 2.0 |"
    assert lines[3].startswith("| 100,000 | 500 (500-500) |")
    assert "| 0.200 (0.100-0.300) |" in lines[3]
    assert lines[4] == "| last / best | 1.00x | 1.00x | 1.00x | 2.00x | 1.17x | 1.00x | 1.00x |"
    assert "- At 100,000: 2 answers were no 200." in lines
    assert len({line.count("|") for line in lines[:5]}) == 1


def test_verdict_names_what_grew_and_why_that_figure_did() -> None:
    rows = [row(0, reading()), row(10, reading(redis=0.2, redis_bytes=8 * 2**20))]
    said = verdict("backlog", rows, {"backlog": {"Redis MiB": "the window."}})
    assert said == [f"- CPU ms: redis grew 2.00x: {UNEXPLAINED}", "- Redis MiB grew 4.00x: the window.", ""]


def test_verdict_is_flat_only_where_two_steps_were_measured() -> None:
    assert verdict("backlog", [row(0, reading()), row(10, reading())], WHY) == ["Flat.", ""]
    assert verdict("backlog", [row(0, reading()), row(10, note="not measured")], WHY) == [
        "Too few steps to say what grows.",
        "",
    ]


def test_explanations_are_of_figures_and_series_that_there_are() -> None:
    figures = {figure.name for figure in (RATE, *CPU, CPU_ALL, COMMANDS, MEMORY)}
    for series, why in WHY.items():
        assert series.split(",")[0] in ("partitions", "tags", "queues", "backlog", "in-flight", "delayed")
        assert why.keys() <= figures


def results() -> list[Result]:
    busy = [
        Row(f"queues, {name}", step, [reading(), reading(redis=0.2)])
        for step in (1, 2000)
        for name in ("one busy", "all busy")
    ]
    return [
        Result("queues", "Here.", busy),
        Result("backlog", "There.", [row(0, reading()), row(5_000_000, note="not measured: no disk")]),
    ]


def test_page_has_a_section_for_each_dimension_and_a_heading_for_each_of_several_series() -> None:
    text = page(results(), WHY)
    headings = [line for line in text.splitlines() if line.startswith("##")]
    assert headings == [
        "## Queues, per message",
        "### Queues, one busy",
        "### Queues, all busy",
        "## Backlog, per message",
    ]
    assert "- At 5,000,000: not measured: no disk." in text
    assert "There." in text
    assert text.endswith("\nNot measured yet: partitions, tags, in-flight, delayed.\n")
    assert "![figures by step](scale.svg)" in text


def test_chart_draws_every_measured_step_of_every_series() -> None:
    root = ET.fromstring(svg(results()))
    panels = root.findall(f"{SVG}g")
    assert len(panels) == 3 * len(COLUMNS)
    circles = [len(panel.findall(f"{SVG}circle")) for panel in panels]
    assert circles == [2, 8, 2, 2] * 2 + [1, 4, 1, 1]
    labels = [text.text for text in panels[-1].findall(f"{SVG}text")]
    assert labels[-2:] == ["0", "5M"]


def test_chart_is_to_scale_from_zero() -> None:
    rows = [row(0, reading(messages=500)), row(1, reading(messages=1000))]
    panel = ET.fromstring(svg([Result("backlog", "", rows)])).findall(f"{SVG}g")[0]
    low, high = (float(circle.get("cy", "0")) for circle in panel.findall(f"{SVG}circle"))
    ground = max(float(line.get("y1", "0")) for line in panel.findall(f"{SVG}line"))
    assert (ground - low) * 2 == pytest.approx(ground - high, abs=0.2)


def test_chart_is_readable_on_dark_ground_too() -> None:
    light, dark = svg(results()).split("@media (prefers-color-scheme: dark)")
    for name in (".ground", ".all", ".worker", ".kafka", ".redis", ".faint", ".axis"):
        assert name in light
        assert name in dark


def test_steps_stand_evenly_and_one_alone_in_the_middle() -> None:
    first, second, third = places(3)
    assert second - first == pytest.approx(third - second)
    assert places(1) == [pytest.approx(second)]


def test_what_is_kept_comes_back_in_the_order_asked(tmp_path: Path) -> None:
    queues, backlog = results()
    store.write(backlog, tmp_path)
    store.write(queues, tmp_path)
    assert store.read(("queues", "tags", "backlog"), tmp_path) == [queues, backlog]
