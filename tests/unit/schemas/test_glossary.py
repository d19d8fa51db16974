"""The glossary: every word that is kept is explained, and the page is the one that is checked
in.
"""

from __future__ import annotations

from pathlib import Path

import schemas
from schemas.glossary import page
from schemas.vocabulary import WORDS, EntryStatus, EventKind, MessageState, Reason

PAGE = Path(schemas.__file__).parent.parent / "docs" / "reference" / "glossary.md"
KEPT = ("unit", "tag", "window", "journal", "floor", "seal", "outbox", "nonce", "incarnation", "settle", "drain", "lease")


def test_the_checked_in_page_is_fresh() -> None:
    assert PAGE.read_text() == page(), "run: make docs"


def test_every_word_of_ours_has_a_paragraph() -> None:
    text = page()
    enums = [member.value for enum in (MessageState, EventKind, EntryStatus, Reason) for member in enum]
    assert [word for word in (*KEPT, *WORDS, *enums) if f"**{word}**: " not in text] == []


def test_no_word_is_explained_by_two_paragraphs_of_one_section() -> None:
    for section in page().split("\n## ")[1:]:
        heads = [line.partition("**:")[0] for line in section.splitlines() if line.startswith("**")]
        assert len(heads) == len(set(heads))
