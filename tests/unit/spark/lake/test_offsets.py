"""Which offsets a commit takes: of new topics, of those that are gone, after retention."""

from __future__ import annotations

from spark.lake.offsets import Held, Topic, advanced, parse, planned, text_of

DAY_MS = 24 * 3_600_000


def topic(id: str = "t1", first: int = 0, *ends: int) -> Topic:
    return Topic(id, dict.fromkeys(range(len(ends)), first), dict(enumerate(ends)))


def test_a_property_says_what_was_held() -> None:
    held = {"lw.q.a": Held("t1", {0: 5, 1: 0, 2: 7}), "lw.q.b": Held("t2", {}, 12)}
    assert text_of(held) == '{"lw.q.a":{"id":"t1","next":[5,0,7]},"lw.q.b":{"id":"t2","next":[],"gone":12}}'
    assert parse(text_of(held)) == held


def test_a_new_topic_is_taken_from_its_first_offset_and_others_from_where_they_are() -> None:
    held = {"a": Held("t1", {0: 5, 1: 9})}
    plan = planned(held, {"a": topic("t1", 0, 8, 9, 4), "b": topic("t2", 3, 6), "empty": topic("t3", 0, 0)}, 1000)
    assert (plan.begin, plan.end) == ({"a": {0: 5, 2: 0}, "b": {0: 3}}, {"a": {0: 8, 2: 4}, "b": {0: 6}})
    assert (plan.records, plan.cut, plan.lost, plan.remade) == (10, set(), {}, [])


def test_what_retention_took_is_counted_and_skipped() -> None:
    plan = planned({"a": Held("t1", {0: 5, 1: 30})}, {"a": topic("t1", 20, 25, 30)}, 1000)
    assert (plan.begin, plan.lost) == ({"a": {0: 20}}, {"a": 15})


def test_a_topic_that_was_made_again_is_taken_from_its_beginning() -> None:
    held = {"a": Held("t1", {0: 5, 1: 5})}
    plan = planned(held, {"a": topic("t9", 0, 2)}, 1000)
    assert (plan.begin, plan.end, plan.remade, plan.lost) == ({"a": {0: 0}}, {"a": {0: 2}}, ["a"], {})
    assert advanced(held, {"a": topic("t9", 0, 2)}, plan.end, 1) == {"a": Held("t9", {0: 2})}


def test_a_plan_that_is_bounded_gives_each_partition_its_share() -> None:
    plan = planned({}, {"a": topic("t1", 0, 1000, 10, 0), "b": topic("t2", 0, 990)}, 100)
    assert plan.end == {"a": {0: 51, 1: 1}, "b": {0: 50}}
    assert plan.cut == {("a", 0), ("a", 1), ("b", 0)}
    assert planned({}, {"a": topic("t1", 0, 1)}, 1).cut == set()


def test_offsets_move_on_and_those_of_a_topic_that_is_gone_stay_for_a_day() -> None:
    held = {"a": Held("t1", {0: 5, 1: 5}), "gone": Held("t2", {0: 1}), "long": Held("t3", {0: 1}, 10)}
    after = advanced(held, {"a": topic("t1", 0, 9, 9)}, {"a": {0: 9}}, 20)
    assert after == {"a": Held("t1", {0: 9, 1: 5}), "gone": Held("t2", {0: 1}, 20), "long": Held("t3", {0: 1}, 10)}
    assert set(advanced(after, {}, {}, 11 + DAY_MS)) == {"a", "gone"}
    back = advanced(after, {"gone": topic("t2", 0, 1)}, {}, 30)
    assert back["gone"] == Held("t2", {0: 1})
