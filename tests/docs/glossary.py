"""docs/reference/glossary.md, made of the vocabulary.

The paragraphs of states, events and the like are the comments of vocabulary.py, so a word is
explained where it is defined, and not here.
"""

from __future__ import annotations

import ast
import inspect
import re
from textwrap import fill

from schemas import vocabulary

_HEAD = """# Glossary

Each word has one meaning in the code, the API, the logs and these pages. This page is made from
`schemas/vocabulary.py` by `make docs`. [Concepts](../explanation/concepts.md) explains queue, tag,
lease, handle, group, transaction and the like, and [Troubleshoot](../how-to/troubleshoot.md) has
the reasons of `stale`.
"""
_COLUMNS = 100
# The enumerations whose members have a paragraph each, and how the page calls them.
_SECTIONS = {
    "MessageState": "States of a message",
    "EventKind": "Events in the journal",
    "EntryStatus": "What became of a handle",
    "Reason": "Reasons",
}
_COMMENT = re.compile(r"^ +[A-Z_]+ = \"([a-z_]+)\"  # (.+)$", re.MULTILINE)


def page() -> str:
    """The whole page, in Markdown."""
    words = f"## Words\n\n{_paragraphs(sorted(vocabulary.WORDS.items()))}"
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
