"""The words and numbers of the vocabulary: each stands there alone, and every event kind is told
apart.
"""

from __future__ import annotations

import re
from pathlib import Path

import schemas
from schemas import vocabulary
from schemas.vocabulary import BOUNDS, ENDS, LEASES, NOTES, PROLONGS, SETTLES, UNDOES, EventKind

ROOT = Path(schemas.__file__).parent.parent
SHARED = (
    "DEFAULT_TAG",
    "SOURCE_QUEUE_ATTRIBUTE",
    "NATIVE_SENDER",
    "BATCH_SPAN_MS",
    "BATCH_CLOCK_MARGIN_MS",
    "COMMIT_SPAN_MS",
    "EARLY_OFFSETS",
    "LOG_TIME_MARGIN_MS",
    "DEDUP_WINDOW_MS",
    "REMEMBERED_MOVES",
    "OUTBOX_LIMIT",
    "HEADER_NAME_CHARS",
)


def test_no_other_module_assigns_a_shared_word_or_number() -> None:
    assert all(hasattr(vocabulary, name) for name in SHARED)
    again = re.compile(rf"^({'|'.join(SHARED)})\b[^=\n]*= ", re.M)
    found = [
        str(path.relative_to(ROOT))
        for package in ("engine", "facade", "runtime", "spark", "state", "schemas")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "vocabulary.py" and again.search(path.read_text())
    ]
    assert found == []


def test_a_default_tag_or_source_attribute_is_never_spelled_again() -> None:
    spelled = re.compile(
        rf"""["']{re.escape(vocabulary.SOURCE_QUEUE_ATTRIBUTE)}["']|tag( or|=| ==) ["']{vocabulary.DEFAULT_TAG}["']"""
    )
    found = [
        str(path.relative_to(ROOT))
        for package in ("engine", "runtime", "spark", "state")
        for path in (ROOT / package).rglob("*.py")
        if spelled.search(path.read_text())
    ]
    assert found == []


def test_every_event_kind_does_something_and_settling_is_one_thing() -> None:
    assert set(EventKind) == SETTLES | BOUNDS | LEASES | PROLONGS | ENDS | UNDOES | NOTES
    assert not SETTLES & BOUNDS
