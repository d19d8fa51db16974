"""A pure module has a unit test of its own name.

Pure is what reaches no clock of the loop, no thread, no process, no socket and none of the clients,
neither by itself nor through what it imports. Modules that only declare things need no test.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "facade", "runtime", "schemas", "spark", "state")
OUTSIDE = {
    *("asyncio", "ctypes", "http", "select", "signal", "socket", "subprocess", "tempfile", "threading"),
    *(
        "confluent_kafka",
        "fastapi",
        "hiredis",
        "httptools",
        "jgo",
        "prometheus_client",
        "pyspark",
        "redis",
        "starlette",
        "uvicorn",
    ),
}
# Module -> the test that has it, where one of its own name would say less.
TESTED_BY = {
    "facade.programs.stack.data.certificate": "tests/stack/test_tls.py",
    "facade.http.bounds.bounds": "tests/unit/facade/test_lifespan.py",
    "engine.journal.outbox": "tests/unit/engine/plane/test_drains.py",
    # each struct by each codec, against the library
    "facade.dialects.emq.wire.codec": "tests/unit/emq/test_structs.py",
    "facade.dialects.emq.wire.kinds": "tests/unit/emq/test_structs.py",
    "facade.dialects.emq.wire.tjson": "tests/unit/emq/test_structs.py",
    "facade.dialects.emq.wire.packed": "tests/unit/emq/test_structs.py",
}


def modules(root: Path) -> dict[str, Path]:
    """Every module by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> set[str]:
    """The names that a module imports, whether modules or what is in them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
    return found


def pure(known: dict[str, Path]) -> list[str]:
    """The modules that reach nothing outside."""
    imports = {name: imported(path) for name, path in known.items()}
    reach = {name for name, names in imports.items() if any(one.partition(".")[0] in OUTSIDE for one in names)}
    while more := {name for name, names in imports.items() if name not in reach and names & reach}:
        reach |= more
    return [name for name in known if name not in reach]


def does_something(path: Path) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(ast.parse(path.read_text()))
    )


MODULES = modules(ROOT)
PURE = [
    name
    for name in pure(MODULES)
    if does_something(MODULES[name]) and MODULES[name].stem not in ("__init__", "__main__")
]


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_has_a_unit_test_of_its_own_name(name: str) -> None:
    path = MODULES[name]
    if name in TESTED_BY:
        assert (ROOT / TESTED_BY[name]).exists()
        return
    tests = (ROOT / "tests" / "unit").rglob(f"test_{path.stem}.py")
    assert any(name in imported(test) for test in tests), f"no test_{path.stem}.py below tests/unit imports {name}"


def test_the_walk_finds_pure_modules_and_what_only_looks_like_one(tmp_path: Path) -> None:
    files = {
        "engine/a.py": "import json\n",
        "engine/b.py": "from engine import c\n",
        "engine/c.py": "from engine.d import run\n",
        "engine/d.py": "def run():\n    import asyncio\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert pure(modules(tmp_path)) == ["engine.a"]
    assert len(PURE) > 40
