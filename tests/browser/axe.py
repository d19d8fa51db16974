"""Looks for what keeps people from using a page, by axe-core, which comes from npm by hash: `python
-m tests.browser.axe` fetches it (make setup does); a test that finds it missing fetches it too.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.browser.chromium import Page
from tests.browser.vendored import fetched
from tests.clients import ROOT, NotFetched

PACKAGE = "axe-core@4.11.0"
SHA256 = "e9e5863c33a874f09bc01acd9234b7e3c871479f5eef8802fa582544465e6d01"
# Worse than these is nothing.
GRAVE = ("serious", "critical")


def program() -> str:
    """The script. Raises NotFetched."""
    file = ROOT / ".cache" / f"axe-{SHA256[:8]}.js"
    if not file.is_file():
        content = fetched(PACKAGE, {"package/axe.min.js": "axe"})["axe"]
        digest = hashlib.sha256(content).hexdigest()
        if digest != SHA256:
            raise NotFetched(f"{PACKAGE} is not what it was: {digest}")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    return file.read_text()


def grave(page: Page, script: str) -> list[str]:
    """What is wrong with the page that is open, one line for each kind and place."""
    page.value(f"{script}; 0")
    found: list[dict[str, Any]] = page.value("axe.run({resultTypes: ['violations']}).then((found) => found.violations)")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


if __name__ == "__main__":
    program()
