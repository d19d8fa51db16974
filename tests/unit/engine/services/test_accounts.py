"""What has names in it, as a caller of an account says it and is shown it."""

from __future__ import annotations

from engine.services.accounts import edit_of, policy_for, policy_of, queue_for, record_for, settings_of
from engine.shapes import Principal, QueueInfo
from schemas.records import QueueRecord, TagRecord
from schemas.records.settings import ANY, Grant, QueueSettings, RedrivePolicy, effective

A, B = "111122223333", "444455556666"


def test_settings_get_full_names_and_records_short_ones() -> None:
    by = Principal(f"{A}.alice", account=A)
    asked = QueueSettings(
        redrive_policy=RedrivePolicy("dead", 3),
        allowed_sources=[ANY, "a"],
        grants=[Grant(True, ["bob", B, ANY], ["send"])],
    )
    found = settings_of(by, asked)
    assert found.redrive_policy == RedrivePolicy(f"{A}.dead", 3)
    assert found.allowed_sources == [ANY, f"{A}.a"]
    assert found.grants == [Grant(True, [f"{A}.bob", B, ANY], ["send"])]
    assert settings_of(by, found) == found
    assert settings_of(Principal("alice"), asked) is asked
    assert policy_of(by, None) is None
    tag = TagRecord(0, "default", 0, 0, [0], redrive_policy=RedrivePolicy(f"{B}.dead", 2))
    record = QueueRecord(
        f"{A}.orders", "0" * 12, f"{A}.alice", 0, 0, partitions=1, tags=[tag], next_tag_id=1,
        redrive_policy=found.redrive_policy, grants=found.grants or [], allowed_sources=found.allowed_sources or [],
    )  # fmt: skip
    shown = record_for(A, record)
    assert (shown.name, shown.owner, shown.redrive_policy) == ("orders", "alice", asked.redrive_policy)
    assert (shown.grants, shown.allowed_sources) == (asked.grants, asked.allowed_sources)
    assert shown.tags[0].redrive_policy == RedrivePolicy(f"{B}.dead", 2)
    info = QueueInfo(
        name=record.name,
        owner=record.owner,
        created_at_ms=0,
        modified_at_ms=0,
        source_queues=[],
        tags=[],
        **effective(record),
    )
    assert queue_for(A, info).grants == asked.grants
    assert record_for("", record) is record
    assert policy_for(B, RedrivePolicy(f"{B}.dead", 2)) == RedrivePolicy("dead", 2)
    edit = edit_of(by, lambda seen: QueueSettings(allowed_sources=[seen.name]))
    assert edit is not None
    assert edit(record).allowed_sources == [f"{A}.orders"]
