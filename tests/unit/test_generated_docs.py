"""The generated pages of docs/reference are what `make docs` would write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import GENERATED


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_a_generated_page_is_fresh(path: Path) -> None:
    assert path.read_text() == GENERATED[path](), f"{path.name} is stale; write it again with `make docs`"
