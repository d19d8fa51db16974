"""The first sentences of modules: who their neighbours are, and what they must not know.

An import contract says for whole packages what a module must not know (pyproject.toml); a docstring
says what no contract can.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "facade", "schemas", "spark", "state")
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
FILES = {part.removesuffix(".py") for path in MODULES for part in path.relative_to(ROOT).parts}
# What contracts keep from a package.
KEPT_AWAY = {
    "engine": r"\b(?:HTTP|dialects?|Redis|Spark)\b",
    "schemas": r"\b(?:Kafka|Redis|Spark)\b",
    "state": r"\b(?:HTTP|Kafka|Spark)\b",
}
_NEIGHBOURS = re.compile(r"Neighbours?: (.*?)(?:(?:It|This module|Pure data;)? ?[Mm]ust not |\Z)")
_NAMED = re.compile(r"`([a-z][\w./]+)`")
_MUST_NOT = re.compile(r"[Mm]ust not know ([^.]*)")


@cache
def docstring(path: Path) -> str:
    """The docstring of a module in one line."""
    return " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())


def defined() -> set[str]:
    """The functions and classes of all packages."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for path in MODULES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)}


def test_neighbours_are_modules_folders_or_functions() -> None:
    known = FILES | defined()
    missing: dict[str, list[str]] = {}
    for path in MODULES:
        for part in _NEIGHBOURS.findall(docstring(path)):
            for name in _NAMED.findall(part):
                last = re.split(r"[./]", re.sub(r"\.(?:py|lua|md|xml)$|/$|\.[A-Z]\w*$", "", name))[-1]
                if last not in known and not (ROOT / name).exists():
                    missing.setdefault(str(path.relative_to(ROOT)), []).append(name)
    assert missing == {}


@pytest.mark.parametrize("package", KEPT_AWAY)
def test_what_a_contract_keeps_away_is_in_no_docstring(package: str) -> None:
    said = {
        str(path.relative_to(ROOT)): found
        for path in MODULES
        if path.relative_to(ROOT).parts[0] == package
        and (found := re.findall(KEPT_AWAY[package], " ".join(_MUST_NOT.findall(docstring(path)))))
    }
    assert said == {}
