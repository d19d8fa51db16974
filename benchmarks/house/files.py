"""What the sources say file by file: which imports which, circles, how wide constructors are.

An arrow is one file that imports another one of the project, wherever in it. A package counts as a
file when a name is imported from it that is no module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.house.layout import ROOT


@dataclass(frozen=True)
class Sources:
    """Modules by name, each parsed."""

    trees: Mapping[str, ast.Module]

    def arrows(self) -> set[tuple[str, str]]:
        """Returns (module, module that it imports)."""
        return {(name, other) for name, tree in self.trees.items() for other in self._imported(tree) if other != name}

    def _imported(self, tree: ast.Module) -> Iterator[str]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.trees)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    name = whole if whole in self.trees else node.module
                    if name in self.trees:
                        yield name

    def widest(self) -> tuple[int, str]:
        """Returns the arguments of the constructor that has the most, and its class."""
        return max(((width, name) for name, width in self._widths()), default=(0, ""))

    def _widths(self) -> Iterator[tuple[str, int]]:
        for name, tree in self.trees.items():
            for node in ast.walk(tree):
                if not isinstance(node, ast.ClassDef):
                    continue
                for made in node.body:
                    if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                        yield f"{name}.{node.name}", len(made.args.args) - 1 + len(made.args.kwonlyargs)


def widest_line(packages: Iterable[str], root: Path = ROOT) -> tuple[int, str]:
    """Returns the columns of the widest line of code, scripts and the native library too, and its
    place. What protoc has written does not count.
    """
    found = (0, "")
    for folder in (*packages, "native/src"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".lua", ".rs") or path.stem.endswith("_pb2"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = max(found, (len(line), f"{path.relative_to(root)}:{number}"))
    return found


def sources(packages: Iterable[str], root: Path = ROOT) -> Sources:
    """Reads all modules of packages."""
    trees: dict[str, ast.Module] = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    return Sources(trees)


def circles(arrows: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Returns the groups of modules that import each other, by whatever way; each in order."""
    after: dict[str, set[str]] = {}
    for module, other in arrows:
        after.setdefault(module, set()).add(other)
        after.setdefault(other, set())
    # What nothing is left to import for is in no circle, and so is what nothing imports any more.
    while free := {
        module for module, others in after.items() if not others or not any(module in them for them in after.values())
    }:
        after = {module: others - free for module, others in after.items() if module not in free}
    found: list[list[str]] = []
    while after:
        start = min(after)
        reached = _reached(after, start)
        circle = sorted(module for module in reached if start in _reached(after, module))
        if circle:
            found.append(circle)
        after = {
            module: others - {start, *circle} for module, others in after.items() if module not in {start, *circle}
        }
    return found


def _reached(after: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        for module in after[ahead.pop()] - found:
            found.add(module)
            ahead.append(module)
    return found
