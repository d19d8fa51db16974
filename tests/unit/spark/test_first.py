"""What the first screen of a report says, without a browser."""

from __future__ import annotations

from typing import Any

from spark.page.first import first_screen

NOTHING: dict[str, Any] = {"totals": [], "queues": [], "redelivery": [], "open": [], "earlier": []}
NONE_SHOWN: dict[str, Any] = {"dead_letter_ages": [], "lag": []}


def queue(name: str, **messages: int) -> list[dict[str, Any]]:
    return [{"queue": name, "tag": "default", "measure": measure, "messages": n} for measure, n in messages.items()]


def test_where_nothing_is_wrong_it_says_so() -> None:
    said = first_screen(NOTHING, NONE_SHOWN)
    assert said.count("All right") == 3 and "Look here" not in said
    assert "No report of the time before lies beside this one" in said


def test_the_worst_queue_is_the_one_where_most_messages_die() -> None:
    rows = queue("few", acked=1, dead=3) + queue("many", acked=2_000, dead=90) + queue("none", acked=9)
    said = first_screen({**NOTHING, "queues": rows}, NONE_SHOWN)
    assert "Look here</i><b>Worst queue: many</b><span>90 of its messages died: 4.3 % of those that ended" in said


def test_a_few_dead_letters_of_very_many_messages_are_no_fault() -> None:
    said = first_screen({**NOTHING, "queues": queue("many", acked=2_000_000, dead=9)}, NONE_SHOWN)
    assert "All right</i><b>Worst queue: many" in said


def test_where_nothing_dies_the_worst_queue_is_the_one_that_repeats_most() -> None:
    again = [
        {"queue": name, "redeliveries": n, "deliveries": 100, "redelivery_share": n / 100}
        for name, n in (("a", 2), ("b", 30))
    ]
    said = first_screen({**NOTHING, "redelivery": again}, NONE_SHOWN)
    assert "Look here</i><b>Worst queue: b</b><span>30.0 % of its deliveries were repeats; nothing died" in said


def test_dead_letters_at_rest_and_the_oldest_message_name_their_queues() -> None:
    ages = [{"queue": "x.dead", "dead_letters": 5}, {"queue": "y.dead", "dead_letters": 7}]
    lag = [
        {"queue": "x", "tag": "default", "open": 3, "oldest_ms": 5_000},
        {"queue": "<y>", "tag": "audit", "open": 1, "oldest_ms": 7_200_000},
        {"queue": "z", "tag": "default", "open": 0, "oldest_ms": None},
    ]
    said = first_screen(NOTHING, {"dead_letter_ages": ages, "lag": lag})
    looked = "They died in this time, and nobody has looked after them yet: 7 of them in y.dead"
    assert f"<b>12 dead letters at rest</b><span>{looked}" in said
    assert "Look here</i><b>Oldest message: 2 h</b><span>In &lt;y&gt; (tag audit), not settled" in said
    assert "not settled in all: 4" in said


def test_what_changed_since_the_day_before_stands_beside_the_totals() -> None:
    def day(sent: int, dead: int) -> dict[str, Any]:
        totals = [{"measure": m, "messages": n, "bytes": 0} for m, n in (("sent", sent), ("dead", dead))]
        return {**NOTHING, "totals": totals, "queues": queue("q", sent=sent, dead=dead) + queue("r", sent=5)}

    def beside(now: dict[str, Any], before: dict[str, Any]) -> str:
        return first_screen({**now, "earlier": [("the day before", before)]}, NONE_SHOWN)

    said = beside(day(300, 4), day(200, 4))
    assert "<b>300</b><span>sent, 0 B</span><small>more by 50 % than the day before" in said
    assert "dead-lettered</span><small>as the day before" in said
    assert "Changed most since the day before: q: 200 to 300 messages sent." in said
    assert "less by 33 % than the day before" in beside(day(200, 4), day(300, 4))
    assert "No queue has changed since the day before." in beside(day(1, 1), day(1, 1))
    assert "<small>about as the day before" in beside(day(1_001, 4), day(1_000, 4))
    assert "<small>more by 1 % than the day before" in beside(day(1_006, 4), day(1_000, 4))
    week = [("the day before", day(200, 4)), ("a week before", day(600, 0))]
    said = first_screen({**day(300, 4), "earlier": week}, NONE_SHOWN)
    both = "<small>more by 50 % than the day before</small><small>less by 50 % than a week before</small>"
    assert both in said and "<small>none a week before</small>" in said
    assert "Changed most since a week before: q: 0 to 4 dead letters; q: 600 to 300 messages sent." in said
