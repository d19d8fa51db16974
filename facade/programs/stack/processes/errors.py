"""The one error of the stack."""

from __future__ import annotations


class StackError(Exception):
    """The stack can't start; the text is one line that names the thing, what was found, and what to
    do.
    """
