"""What a caller may be granted for single tags: the verbs of operations that name one."""

from __future__ import annotations

import pytest

from engine.rules.grants import OF_TAG
from facade.dialects.native.operations import OPERATIONS
from schemas.vocabulary import Verb
from tests.conformance.rights.table import NATIVE

# They watch a queue, and name a tag to watch less of it.
WATCHES = {Verb.ADD_ALERT, Verb.LIST_ALERTS, Verb.QUERY_METRIC}
NAMING = [
    one.name
    for one in OPERATIONS
    if any("tag" in getattr(part, "__struct_fields__", ()) for part in (one.query, one.body))
]


@pytest.mark.parametrize("operation", NAMING)
def test_what_names_a_tag_can_be_granted_for_the_tag(operation: str) -> None:
    """Else a grant for tags (`grant_tag`) would not allow it, without a word."""
    verbs = set(NATIVE[operation] or ())
    assert verbs <= OF_TAG | WATCHES, "add it to OF_TAG in engine/rules/grants.py"


def test_operations_that_name_a_tag_are_found() -> None:
    assert {"receive", "peek", "unpark"} <= set(NAMING)
