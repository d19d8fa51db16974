"""How SQS spells the fields of its structs."""

from __future__ import annotations

import pytest

from facade.dialects.sqs.wire.shapes import wire


@pytest.mark.parametrize(
    ("field", "spelled"),
    [
        ("message_body", "MessageBody"),
        ("md5_of_message_body", "MD5OfMessageBody"),
        ("id", "Id"),
        ("queue_url", "QueueUrl"),
    ],
)
def test_a_field_is_spelled_in_camel_case_but_for_md5(field: str, spelled: str) -> None:
    assert wire(field) == spelled
