"""The bars of the code's layout, and that each is seen when it is exceeded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.house.bars import RULE_FILES, Bar, of_files, of_layouts, of_lines, of_trips
from benchmarks.house.files import circles, sources
from benchmarks.house.layout import PACKAGES, Layout, read, upward
from benchmarks.house.trip import Trip, follow
from engine.rules.limits import check_name
from engine.rules.linger import should_linger


@pytest.mark.parametrize("bar", of_layouts({package: read(package) for package in PACKAGES}), ids=lambda bar: bar.name)
def test_the_layout_holds_its_bar(bar: Bar) -> None:
    assert bar.holds(), bar.told()


@pytest.mark.parametrize("bar", of_files(sources(["engine"]), sources(PACKAGES)), ids=lambda bar: bar.name)
def test_the_files_hold_their_bar(bar: Bar) -> None:
    assert bar.holds(), bar.told()


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_imports_count_once_for_two_rooms_wherever_they_stand(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "engine/send/one.py": "from engine.log.log import Log\nfrom engine.log import Record\nfrom "
            "engine.send import two\n",
            "engine/send/two.py": "def late():\n    import engine.errors\n    from engine import shapes\n",
            "engine/log/log.py": "import json\nfrom schemas.records import Message\n",
            "engine/errors.py": "",
        },
    )
    assert read("engine", tmp_path).arrows == {
        ("engine.send", "engine.log"),
        ("engine.send", "engine.errors"),
        ("engine.send", "engine.shapes"),
    }


def test_modules_are_counted_by_folder_and_lengths_by_lines(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "state/__init__.py": "",
            "state/store.py": "class Store:\n    def load(self):\n        a = 1\n        return a\n",
            "state/keys.py": "x = 1\n",
            "state/redis/__init__.py": "",
            "state/redis/lock.py": "\n" * 7,
        },
    )
    layout = read("state", tmp_path)
    assert layout.modules == {"state": 2, "state.redis": 1}
    assert (layout.longest_file, layout.longest_function) == ((7, "state/redis/lock.py"), (3, "state.store.load"))


def test_an_import_of_the_same_floor_or_a_higher_one_is_upward() -> None:
    down, up, beside = (
        ("engine.send", "engine.log"),
        ("engine.rules", "engine.window"),
        ("engine.send", "engine.receive"),
    )
    assert upward("engine", {down, up, beside}) == [up, beside]


def test_an_import_counts_once_for_two_files_and_a_package_is_one(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "engine/__init__.py": "",
            "engine/send.py": "from engine.log import Log, reader\nfrom engine.log import Record\nimport "
            "engine.errors\nimport json\n",
            "engine/errors.py": "",
            "engine/log/__init__.py": "from engine.log.reader import Log\n",
            "engine/log/reader.py": "def late():\n    from engine import errors\n",
        },
    )
    assert sources(["engine"], tmp_path).arrows() == {
        ("engine.send", "engine.log"),
        ("engine.send", "engine.log.reader"),
        ("engine.send", "engine.errors"),
        ("engine.log", "engine.log.reader"),
        ("engine.log.reader", "engine.errors"),
    }


def test_no_line_is_wider_than_its_bar() -> None:
    (bar,) = of_lines(PACKAGES)
    assert bar.number > 100  # it has read something
    assert bar.holds(), bar.told()


@pytest.mark.parametrize("name", ["engine/a.py", "state/lua/a.lua", "native/src/a.rs"])
def test_a_line_of_121_columns_is_found_whatever_stands_in_it(name: str, tmp_path: Path) -> None:
    write(tmp_path, {name: "\n" + "x" * 99 + "  # type: ignore[misc]", "engine/a_pb2.py": "x" * 130})
    assert of_lines(["engine", "state"], tmp_path)[0].told() == f"OVER columns of a line: 121 of 120 ({name}:2)"


def test_circles_are_found_whatever_hangs_on_them() -> None:
    one, other = [("a", "b"), ("b", "c"), ("c", "a")], [("x", "y"), ("y", "x")]
    assert circles([*one, ("start", "a"), ("c", "end"), ("c", "x"), *other]) == [["a", "b", "c"], ["x", "y"]]
    assert circles([("a", "b"), ("a", "c"), ("b", "c")]) == []


def test_the_widest_constructor_is_found_by_its_arguments(tmp_path: Path) -> None:
    text = "class {}:\n    def __init__(self, {}) -> None:\n        pass\n"
    write(tmp_path, {"engine/a.py": text.format("A", "a, b, *, c"), "engine/b.py": text.format("B", "a, b")})
    assert sources(["engine"], tmp_path).widest() == (3, "engine.a.A")


def test_a_broken_bar_is_told_with_its_place() -> None:
    broken = Layout(
        arrows={(f"engine.rules{n}", "engine.log") for n in range(81)},
        modules={"state": 11},
        longest_file=(401, "state/store.py"),
        longest_function=(45, "state.store.load"),
    )
    assert [bar.told() for bar in of_layouts({"state": broken})] == [
        "OVER modules in a folder of state: 11 of 10 (state)",
        "OVER lines of a function of state: 45 of 44 (state.store.load)",
        "OVER lines of a file of state: 401 of 400 (state/store.py)",
    ]
    assert not Bar("imports between rooms", 81, 80).holds() and Bar("imports between rooms", 80, 80).holds()


def test_a_way_back_into_a_room_is_a_return() -> None:
    trip = Trip()
    trip.steps = ["a", "b", "b", "a", "c", "b"]
    trip.files = {f"engine.rules.r{n}" for n in range(RULE_FILES + 1)}
    assert (trip.rooms(), trip.returns()) == (["a", "b", "c"], 2)
    assert [bar.holds() for bar in of_trips({"receive": trip})] == [True, True, False]


async def test_what_was_begun_before_a_verb_is_not_on_its_way() -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def beside() -> None:
        await begun.wait()
        check_name("name", "beside")
        done.set()

    async def verb() -> None:
        begun.set()
        await done.wait()
        should_linger(0, 0)

    task = asyncio.create_task(beside())
    trips: dict[str, Trip] = {}
    await follow(trips, "verb", verb())
    await task
    assert trips["verb"].steps == ["engine.rules"]
    await follow(trips, "verb", beside())
    assert trips["verb"].files == {"engine.rules.limits"}
