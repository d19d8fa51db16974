"""Lists and paragraphs of the generated pages."""

from __future__ import annotations

import textwrap


def item(text: str) -> str:
    """An item of a list, of 100 columns."""
    return (
        textwrap.fill(
            " ".join(text.split()),
            100,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
    )


def wrapped(text: str) -> str:
    """A paragraph of 100 columns, and the empty line after it."""
    return textwrap.fill(" ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False) + "\n\n"
