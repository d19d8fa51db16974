"""No hidden wires: an attribute of another object is assigned only in the module that defines its
class.

What a part tells another goes through a method or a signal, so that an editor finds it. The walk
knows attributes by their names: what a class of the module declares, or sets on itself, is its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "facade", "runtime", "schemas", "spark", "state")
# The module and the name of the object -> why it is assigned to there.
ALLOWED = {
    "engine/loading/deferrals.py loader": "when a unit has its turn lies in its loader, for a unit that is "
    "given up forgets it with that",
    "engine/log/appender.py job": "the state of one append, which the appender alone changes; a call for each "
    "record would cost every send",
    "engine/receive/poll.py line": "what the poller learns of a line; a call for each would cost every receive",
    "engine/receive/serving.py line": "what a call found, which lies in the list that it serves; a call for "
    "each would cost every receive",
    "engine/receive/serving.py waiter": "the waiters of the list that is served",
    "engine/send/sender.py batch": "the state of one batch, which the sender alone changes; a call for each "
    "would cost every send",
    "facade/programs/stack/data/certificate.py context": "how ssl is told what a connection may be",
    "facade/programs/stack/data/certificate.py self.context": "how ssl is told what a connection may be",
    "facade/programs/stack/workers.py context": "how ssl is told what a connection may be",
    "facade/http/sockets/library.py function": "how ctypes is told of the types of a function",
    "facade/dialects/mns/wire/xml.py parser": "how expat is given its handlers",
    "facade/dialects/native/routes.py app": "how FastAPI is given a document of one's own",
    "facade/programs/cli/program/program.py sys": "a stream that was closed is None, and nobody can print to that",
    "facade/http/log/lines.py record": "how a filter of logging tells the formatter",
    "facade/programs/stack/worker.py record": "how a filter of logging changes what is logged",
}


def assigned_elsewhere(source: str) -> Iterator[tuple[int, str]]:
    """Line and object of each assignment to an attribute that no class of the module has."""
    tree = ast.parse(source)
    own: set[str] = set()
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(cls):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                own.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                own.add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            if not _is_self(node.value) and node.attr not in own:
                yield node.lineno, ast.unparse(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            yield node.lineno, ast.unparse(node.args[0])


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def test_no_module_assigns_to_attributes_of_other_modules_objects() -> None:
    found: dict[str, list[int]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "rocketmq_pb2" in path.name + (text := path.read_text()):
                continue  # messages of protobuf are filled so
            for line, name in assigned_elsewhere(text):
                found.setdefault(f"{path.relative_to(ROOT)} {name}", []).append(line)
    assert {name: lines for name, lines in found.items() if name not in ALLOWED} == {}
    assert [name for name in ALLOWED if name not in found] == [], "no longer assigned to: to be taken off the list"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("store.alone = True", ["store"]),
        ("parts.base.store.alone += 1", ["parts.base.store"]),
        ("a.one, (b.two, c) = 1, (2, 3)", ["a", "b"]),
        ("for other.attr in rows: pass", ["other"]),
        ("with work() as other.attr: pass", ["other"]),
        ("setattr(core, 'hook', f)", ["core"]),
        ("class Part:\n    def __init__(self):\n        self.state = 0\n\n\ndef step(part):\n    part.state = 1", []),
        ("class Row:\n    state: int\n\n\nrow.state = 1", []),
        ("row['state'] = 1", []),
    ],
)
def test_the_walk_sees_every_form_of_assignment(source: str, found: list[str]) -> None:
    assert [name for _, name in assigned_elsewhere(source)] == found
