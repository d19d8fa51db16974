"""The glossary: every word that is kept is explained, in one paragraph of a section."""

from __future__ import annotations

from schemas.vocabulary import WORDS, EntryStatus, EventKind, MessageState, Reason
from tests.docs.glossary import page

KEPT = ("unit", "tag", "window", "journal", "floor", "seal", "outbox", "nonce", "incarnation", "settle", "drain", "lease")


def test_every_word_of_ours_has_a_paragraph() -> None:
    text = page()
    enums = [member.value for enum in (MessageState, EventKind, EntryStatus, Reason) for member in enum]
    assert [word for word in (*KEPT, *WORDS, *enums) if f"**{word}**: " not in text] == []


def test_no_word_is_explained_by_two_paragraphs_of_one_section() -> None:
    for section in page().split("\n## ")[1:]:
        heads = [line.partition("**:")[0] for line in section.splitlines() if line.startswith("**")]
        assert len(heads) == len(set(heads))
