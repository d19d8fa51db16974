"""The table of queue settings: what is made of it, and its copy in the schema of the record."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from schemas.records import QueueRecord
from schemas.records.settings import TABLE, EffectiveSettings, QueueSettings, RedrivePolicy, effective, named
from schemas.registry import schema_id, schema_text

FIELDS: dict[str, dict[str, Any]] = {
    field["name"]: field for field in json.loads(schema_text(schema_id("queue")))["fields"]
}


@pytest.mark.parametrize("name", TABLE)
def test_the_stored_record_has_each_setting_with_its_default(name: str) -> None:
    assert "default" in FIELDS[name] or name == "partitions"
    if name != "partitions":
        assert msgspec.to_builtins(TABLE[name].default) == FIELDS[name]["default"]


@pytest.mark.parametrize("name", TABLE)
def test_a_setting_says_what_it_is_and_a_default_is_in_its_range(name: str) -> None:
    setting = TABLE[name]
    assert setting.name == name and setting.words.endswith(".")
    if isinstance(setting.default, int) and setting.high and not setting.none:
        assert setting.low <= setting.default <= setting.high
    if setting.choices:
        assert setting.default in setting.choices or (setting.none and not setting.default)


def test_what_a_caller_names_is_all_that_differs_from_the_defaults() -> None:
    policy = RedrivePolicy("dead", 3)
    given = QueueSettings(partitions=2, lease_ms=0, fifo=False, redrive_policy=policy)
    assert named(given) == {"partitions": 2, "lease_ms": 0, "fifo": False, "redrive_policy": policy}
    assert named(QueueSettings()) == {}
    record = QueueRecord("q", "a" * 12, "me", 1, 2, [], 1, **named(given))
    assert effective(record) == {**effective(EffectiveSettings(partitions=2)), **named(given)}
    with pytest.raises(TypeError):
        QueueSettings(lease=3)
