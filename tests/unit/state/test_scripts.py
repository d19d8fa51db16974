"""The header of a script is read as its contract says, and one that breaks it is refused."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from schemas.vocabulary import UNCALLED, StaleReason
from state.redis.scripts import BadScript, read_script, read_scripts

HEADER = """-- x: takes one of a set
-- KEYS 1 meta hash
-- KEYS 2 visible sorted set
-- ARGV 1 now_ms
-- ARGV + offsets
-- OUT 1 status
-- STATUS OK LOST
-- INV none
-- COST O(1)
-- VERSION 3
"""


def script(folder: Path, text: str) -> Path:
    path = folder / "x.lua"
    path.write_text(text)
    return path


def test_a_header_is_read_as_data(tmp_path: Path) -> None:
    found = read_script(script(tmp_path, f"{HEADER}return {{'OK'}}\n"))
    assert (found.name, found.keys, found.keys_more) == ("x", ["meta", "visible"], False)
    assert (found.arguments, found.arguments_more, found.outs) == (["now_ms"], True, ["status"])
    assert (found.status, found.version, found.source) == (["OK", "LOST"], 3, "return {'OK'}")


def test_a_line_of_a_header_may_go_on_in_the_next(tmp_path: Path) -> None:
    text = HEADER.replace("of a set\n", "of a\n--   set\n").replace("-- STATUS OK LOST\n", "-- STATUS OK\n--   LOST\n")
    found = read_script(script(tmp_path, f"{text}return 1\n"))
    assert (found.purpose, found.status, found.source) == ("x: takes one of a set", ["OK", "LOST"], "return 1")


def test_reasons_stands_for_each_reason_that_a_script_gives(tmp_path: Path) -> None:
    text = HEADER.replace("-- STATUS OK LOST\n", "-- STATUS OK REASONS LOST\n")
    status = read_script(script(tmp_path, f"{text}return 1\n")).status
    assert (status[0], status[-1]) == ("OK", "LOST")
    assert {word.lower() for word in status[1:-1]} == set(StaleReason) - UNCALLED


def test_what_is_included_stands_before_the_body_and_counts_for_the_sum(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "clock.lua").write_text("local now = 1")
    found = read_script(script(tmp_path, f"{HEADER}-- INCLUDE clock\nreturn now\n"))
    assert found.source == "local now = 1\nreturn now"
    assert found.sha == hashlib.sha1(found.source.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-- other: x\nreturn {}\n", "line 1"),
        (
            ("-- x: y\n-- KEYS 2 meta hash\n-- OUT a\n-- STATUS OK\n-- INV a\n-- COST a\n-- VERSION 1\nreturn 1\n"),
            "number 1",
        ),
        ("-- x: y\n-- KEY 1 meta hash\nreturn 1\n", "KEY"),
        ("-- x: y\n-- OUT 1 a\n-- STATUS OK\n-- INV a\n-- COST a\nreturn 1\n", "VERSION"),
        ("-- x: y\n-- OUT {status}\n-- STATUS OK\n-- INV a\n-- COST a\n-- VERSION 1\nreturn 1\n", "number 1"),
        ("-- x: y\n-- OUT a\n", "no body"),
    ],
)
def test_a_header_that_breaks_the_contract_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(BadScript, match=fault):
        read_script(script(tmp_path, text))


def test_every_script_is_read_and_no_two_are_the_same() -> None:
    scripts = read_scripts()
    assert len(scripts) > 25 and len({one.sha for one in scripts.values()}) == len(scripts)
