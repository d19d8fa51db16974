"""What the numbers must not exceed (docs/decisions/0017-rooms-of-the-engine.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.house.files import Sources, circles, widest_line
from benchmarks.house.layout import ROOT, Layout, upward
from benchmarks.house.trip import Trip


@dataclass(frozen=True)
class Bar:
    """A number and the most that it may be; `where` it was found."""

    name: str
    number: int
    most: int
    where: str = ""

    def holds(self) -> bool:
        return self.number <= self.most

    def told(self) -> str:
        """One line of the report."""
        return (
            f"{'ok  ' if self.holds() else 'OVER'} {self.name}: {self.number} of "
            f"{self.most}{f' ({self.where})' if self.where else ''}"
        )


# 80, 12 of the room of transactions (docs/decisions/0022), 3 of the verbs of tasks, 24 of meters
# and alerts (0020), 2 of deferred messages (0021), 4 of requests to others' servers, 1 of the verbs
# of queues, which grew out of `engine.engine` with accounts (0034), 13 of the plane (0048), 1
# of its drains (0026), 7 of the gate and the services, which were in `engine.engine`; less 8 of the
# ground, which is a package; 1 of what happened to a message, which is read from the journal.
ENGINE_ARROWS = 141
# 1 of them to the log, which all of HTTP writes.
FACADE_ARROWS = 13
# By file, in the engine: the aim is 600. They were 1188 in 245 files, before files that serve one
# idea were merged. 475 of them are to errors, queues, the catalog, the log, shapes, limits,
# settings, rights and the window.
ENGINE_FILE_ARROWS = 998
# Arguments of a constructor in the engine.
CONSTRUCTOR = 7
MODULES = 10
FUNCTION_LINES = 44
FILE_LINES = 400
COLUMNS = 120
# With that of the plane, which is asked to give back what it has leased ahead, the gate, and the
# meters, which are a room since the ground is a package.
RECEIVE_ROOMS = 9
# Bounds of users by default are looked up before a receive, and before a queue is made.
RECEIVE_RETURNS = 5
# Creations of queues, kills and receives have the most.
RULE_FILES = 11


def of_layouts(layouts: Mapping[str, Layout]) -> list[Bar]:
    """The bars of the sources; `layouts` by package."""
    bars = []
    if "engine" in layouts:
        bars.append(Bar("imports between rooms of the engine", len(layouts["engine"].arrows), ENGINE_ARROWS))
    if "facade" in layouts:
        bars.append(Bar("imports between rooms of the facade", len(layouts["facade"].arrows), FACADE_ARROWS))
    for package in ("engine", "facade"):
        if package in layouts:
            against = upward(package, layouts[package].arrows)
            bars.append(
                Bar(f"upward imports between rooms of {package}", len(against), 0, ", ".join(map(" to ".join, against)))
            )
    for package, layout in layouts.items():
        bars += [
            Bar(f"modules in a folder of {package}", layout.largest()[0], MODULES, layout.largest()[1]),
            Bar(
                f"lines of a function of {package}",
                layout.longest_function[0],
                FUNCTION_LINES,
                layout.longest_function[1],
            ),
            Bar(f"lines of a file of {package}", layout.longest_file[0], FILE_LINES, layout.longest_file[1]),
        ]
    return bars


def of_files(engine: Sources, everything: Sources) -> list[Bar]:
    """The bars of the sources file by file."""
    arrows = {(module, other) for module, other in engine.arrows() if other.startswith("engine.")}
    width, widest = engine.widest()
    found = circles(everything.arrows())
    return [
        Bar("imports between files of the engine", len(arrows), ENGINE_FILE_ARROWS),
        Bar("arguments of a constructor of the engine", width, CONSTRUCTOR, widest),
        Bar("circles of files", len(found), 0, "; ".join(map(" and ".join, found))),
    ]


def of_lines(packages: Iterable[str], root: Path = ROOT) -> list[Bar]:
    """The bar of the lines; ruff has it too, and lets a comment that tells it what to ignore be
    longer.
    """
    columns, place = widest_line(packages, root)
    return [Bar("columns of a line", columns, COLUMNS, place)]


def of_trips(trips: Mapping[str, Trip]) -> list[Bar]:
    """The bars of the ways that verbs go."""
    receive = trips["receive"]
    files = {verb: sorted(trip.files) for verb, trip in trips.items()}
    return [
        Bar("rooms that a receive passes", len(receive.rooms()), RECEIVE_ROOMS, " ".join(receive.rooms())),
        Bar(
            "returns of a receive to a room that it had left",
            receive.returns(),
            RECEIVE_RETURNS,
            " ".join(receive.steps),
        ),
        *(
            Bar(f"files that hold a rule of {verb}", len(names), RULE_FILES, " ".join(names))
            for verb, names in files.items()
        ),
    ]
