"""Writes the generated pages: `python -m tests.docs`, which `make docs` calls.

`leaseway config --markdown` writes the page of the settings.
"""

from __future__ import annotations

from tests.docs.pages import GENERATED

for path, page in GENERATED.items():
    path.write_text(page())
