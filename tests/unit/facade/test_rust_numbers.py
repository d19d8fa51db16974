"""Numbers that stand in Python and in Rust are the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from engine.plane import library as plane
from facade.dialects.emq import lanes as emq
from facade.dialects.native import dialect as native
from facade.dialects.sqs import lanes as sqs
from facade.http.sockets import answers, library, listener, routes
from state.redis import calls

SOURCES = Path(__file__).resolve().parents[3] / "native" / "src"


def read(name: str) -> str:
    return (SOURCES / name).read_text()


def block(text: str, start: str) -> str:
    """Returns the lines between the one that starts so and the brace that ends its block."""
    return text[text.index(start) :].partition("\n}\n")[0]


def constants(text: str) -> dict[str, int]:
    return {name: int(number.replace("_", "")) for name, number in re.findall(r"const (\w+): u\w+ = ([\d_]+);", text)}


def variants(text: str) -> dict[str, int]:
    """Returns the numbers of an enum's variants by their names, in capitals with underscores."""
    found = re.findall(r"^    (\w+) = (\d+),", text, re.MULTILINE)
    return {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper(): int(number) for name, number in found}


def of(module: Any, names: dict[str, int]) -> dict[str, int]:
    return {name: getattr(module, name) for name in names}


@pytest.mark.parametrize(("start", "most"), [("mod kind {", 4), ("mod deed {", 8)])
def test_answers_have_the_same_kinds(start: str, most: int) -> None:
    theirs = constants(block(read("answers.rs"), start))
    assert len(theirs) == most
    assert theirs == of(answers, theirs)


def test_news_have_the_same_kinds() -> None:
    theirs = variants(block(read("batch.rs"), "pub enum Kind {"))
    assert len(theirs) == 7
    assert theirs == of(listener, theirs)


def test_verbs_have_the_same_numbers() -> None:
    theirs = variants(block(read("requests.rs"), "pub enum Verb {"))
    verbs = {name: number for name, number in theirs.items() if name.startswith("NATIVE_")}
    assert verbs == of(plane, verbs) == {f"NATIVE_{name.upper()}": number for number, name in native.NAME.items()}
    verbs = {name: number for name, number in theirs.items() if name.startswith("EMQ_")}
    assert verbs == of(plane, verbs) and set(verbs.values()) == set(emq.METHOD)
    verbs = {name: number for name, number in theirs.items() if not name.startswith(("NATIVE_", "EMQ_"))}
    assert verbs == of(plane, verbs)
    assert set(verbs.values()) == set(sqs.ACTION)


def test_dialects_have_the_same_numbers() -> None:
    theirs = variants(block(read("requests.rs"), "pub enum Dialect {"))
    assert len(theirs) == 3
    assert theirs == of(routes, theirs)


def test_flags_and_bounds_are_the_same() -> None:
    flags = constants(read("net/front.rs"))
    assert {name: flags[name] for name in ("MORE", "UNSENT", "BAD")} == of(
        library, dict.fromkeys(("MORE", "UNSENT", "BAD"), 0)
    )
    assert constants(read("c.rs"))["INTERFACE"] == library.INTERFACE
    assert constants(read("auth/keys.rs"))["KEYS"] == sqs.SIGNERS
    assert len(library.Limits._fields) == constants(read("net/bounds.rs"))["NUMBERS"]


def test_places_of_a_call_have_the_same_numbers() -> None:
    theirs = {name: int(number) for number, name in re.findall(r"(\d+) => Slot::(\w+)", read("plane/calls.rs"))}
    ours = {
        "Now": calls.NOW,
        "Most": calls.MOST,
        "Lease": calls.LEASE,
        "Until": calls.UNTIL,
        "Rows": calls.ROWS,
        "Early": calls.EARLY,
        "Done": calls.DONE_SEQ,
        "PlusMore": calls.plus_more(0),
        "PlusKeep": calls.plus_keep(0),
    }
    assert theirs == {name: slot.kind for name, slot in ours.items()}
