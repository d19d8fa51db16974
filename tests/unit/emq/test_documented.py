"""The page on EMQ names every method of its services, and every field that a request may have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from facade.dialects.emq.wire.kinds import Kind
from facade.dialects.emq.wire.services import SERVICES, Service

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "emq.md").read_text()
# Of a queue's meta or of an exception: what only answers carry.
ANSWERED = {"createTimestamp", "lastModifiedTimestamp", "permissionList"}


def words(text: str) -> set[str]:
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def fields(kind: Kind | None) -> set[str]:
    """The names of all fields within a type."""
    if kind is None:
        return set()
    own = {field.name for field in kind.shape.fields} if kind.shape else set()
    inner = [fields(field.kind) for field in kind.shape.fields] if kind.shape else []
    return own.union(*inner, fields(kind.item))


@pytest.mark.parametrize("service", SERVICES.values(), ids=[service.name for service in SERVICES.values()])
def test_every_method_and_field_of_a_request_is_in_the_table_of_its_service(service: Service) -> None:
    table = PAGE.partition(f"### {service.name}")[2].partition("\n### ")[0]
    named = words(table) | words(PAGE.partition("All three have")[2].partition("\n## ")[0])
    asked = {field for method in service.methods.values() for one in method.call.fields for field in fields(one.kind)}
    assert set(service.methods) - named == set()
    assert asked - named - ANSWERED - {"queueName"} == set()
