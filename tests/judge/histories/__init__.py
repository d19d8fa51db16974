"""Histories that keep the promise of a checker, and those with a planted breach of it."""

from __future__ import annotations

from tests.judge.book import Book
from tests.judge.checkers import Checker
from tests.judge.histories import leases, letters, lives, messages, order, rest

MODULES = (messages, leases, order, letters, lives, rest)
CLEAN: dict[str, tuple[Checker, Book]] = {
    f"{checker.__name__}: {name}": (checker, book)
    for module in MODULES
    for checker, books in module.CLEAN.items()
    for name, book in books.items()
}
# With the kind of breach that it must find.
BROKEN: dict[str, tuple[Checker, Book, str]] = {
    f"{checker.__name__}: {name}": (checker, book, kind)
    for module in MODULES
    for (checker, kind), books in module.BROKEN.items()
    for name, book in books.items()
}
