"""What all unit tests share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

import facade.app
from facade.dialects.native.reference.openapi import document_of
from facade.dialects.native.reference.page import documents
from facade.http.operation import Operation


@pytest.fixture(scope="session", autouse=True)
def described_once() -> Iterator[None]:
    """Apps of all tests share one description: it is the same each time, and took most of what a
    test takes that makes an app.
    """
    made: list[dict[str, Any]] = []

    def document(operations: Sequence[Operation]) -> dict[str, Any]:
        if not made:
            made.append(document_of(operations))
        return made[0]

    @cache
    def pages() -> tuple[Operation, ...]:
        return documents(made[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(facade.app, "document_of", document)
        patch.setattr(facade.app, "documents", lambda *_: pages())
        yield
