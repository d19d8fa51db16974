"""The tree keeps its rules: names, no addresses, services that are really there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ["facade", "engine", "state", "schemas", "spark"]
BANNED = {"utils", "util", "common", "helpers", "helper", "misc", "base"}


def modules() -> list[Path]:
    return [file for package in [*PACKAGES, "tests"] for file in sorted((ROOT / package).rglob("*.py"))]


def test_no_module_or_folder_is_named_for_nothing() -> None:
    named = {file: {part.removesuffix(".py").strip("_") for part in file.relative_to(ROOT).parts} for file in modules()}

    assert not [str(file) for file, parts in named.items() if parts & BANNED]


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {file.parent for file in modules()}

    # Without __init__.py, a folder loses to any installed package of its name.
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_every_module_that_holds_anything_says_its_role_first() -> None:
    assert not [str(file.relative_to(ROOT)) for file in modules() if (text := file.read_text()) and not text.startswith('"""')]


@pytest.mark.parametrize("name", ["requirements.lock", "Makefile", "pyproject.toml", "facade/stack/ivy.xml", "Dockerfile"])
def test_a_file_of_the_set_up_names_no_registry(name: str) -> None:
    assert not re.findall(r"https?://\S+", (ROOT / name).read_text())


def test_every_locked_requirement_has_a_hash_and_one_version() -> None:
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")

    for line in filter(None, text.splitlines()):
        assert re.match(r"^[a-z0-9.\-]+==\S+.* --hash=sha256:[0-9a-f]{64}", line), line[:80]
