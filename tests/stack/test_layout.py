"""The tree keeps its rules: names, no addresses, services that are really there."""

from __future__ import annotations

import re
import tomllib
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


LOCKS = ["run", "spark", "demo", "test"]
SET_UP = ["Makefile", "pyproject.toml", "facade/stack/processes/ivy.xml", "Dockerfile", *(f"requirements/{name}.lock" for name in LOCKS)]


def locked(name: str) -> dict[str, set[str]]:
    """What a lock has: the versions of each package (more than one when they depend on the
    Python).
    """
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([a-z0-9.\-]+)==(\S+)", (ROOT / "requirements" / f"{name}.lock").read_text(), re.MULTILINE):
        found.setdefault(package, set()).add(version)
    return found


@pytest.mark.parametrize("name", SET_UP)
def test_a_file_of_the_set_up_names_no_registry(name: str) -> None:
    assert not re.findall(r"https?://\S+", (ROOT / name).read_text())


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_requirement_has_a_hash_and_one_version(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text().replace("\\\n", " ")

    for line in filter(None, text.splitlines()):
        assert re.match(r"^[a-z0-9.\-]+==\S+.* --hash=sha256:[0-9a-f]{64}", line), line[:80]


def test_each_lock_is_part_of_the_next_larger_one() -> None:
    run, spark, test = locked("run"), locked("spark"), locked("test")

    assert run.items() <= spark.items() <= test.items()
    assert set(spark) - set(run) == {"numpy", "py4j", "pyspark"}
    # The demo reads a file of this package; pandas and numpy, which the package asks for, are not
    # needed for that.
    assert set(locked("demo")) == {"vega-datasets"}
    assert "pandas" not in test


def test_the_licence_is_the_one_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "LICENSE").read_text()

    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert "Apache License" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text
