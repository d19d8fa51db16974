"""Moments, pairs, conditions and redrive policies as they are typed."""

from __future__ import annotations

import click
import pytest

from facade.programs.cli.program.values import condition, filter_of, moment_ms, pairs, redrive_policy


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1795469815321", 1795469815321),
        ("0", 0),
        ("1000000000000", 1_000_000_000_000),
        ("0000", 0),
        ("20261128", 1795824000000),
        ("2026-11-23T21:36:55.321Z", 1795469815321),
        ("2026-11-23T22:36:55.321+01:00", 1795469815321),
        ("2026-11-23", 1795392000000),
    ],
)
def test_a_moment_is_a_date_or_a_number(text: str, ms: int) -> None:
    assert moment_ms.convert(text, None, None) == ms


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (moment_ms, "yesterday", "must be a time in ISO 8601"),
        (
            moment_ms,
            "2027",
            "such as 2027-01-01T12:00 (UTC where it names no zone), or epoch milliseconds of 13 digits, given '2027'",
        ),
        (moment_ms, "20261127220", "must be a time in ISO 8601"),
        (moment_ms, "202611272200", "given '202611272200'"),
        (moment_ms, "20261127220000", "given '20261127220000'"),
        (moment_ms, "9" * 5000, "epoch milliseconds of 13 digits"),
        (moment_ms, "\u0661" * 13, "must be a time in ISO 8601"),
        (moment_ms, "-1", "must be a time in ISO 8601"),
        (moment_ms, "1795469815", "must be a time in ISO 8601"),
        (pairs, "team", "must be NAME=TEXT, given 'team'"),
        (pairs, "=x", "must be NAME=TEXT, given '=x'"),
        (condition, "=x", "must be NAME (it exists) or NAME=VALUE"),
    ],
)
def test_a_value_that_is_not_right_is_refused(kind: click.ParamType[object], text: str, said: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert said in refused.value.message


def test_conditions_make_a_filter() -> None:
    conditions = [condition.convert(text, None, None) for text in ("region=eu=1", "kind")]

    assert filter_of(conditions, either=False) == {
        "operator": "AND",
        "conditions": [{"name": "region", "value": "eu=1"}, {"name": "kind"}],
    }
    assert filter_of(conditions[1:], either=True) == {"operator": "OR", "conditions": [{"name": "kind"}]}
    assert filter_of([], either=True) is None


def test_a_redrive_policy_needs_both_parts() -> None:
    assert redrive_policy("orders.dead", 5) == {"dead_letter_queue": "orders.dead", "max_receive_count": 5}
    assert redrive_policy(None, None) is None
    with pytest.raises(click.UsageError):
        redrive_policy("orders.dead", None)
    with pytest.raises(click.UsageError):
        redrive_policy(None, 5)
