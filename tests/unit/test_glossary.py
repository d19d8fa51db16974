"""The glossary: every word that is kept is explained, in one paragraph of a section."""

from __future__ import annotations

import re
from pathlib import Path

from schemas.vocabulary import EntryStatus, EventKind, MessageState, Reason, StaleReason
from tests.docs.glossary import WORDS, page

KEPT = ("unit", "window", "floor", "seal", "outbox", "nonce", "incarnation", "settle", "drain")
CONCEPTS = ("Queue", "Tag", "Lease", "Handle", "Group", "Parked group", "Transaction", "Journal", "Window")


def test_every_word_of_ours_has_a_paragraph() -> None:
    text = page()
    enums = [member.value for enum in (MessageState, EventKind, EntryStatus, Reason) for member in enum]
    assert [word for word in (*KEPT, *WORDS, *enums) if f"**{word}**: " not in text] == []


def test_words_of_users_are_explained_in_concepts() -> None:
    text = Path("docs/explanation/concepts.md").read_text()
    assert [word for word in CONCEPTS if f"**{word}.** " not in text] == []


def test_no_word_is_explained_by_two_paragraphs_of_one_section() -> None:
    for section in page().split("\n## ")[1:]:
        heads = [line.partition("**:")[0] for line in section.splitlines() if line.startswith("**")]
        assert len(heads) == len(set(heads))


def test_each_reason_of_a_stale_handle_says_what_to_do() -> None:
    section = Path("docs/how-to/troubleshoot.md").read_text().split("## Why a handle is stale")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", section, re.MULTILINE)
    assert rows == [reason.value for reason in StaleReason]
