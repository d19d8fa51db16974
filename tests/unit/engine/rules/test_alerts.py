"""Looks at values minute by minute: what fires, clears, and is told."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import InvalidValue
from engine.rules.alerts import CLEARS, AlertState, Step, check_policy, policy_id, step
from schemas.vocabulary import AlertChange as Change
from schemas.vocabulary import Measurement, Subject

MINUTE = 60_000
SILENCE = 10 * MINUTE


def looks(values: list[float | None], threshold: float = 100, state: AlertState | None = None) -> list[Step]:
    """A look at each, a minute apart."""
    steps: list[Step] = []
    state = state or AlertState()
    for minute, value in enumerate(values, 1):
        steps.append(step(state, value, threshold, minute * MINUTE, SILENCE))
        state = steps[-1].state
    return steps


def changes(values: list[float | None]) -> list[str]:
    return [str(one.change) if one.change else "-" for one in looks(values)]


def test_a_value_at_the_threshold_fires_once_and_is_told() -> None:
    first, second = looks([100, 250])
    assert (first.change, first.tell, first.state.firing) == (Change.FIRED, True, True)
    assert (second.change, second.tell) == (None, False)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([100, 99, 100, 99, 101, 99], ["fired", "-", "-", "-", "-", "-"]),
        ([100, 80, 100, 80, 100], ["fired", "-", "-", "-", "-"]),
        ([100, 80, 80, 99], ["fired", "-", "cleared", "-"]),
        ([100, None, None, 100], ["fired", "-", "cleared", "fired"]),
        ([99, 0, None], ["-", "-", "-"]),
        ([100, 90, 90, 90], ["fired", "-", "-", "-"]),
    ],
    ids=["at the edge", "low now and then", "low twice", "nothing measured", "below", "at the lower edge"],
)
def test_it_clears_only_after_two_low_values(values: list[float | None], expected: list[str]) -> None:
    assert changes(values) == expected


def test_who_was_told_is_told_again_after_the_silence_and_of_the_end() -> None:
    steps = looks([200.0] * 25 + [None, None])
    assert [minute for minute, one in enumerate(steps, 1) if one.tell] == [1, 11, 21, 27]
    assert steps[10].change == Change.GOES_ON
    assert steps[-1].change == Change.CLEARED


def test_one_that_fires_again_within_the_silence_is_noted_and_not_told() -> None:
    steps = looks([200, None, None, 200, None, None, *[200.0] * 8])
    told = [(minute, one.change) for minute, one in enumerate(steps, 1) if one.tell]
    noted = [(minute, one.change) for minute, one in enumerate(steps, 1) if one.change]
    assert told == [(1, "fired"), (3, "cleared"), (11, "goes_on")]
    assert noted == [(1, "fired"), (3, "cleared"), (4, "fired"), (6, "cleared"), (7, "fired"), (11, "goes_on")]


@given(st.lists(st.one_of(st.none(), st.floats(0, 200)), max_size=60))
def test_whatever_the_values_it_fires_and_clears_in_turn_for_a_reason(values: list[float | None]) -> None:
    steps = looks(values)
    turns = [one.change for one in steps if one.change in (Change.FIRED, Change.CLEARED)]
    assert turns == [(Change.FIRED, Change.CLEARED)[number % 2] for number in range(len(turns))]
    for value, one in zip(values, steps, strict=True):
        if one.change == Change.FIRED:
            assert value is not None and value >= 100
        if one.change == Change.CLEARED:
            assert value is None or value < 100 * CLEARS
    told = [minute for minute, one in enumerate(steps) if one.tell and one.change != Change.CLEARED]
    assert all(after - before >= SILENCE // MINUTE for before, after in itertools.pairwise(told))


def test_every_subject_is_watched_for_a_queue_and_only_what_a_tag_has_for_a_tag() -> None:
    for subject in Subject:
        check_policy(None, subject, Measurement.COUNT, 1)
    for subject in set(Subject) - {Subject.SEND_REQUEST, Subject.SINGLE_SEND_REQUEST, Subject.BATCH_SEND_REQUEST}:
        check_policy("t", subject, Measurement.COUNT, 1)


@pytest.mark.parametrize(
    ("tag", "subject", "measurement", "threshold", "field"),
    [
        (None, "nonsense", "count", 1, "subject"),
        (None, "send_request", "nonsense", 1, "measurement"),
        (None, "queue_message_number", "latency", 1, "measurement"),
        ("t", "batch_send_request", "count", 1, "subject"),
        (None, "send_request", "count", 2e15, "threshold"),
        (None, "send_request", "count", -1, "threshold"),
        (None, "send_request", "count", float("nan"), "threshold"),
        (None, "send_request", "count", float("inf"), "threshold"),
    ],
)
def test_what_cannot_be_watched_is_refused(
    tag: str | None, subject: str, measurement: str, threshold: float, field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        check_policy(tag, subject, measurement, threshold)
    assert refused.value.field == field


def test_equal_policies_have_one_id_and_others_have_another() -> None:
    assert policy_id("", "send_request", "count", 1.0) == policy_id("", "send_request", "count", 1.0)
    assert (
        len({policy_id(t, "send_request", m, n) for t in ("", "a") for m in ("count", "latency") for n in (1.0, 2.0)})
        == 8
    )
