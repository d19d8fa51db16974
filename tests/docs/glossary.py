"""docs/reference/glossary.md, made of the vocabulary and of the words below.

The paragraphs of states, events and the like are the comments of vocabulary.py, so a word is
explained where it is defined, and not here.
"""

from __future__ import annotations

import ast
import inspect
import re
from textwrap import fill
from typing import Final

from schemas import vocabulary

_HEAD = """# Glossary

Words with one meaning in the code, the API, the logs and these pages, written by `make docs`.
[Concepts](../explanation/concepts.md) has queue, tag, lease and the like,
[Troubleshoot](../how-to/troubleshoot.md) the reasons of `stale`.
"""
_COLUMNS = 100
# The enumerations whose members have a paragraph each, and how the page calls them.
_SECTIONS = {
    "MessageState": "States of a message",
    "EventKind": "Events in the journal",
    "EntryStatus": "What became of a handle",
    "Reason": "Reasons",
}
# Words that name no state and no event, as the code, the logs and the docs use them.
WORDS: Final = {
    "incarnation": "Twelve hex digits that name one life of a queue. A queue that is created again under the same name "
    "has another one, so nothing of the old queue is taken for the new one's.",
    "unit": "One partition of one incarnation of a queue. Each script works on one unit; a unit has one owner, and is "
    "rebuilt by itself.",
    "owner": "The worker that loads a unit's window and drains its outbox. It holds a lease of its own on the unit; "
    "its epoch, which rises with each owner, keeps a former owner from writing.",
    "generation": "A number of the state in Redis as a whole. A unit without it, or with another, does not serve "
    "until it is rebuilt.",
    "window": "What Redis holds of a unit: messages that can be received next, and leased ones. The rest of the "
    "backlog is in Kafka alone.",
    "cursor": "Of a tag in a unit: the first offset that the window has not taken in order.",
    "nonce": "The number of a delivery: the seq of the journal entry that leased the message. A handle carries it, so "
    "a handle of an earlier delivery is known as stale.",
    "settle": "To end a message under a tag for good: it is acked, dead, expired, purged, deleted, moved or skipped.",
    "floor": "Of a tag in a partition: the offset below which every message is settled. It never falls.",
    "seq": "The number of a journal entry of a unit; there are no holes within a generation.",
    "outbox": "The list in Redis of a unit's journal entries that Kafka does not have yet. The script that changes a "
    "unit appends the entry in the same step.",
    "drain": "To append the entries of an outbox to the journal, and to drop them from the outbox once Kafka has them.",
    "snapshot": "The journal of a unit, folded up to one entry, so that a rebuild need not read all of it.",
    "seal": "A number in Redis that says how many members a structure has. A script that finds another number knows "
    "that Redis has lost something, and takes the unit out of service before it gives a wrong answer.",
}  # fmt: skip
_COMMENT = re.compile(r"^ +[A-Z_]+ = \"([a-z_]+)\"  # (.+)$", re.MULTILINE)


def page() -> str:
    """The whole page, in Markdown."""
    words = f"## Words\n\n{_paragraphs(sorted(WORDS.items()))}"
    return "\n".join([_HEAD, words, *(_section(name, title) for name, title in _SECTIONS.items())])


def _section(name: str, title: str) -> str:
    enum = getattr(vocabulary, name)
    source = inspect.getsource(enum)
    told = dict(_COMMENT.findall(source))
    missing = [member.value for member in enum if member.value not in told]
    if missing:
        raise LookupError(f"{name}: no comment explains {', '.join(missing)}")
    (node,) = ast.parse(source).body
    about = ast.get_docstring(node) if isinstance(node, ast.ClassDef) else None
    return f"## {title}\n\n{about}\n\n{_paragraphs([(member.value, told[member.value]) for member in enum])}"


def _paragraphs(words: list[tuple[str, str]]) -> str:
    return "\n".join(
        fill(f"**{word}**: {text}", _COLUMNS, break_long_words=False, break_on_hyphens=False) + "\n"
        for word, text in words
    )
