"""The header of each script is compared with its body, with the methods that run it and with the
vocabulary: a contract that drifts is red.
"""

from __future__ import annotations

import ast
import re

import pytest

import schemas.vocabulary
import state.packed
import state.store
from schemas.vocabulary import EventKind, MessageState, Reason
from state.redis.scripts import FOLDER, Script, read_scripts

SCRIPTS = read_scripts()
STORES = ("leases.py", "deferred.py", "upkeep.py", "redis/lock.py", "shared/allotments.py", "clock/keeper.py")
CALLERS = [ast.parse((FOLDER.parent / name).read_text()) for name in STORES]
PLACES = {"packed": state.packed, "store": state.store, "vocabulary": schemas.vocabulary}
# The method that runs a script, where that has another name.
METHODS = {
    "receive_fifo": "receive",
    "receive_fair": "receive",
    "lock": "take",
    "keep": "renew",
    "unlock": "give_up",
    "clock": "_read",
}


def body_of(script: Script) -> str:
    text = (FOLDER / f"{script.name}.lua").read_text()
    return "\n".join(line for line in text.splitlines() if not line.startswith("-- "))


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_every_key_and_argument_in_the_header_is_used_and_no_other(script: Script) -> None:
    body = body_of(script)
    if "begin_receive(" in body:
        body += (FOLDER / "include" / "lease.lua").read_text()
    for word, names, more in (
        ("KEYS", script.keys, script.keys_more),
        ("ARGV", script.arguments, script.arguments_more),
    ):
        used = {int(n) for n in re.findall(rf"{word}\[(\d+)\]", body)}
        assert used == set(range(1, len(names) + 1)), f"{word}: header has {names}, body uses {sorted(used)}"
        computed = re.search(rf"{word}\[[a-z]|#{word}", body) is not None
        assert computed == more, f"{word}: header and body differ on further ones"


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_every_status_word_is_returned_and_no_other(script: Script) -> None:
    text = body_of(script)
    called = [part for name, part in _guards().items() if f"{name}(" in text]
    words = {word for part in (text, *called) for word in re.findall(r"'([A-Z][A-Z_]+)'", part)}
    assert words - {"WITHSCORES", "LIMIT", "PX"} - _commands("\n".join([text, *called])) == set(script.status)


def _guards() -> dict[str, str]:
    """The functions that give replies or words of them, each with what it calls before it in the
    file.
    """
    guard, handle = ((FOLDER / "include" / f"{name}.lua").read_text() for name in ("unit", "handle"))
    functions = re.split(r"^local function ", guard, flags=re.M)[1:]
    bodies = {part.partition("(")[0]: part for part in functions} | {"judge": handle}
    return {name: body + bodies["broken"] * ("broken(" in body) for name, body in bodies.items()}


def _commands(body: str) -> set[str]:
    return set(re.findall(r"redis\.call\('([A-Z]+)'", body))


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_one_method_runs_the_script_with_as_many_keys(script: Script) -> None:
    method, call = _runs()[script.name]
    assert method == METHODS.get(script.name, script.name)
    if isinstance(call.args[1], ast.Tuple) and not any(isinstance(part, ast.Starred) for part in call.args[1].elts):
        assert len(call.args[1].elts) == len(script.keys)
        assert not script.keys_more


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_reply_has_the_items_of_the_header(script: Script) -> None:
    (*_, last) = re.findall(r"^return \{(.*?)\}$", body_of(script), re.M | re.S)
    assert _items(last) == len(script.outs)
    assert script.outs[0] == "status"


def _items(listed: str) -> int:
    """How many items a table in Lua has, without those within its parts."""
    outside = ""
    while outside != listed:
        outside, listed = listed, re.sub(r"\{[^{}]*\}|\([^()]*\)", "", listed)
    return outside.count(",") + 1


def test_the_three_receives_take_and_answer_alike() -> None:
    standard, fifo, fair = (SCRIPTS[name] for name in ("receive", "receive_fifo", "receive_fair"))
    assert (fifo.keys, fifo.outs[: len(fair.outs)]) == (fair.keys, fair.outs)
    assert standard.keys == fifo.keys[: len(standard.keys)]
    # What only one of them takes or answers comes last.
    assert fifo.arguments[: len(fair.arguments)] == standard.arguments[: len(fair.arguments)] == fair.arguments
    assert standard.outs[: len(fair.outs)] == fair.outs


def test_no_two_methods_run_the_same_script() -> None:
    assert len(_run_calls()) == len(_runs()) == len(SCRIPTS)


def _run_calls() -> list[tuple[str, str, ast.Call]]:
    """Script, method and the call, of each call of a script in `state`."""
    methods = [node for tree in CALLERS for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]
    return [
        (call.args[0].value, method.name, call)
        for method in methods
        for call in ast.walk(method)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "run"
        if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    ]


def _runs() -> dict[str, tuple[str, ast.Call]]:
    return {script: (method, call) for script, method, call in _run_calls()}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_is_small_and_touches_only_keys_it_was_given(script: Script) -> None:
    body = body_of(script)
    # The way into the window is one piece: orders, delays, repeats and copies meet there.
    assert len((FOLDER / f"{script.name}.lua").read_text().splitlines()) <= (255 if script.name == "load" else 120)
    assert not re.search(r"redis\.call\('(KEYS|SCAN|FLUSHALL|FLUSHDB|RANDOMKEY)'", body)
    assert ":{" not in body, "a script builds a key"


def test_no_line_of_lua_is_longer_than_120() -> None:
    lines = ((path.name, line) for path in FOLDER.rglob("*.lua") for line in path.read_text().splitlines())
    assert [f"{name}: {line}" for name, line in lines if len(line) > 120] == []


def test_kinds_and_reasons_in_scripts_are_in_the_vocabulary() -> None:
    sources = "\n".join(body_of(script) for script in SCRIPTS.values())
    includes = "\n".join(path.read_text() for path in (FOLDER / "include").glob("*.lua"))
    kinds = set(re.findall(r"journal\([^\n]*?now, '([a-z]+)'", sources + includes))
    assert kinds <= set(EventKind)
    missing = set(EventKind) - kinds - {EventKind.DEAD, EventKind.MOVED}  # given by the caller of settle
    assert missing == set(), f"no script writes {missing}"
    assert {"killed", "exhausted"} <= set(Reason) and set(
        re.findall(r"entry\.reason[^=\n]*= '(\w+)'", includes)
    ) <= set(Reason)
    states = set(re.findall(r"'(ready|delayed|leased|parked|settled|stored)'", body_of(SCRIPTS["states"])))
    assert states == set(MessageState)


def test_numbers_that_scripts_share_with_python_are_the_same() -> None:
    """A comment "-- NAME: what it is, as packed.OTHER." (or vocabulary.OTHER) stands above the
    `local` line that gives NAME.
    """
    shared = 0
    for path in sorted(FOLDER.rglob("*.lua")):
        text = path.read_text()
        for name, place, other in re.findall(
            r"^-- ([A-Z_]+): .* as (packed|store|vocabulary)\.([A-Z_]+)\.$", text, re.M
        ):
            given = dict(
                pair
                for names, values in re.findall(r"^local ([A-Z_, ]+) = ([0-9, ]+)$", text, re.M)
                for pair in zip(names.split(", "), values.split(", "), strict=True)
            )
            assert int(given[name]) == getattr(PLACES[place], other), f"{path.name}: {name}"
            shared += 1
    assert shared >= 4


def test_the_readme_names_every_key_pattern() -> None:
    readme = (FOLDER / "README.md").read_text()
    spelled = re.findall(r'_base \+ "(\w+)"|\}(\w+):\{tag\}', (FOLDER.parent / "keys.py").read_text())
    assert len(spelled) == 17
    for pair in spelled:
        assert f"}}:{pair[0] or pair[1]}" in readme
