"""Paths and links in README, CONTRIBUTING, CHANGELOG and docs/ exist; the index names each page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
        *(ROOT / "docs").rglob("*.md"),
    ]
)
# Folders and files of the repository that a page may name in backticks.
TOP = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - {"AGENTS.md"}
_FENCE = re.compile(r"^ *```")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)+/?|test_\w+\.py")
page = pytest.mark.parametrize("path", PAGES, ids=[str(path.relative_to(ROOT)) for path in PAGES])


def prose(path: Path) -> list[tuple[int, str]]:
    """Number and text of each line outside of fences."""
    lines, code = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if _FENCE.match(line):
            code = not code
        elif not code:
            lines.append((number, line))
    return lines


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    heads = [line.lstrip("#") for _, line in prose(path) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@page
def test_backticked_paths_exist(path: Path) -> None:
    missing = []
    for number, line in prose(path):
        for code in _CODE.findall(line):
            for found in _PATH.findall(code) if " " not in code else ():
                if found != code:
                    continue
                if "/" not in found:
                    there = any((ROOT / "tests").rglob(found))
                else:
                    there = found.split("/")[0] not in TOP or any(ROOT.glob(found.rstrip("/")))
                if not there:
                    missing.append(f"{number}: {found}")
    assert missing == []


@page
def test_links_lead_somewhere(path: Path) -> None:
    broken = []
    for number, line in prose(path):
        for link in _LINK.findall(line):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{number}: {link}")
    assert broken == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text())}
    decisions = {path for path in PAGES if path.parent.name == "decisions"}
    assert {path for path in PAGES if path.is_relative_to(ROOT / "docs")} - linked - decisions - {index} == set()


def test_decisions_are_numbered_without_a_gap() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [path.name[:4] for path in decisions] == [f"{number:04}" for number in range(1, len(decisions) + 1)]
    assert [path.name for path in decisions if not path.read_text().startswith(f"# {path.name[:4]}: ")] == []
