"""What the sources say: rooms, imports between them, lengths.

Rooms are the folders of a package, and its modules that lie in none. An arrow is one room that
imports another. Modules are counted by folder, those that lie in a package itself as its own.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "facade", "spark", "state", "runtime", "schemas")


@dataclass
class Layout:
    """One package. Arrows are (room, room that it imports); lengths are lines."""

    arrows: set[tuple[str, str]] = field(default_factory=set)
    modules: dict[str, int] = field(default_factory=dict)
    longest_file: tuple[int, str] = (0, "")
    longest_function: tuple[int, str] = (0, "")

    def largest(self) -> tuple[int, str]:
        """Modules in the largest folder, and its name."""
        return max((number, name) for name, number in self.modules.items())


def room_of(module: str) -> str:
    """The room of a module by its dotted name: engine.send.sender is in engine.send."""
    return ".".join(module.split(".")[:2])


def read(package: str, root: Path = ROOT) -> Layout:
    """The numbers of a package."""
    found = Layout()
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] == "__main__":
            continue  # a command, and no room
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text()
        tree = ast.parse(text)
        if parts[-1] != "__init__":
            folder = ".".join(parts[:-1])
            found.modules[folder] = found.modules.get(folder, 0) + 1
        found.longest_file = max(found.longest_file, (len(text.splitlines()), str(path.relative_to(root))))
        found.longest_function = max(found.longest_function, *_functions(tree, module), key=lambda one: one[0])
        room = room_of(module)
        found.arrows.update((room, other) for other in _imported(tree, package) if other != room)
    return found


def _functions(tree: ast.Module, module: str) -> list[tuple[int, str]]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [((node.end_lineno or node.lineno) - node.lineno + 1, f"{module}.{node.name}") for node in functions] or [
        (0, "")
    ]


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """The rooms of its package that a module imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (room_of(alias.name) for alias in node.names if alias.name.startswith(f"{package}."))
        elif isinstance(node, ast.ImportFrom) and node.module == package:
            yield from (f"{package}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
            yield room_of(node.module)


def upward(package: str, arrows: set[tuple[str, str]], root: Path = ROOT) -> list[tuple[str, str]]:
    """Arrows to a room of the same floor or a higher one, by the layers of import-linter's contract
    for the package.
    """
    floors = _floors(package, root)
    return sorted((room, other) for room, other in arrows if floors[room] >= floors[other])


def _floors(package: str, root: Path) -> Mapping[str, int]:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == [package])
    return {f"{package}.{room.strip()}": floor for floor, line in enumerate(layers) for room in line.split("|")}
