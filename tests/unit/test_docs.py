"""README, CONTRIBUTING, CHANGELOG and docs/: lines of 100 columns, short table cells, paths and
links that exist, one word per thing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")), *(ROOT / "docs").rglob("*.md")])
# Notes beside the code: their tables are of figures and keys.
NOTES = sorted(ROOT / name for name in ("state/lua/README.md", "benchmarks/README.md", "benchmarks/loadgen/README.md"))
COLUMNS = 100
CELL_WORDS = 25
# Folders and files of the repository that a page may name in backticks.
TOP = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - {"AGENTS.md"}
_FENCE = re.compile(r"^ *```")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)+/?|test_\w+\.py")
# Words that this project has replaced: what they stand for, and the words that say so.
REPLACED = {
    r"\b(?:lend|lends|lent|lending|lender)\b": "lease, leased",
    r"(?<!dead )(?<!dead-)\bletters?\b(?!,? (?:and )?digits)": "dead letter",
    r"\bkept bod(?:y|ies)\b(?!\.md)": "body cache",
}

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


@pytest.mark.parametrize("path", [*PAGES, *NOTES], ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_wraps_at_100_columns(path: Path) -> None:
    # A word of 80 characters and more (an address) can't be wrapped.
    long = [
        f"{number}: {line[:60]}"
        for number, line in prose(path)
        if len(line) > COLUMNS and not line.startswith("|") and max(map(len, line.split())) < 80
    ]
    assert long == []


@page
def test_a_table_cell_has_at_most_25_words(path: Path) -> None:
    wordy = []
    for number, line in prose(path):
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            wordy += [f"{number}: {len(cell.split())} words: {cell[:60]}" for cell in cells if len(cell.split()) > CELL_WORDS]
    assert wordy == []


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


@page
def test_one_word_per_thing(path: Path) -> None:
    # A term may be broken at the end of a line.
    text = " ".join(_LINK.sub("]", _CODE.sub("", " ".join(line for _, line in prose(path)))).split())
    found = [
        f"{text[max(0, word.start() - 30) : word.end() + 20]!r}: say {say}"
        for pattern, say in REPLACED.items()
        for word in re.finditer(pattern, text, re.IGNORECASE)
    ]
    assert found == []


def test_the_readme_does_not_send_its_readers_to_the_lab() -> None:
    assert "docs/lab" not in (ROOT / "README.md").read_text()


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text())}
    decisions = {path for path in PAGES if path.parent.name == "decisions"}
    assert {path for path in PAGES if path.is_relative_to(ROOT / "docs")} - linked - decisions - {index} == set()
