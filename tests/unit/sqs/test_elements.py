"""Every list and map of an action has a name in the query protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct

from facade.dialects.sqs.wire import replies, shapes
from facade.dialects.sqs.wire.elements import element, pair

STRUCTS = [
    found
    for module in (shapes, replies)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Struct) and found.__module__ == module.__name__
]


def holds_several(kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(holds_several(part) for part in get_args(kind))
    return kind in (list, dict) or get_origin(kind) in (list, dict, Mapping)


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_each_list_and_map_has_an_element(struct: type[Struct]) -> None:
    kinds = get_type_hints(struct)
    for field, member in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        if holds_several(kinds[field]):
            assert element(member, "SendMessageBatch"), member


def test_some_struct_has_a_list_and_one_a_map() -> None:
    assert sum(holds_several(kind) for struct in STRUCTS for kind in get_type_hints(struct).values()) >= 20


def test_entries_are_named_after_their_action() -> None:
    assert element("Entries", "DeleteMessageBatch") == "DeleteMessageBatchRequestEntry"
    assert element("Successful", "SendMessageBatch") == "SendMessageBatchResultEntry"


def test_tags_have_keys_and_all_other_maps_names() -> None:
    assert (pair("Tag"), pair("Attribute")) == (("Key", "Value"), ("Name", "Value"))
