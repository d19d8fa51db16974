"""How the code is laid out, in numbers: `python -m benchmarks.house`.

Rooms are the folders of a package, and its modules that lie in none. An arrow is one room that
imports another; a room in a room has its modules counted by itself. Following a verb: each call
from one room into another is a step; a step into a room that was left before is a return. What a
worker does by itself meanwhile is not counted.
"""

from __future__ import annotations

import ast
import asyncio
import secrets
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from engine.engine import Engine
from engine.settings import Settings
from engine.shapes import Principal, QueueSettings, SendEntry
from tests.services import running_services

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "facade", "spark", "state", "schemas")
# Any room may ask these: they decide nothing, or have no parts.
NO_ROOMS = {"engine.runtime", "engine.errors", "engine.shapes", "engine.settings", "engine.wiring"}


@dataclass
class House:
    """One package. Lengths are lines."""

    arrows: set[tuple[str, str]] = field(default_factory=set)
    rooms: dict[str, int] = field(default_factory=dict)
    longest_file: tuple[int, str] = (0, "")
    longest_function: tuple[int, str] = (0, "")


def room_of(module: str) -> str:
    """The room of a module by its dotted name: engine.send.sender is in engine.send."""
    return ".".join(module.split(".")[:2])


def house(package: str) -> House:
    """The numbers of a package."""
    found = House()
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[-1] == "__main__":
            continue  # a command, and no room
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        room = room_of(module)
        text = path.read_text()
        tree = ast.parse(text)
        if parts[-1] != "__init__":
            folder = ".".join(parts[:-1]) if len(parts) > 2 else room
            found.rooms[folder] = found.rooms.get(folder, 0) + 1
        found.longest_file = max(found.longest_file, (len(text.splitlines()), str(path.relative_to(ROOT))))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.longest_function = max(found.longest_function, (lines, f"{module}.{node.name}"))
            elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{package}."):
                other = room_of(node.module)
                if other != room:
                    found.arrows.add((room, other))
            elif isinstance(node, ast.ImportFrom) and node.module == package:
                found.arrows.update((room, f"{package}.{alias.name}") for alias in node.names if f"{package}.{alias.name}" != room)
    return found


class Follower:
    """Follows calls of the engine through its rooms, in one thread."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._entered: set[FrameType] = set()
        self._prefix = str(ROOT / "engine")

    def _room(self, frame: FrameType | None) -> str | None:
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._prefix):
                parts = Path(file).relative_to(ROOT).with_suffix("").parts
                return room_of(".".join(parts))
            frame = frame.f_back
        return None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self._prefix):
            return
        if frame in self._entered:  # a coroutine that goes on is entered anew: that is no step
            return
        self._entered.add(frame)
        room = self._room(frame)
        if room is None or room in NO_ROOMS or room == self._room(frame.f_back):
            return
        self.steps.append(room)

    def rooms(self) -> list[str]:
        """The rooms in the order of the first step into each."""
        return list(dict.fromkeys(self.steps))

    def returns(self) -> int:
        """Steps into a room that was left before."""
        seen: set[str] = set()
        last, returns = "", 0
        for room in self.steps:
            if room != last and room in seen:
                returns += 1
            seen.add(room)
            last = room
        return returns


async def follow(bootstrap: str, redis_url: str) -> dict[str, Follower]:
    """send, receive and ack of one message, followed."""
    engine = Engine(Settings(kafka_bootstrap=bootstrap, redis_url=redis_url, topic_prefix=f"h{secrets.token_hex(4)}"))
    by = Principal("house", admin=True)
    await engine.start()
    try:
        await engine.create_queue(by, "q", QueueSettings())
        found: dict[str, Follower] = {}
        for _ in range(3):
            handles: list[str] = []
            for verb in ("send", "receive", "ack"):
                follower = found[verb] = Follower()
                sys.setprofile(follower)
                try:
                    if verb == "send":
                        await engine.send(by, "q", [SendEntry(b"m")])
                    elif verb == "receive":
                        handles = [one.handle for one in await engine.receive(by, "q", None, 10, 0, None)]
                    else:
                        await engine.ack(by, "q", handles)
                finally:
                    sys.setprofile(None)
        return found
    finally:
        await engine.stop()


def main() -> int:
    for package in PACKAGES:
        found = house(package)
        most = max(found.rooms.items(), key=lambda row: row[1])
        print(
            f"{package}: {len(found.rooms)} rooms, {len(found.arrows)} arrows, {most[1]} modules in {most[0]}, "
            f"longest file {found.longest_file[1]} ({found.longest_file[0]}), "
            f"longest function {found.longest_function[1]} ({found.longest_function[0]})"
        )
    with tempfile.TemporaryDirectory(prefix="leaseway-house-") as folder, running_services(Path(folder)) as services:
        for verb, follower in asyncio.run(follow(services.bootstrap, services.redis_url)).items():
            print(f"{verb}: {len(follower.rooms())} rooms, {follower.returns()} returns: {' '.join(follower.steps)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
