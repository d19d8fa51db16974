"""Charts as SVG: places, ticks, and what strangers wrote."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from spark.page.charts import HEIGHT, WIDTH, Frame, Series, bars, columns, histogram, lines, nice

MINUTE = 60_000


@pytest.mark.parametrize("most", [0, 0.003, 0.7, 1, 2, 3, 7, 10, 11, 999, 1_000, 123_456, 10**9])
def test_ticks_begin_at_nothing_and_end_at_a_round_number_above(most: float) -> None:
    ticks = nice(most)
    steps = {round(after - before, 9) for before, after in pairwise(ticks)}
    assert ticks[0] == 0 and ticks[-1] >= most and len(ticks) <= 6 and len(steps) == 1


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_half_a_message_is_no_tick(most: float) -> None:
    assert all(tick == int(tick) for tick in nice(most))


def test_a_frame_puts_the_first_time_left_the_last_one_right_and_large_values_up() -> None:
    frame = Frame(0, 100, 10)
    assert frame.x(0) == frame.left < frame.x(50) < frame.x(100) < WIDTH
    assert HEIGHT > frame.y(0) > frame.y(5) > frame.y(10) > 0
    assert frame.y(1_000) == frame.y(10), "what is larger than the largest ends at the edge"
    steps = [Frame(0, 100, 1_000, log=True).y(value) for value in (1, 10, 100, 1_000)]
    assert len({round(before - after, 6) for before, after in pairwise(steps)}) == 1


def test_a_gap_breaks_a_line_and_a_lone_point_is_a_dot() -> None:
    drawn = lines([Series("sent", [(0, 1), (MINUTE, 2), (2 * MINUTE, None), (3 * MINUTE, 4)])], 0, 3 * MINUTE)
    svg = ElementTree.fromstring(drawn)
    assert [path.get("class") for path in svg.iter("path")] == ["line d0"]
    assert [circle.get("class") for circle in svg.iter("circle")].count("dot") == 1
    assert len(list(svg.iter("title"))) == 3, "each point says its value"


def test_a_step_holds_its_value_until_the_next_and_to_the_end() -> None:
    drawn = lines([Series("open", [(0, 1), (MINUTE, 2)])], 0, 2 * MINUTE, steps=True)
    (path,) = ElementTree.fromstring(drawn).iter("path")
    points = [tuple(map(float, pair.split())) for pair in re.split("[ML]", str(path.get("d")))[1:]]
    assert [y for _, y in points] == [points[0][1]] * 2 + [points[-1][1]] * 2
    assert points[-1][0] == pytest.approx(Frame(0, 2 * MINUTE, 2).x(2 * MINUTE), abs=0.1)


def test_columns_are_stacked_and_nothing_is_not_drawn() -> None:
    drawn = columns([Series("a", [(0, 2), (MINUTE, 0)]), Series("b", [(0, 1), (MINUTE, 3)])], MINUTE, 0, 2 * MINUTE)
    rects = list(ElementTree.fromstring(drawn).iter("rect"))
    (low, low_y), (high, high_y), (alone, _) = [
        (float(str(rect.get("height"))), float(str(rect.get("y")))) for rect in rects
    ]
    assert low == pytest.approx(2 * high, rel=0.01) and alone == pytest.approx(3 * high, rel=0.01)
    assert high_y + high == pytest.approx(low_y, abs=0.2), "one stands on the other"


def test_the_longest_bar_takes_the_room_and_its_sum_stands_behind_it() -> None:
    svg = ElementTree.fromstring(bars([("orders", [3, 1]), ("mails", [2, 0])], ["acked", "dead"]))
    widths = [float(str(rect.get("width"))) for rect in svg.iter("rect")]
    assert widths[0] + widths[1] == pytest.approx(2 * widths[2], rel=0.01)
    assert [text.text for text in svg.iter("text") if text.text and text.text.isdigit()] == ["4", "2"]


def test_a_chart_of_nothing_is_a_chart() -> None:
    for drawn in (lines([], 0, MINUTE), columns([], MINUTE, 0, MINUTE), bars([], []), histogram([])):
        ElementTree.fromstring(drawn)


def test_what_strangers_wrote_is_escaped() -> None:
    name = '<script>"&'
    for drawn in (
        lines([Series(name, [(0, 1)])], 0, MINUTE),
        columns([Series(name, [(0, 1)])], MINUTE, 0, MINUTE),
        bars([(name, [1])], [name]),
        histogram([(name, 1)]),
    ):
        assert "<script>" not in drawn
        assert any(name in (title.text or "") for title in ElementTree.fromstring(drawn).iter("title"))
