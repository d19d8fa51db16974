"""Tables and paragraphs of the generated pages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table with a line for each row."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def wrapped(text: str) -> str:
    """A paragraph of 100 columns, and the empty line after it."""
    return textwrap.fill(" ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False) + "\n\n"
