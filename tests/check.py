"""Checks a change in seconds, with nothing that has to be started: `make check`.

Lints the files that differ from the main branch, checks all types, and runs the unit tests of what
has changed: those that are changed themselves, and those that import a changed module.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = "tests/unit"
# What looks at all of the code, or at pages that are made of it, in a second or two.
ALWAYS = (
    "tests/unit/benchmarks/test_house.py",
    "tests/unit/test_generated_docs.py",
    "tests/unit/test_glossary.py",
    "tests/unit/test_pure_modules.py",
)
# Tests of files that no test imports, by how their names end. The contracts need no Redis.
READERS = {
    ".md": ("tests/unit/test_docs.py",),
    ".lua": ("tests/state/test_contracts.py", "tests/unit/state/test_scripts.py"),
    ".avsc": ("tests/unit/schemas/test_settings.py", "tests/unit/schemas/test_registry.py"),
}
# Its tests concern all of its files, which import each other, and take a second.
JUDGE = "tests/judge/"
_IMPORT = re.compile(r"^(?:from ([\w.]+) import ([\w, ]+)|import ([\w.]+))", re.MULTILINE)


def changed() -> list[str]:
    """Returns the files that differ from the main branch or are new, by their paths."""
    since = _git("merge-base", "HEAD", "main") or ["HEAD"]
    found = {*_git("diff", "--name-only", since[0]), *_git("ls-files", "--others", "--exclude-standard")}
    return sorted(name for name in found if (ROOT / name).is_file())


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")[
        :-1
    ]


def imported(text: str) -> set[str]:
    """Returns the names of modules that a module may import."""
    names = set()
    for package, members, module in _IMPORT.findall(text):
        names |= {module} if module else {package, *(f"{package}.{member.strip()}" for member in members.split(","))}
    return names


def concerned_by(files: Iterable[str]) -> list[str]:
    """Returns the unit tests that a change of these files concerns."""
    files = list(files)
    modules = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files if name.endswith(".py")
    }
    concerned = {name for name in files if name.startswith(UNIT) and Path(name).name.startswith("test_")}
    for test in sorted((ROOT / UNIT).rglob("test_*.py")):
        if imported(test.read_text()) & modules:
            concerned.add(str(test.relative_to(ROOT)))
    if any(name.startswith(JUDGE) for name in files):
        concerned.update(str(test.relative_to(ROOT)) for test in (ROOT / JUDGE).glob("test_*.py"))
    for ending, readers in READERS.items():
        if any(name.endswith(ending) for name in files):
            concerned.update(readers)
    return sorted({*concerned, *ALWAYS})


def _run(*command: str) -> bool:
    began = time.monotonic()
    status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
    print(
        f"check: {command[0]} took {time.monotonic() - began:.1f} s{'' if status == 0 else ', and FAILED'}", flush=True
    )
    return status == 0


def main() -> int:
    """Returns 0 when all is well; says what is not."""
    files = changed()
    python = [name for name in files if name.endswith(".py")]
    tests = concerned_by(files)
    print(f"check: {len(files)} changed files, {len(tests)} files of unit tests", flush=True)
    steps = [("mypy",), ("pytest", "-q", "-p", "no:cacheprovider", *tests)]
    if python:
        steps = [("ruff", "check", *python), ("ruff", "format", "--check", *python), *steps]
    # All of them, also after one that failed.
    return 1 if [step for step in steps if not _run(*step)] else 0


if __name__ == "__main__":
    sys.exit(main())
