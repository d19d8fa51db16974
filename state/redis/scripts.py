"""Reads `lua/*.lua`: header contract, includes, SHA. A script's header is data: tests compare it
with body and store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from schemas.vocabulary import UNCALLED, StaleReason

FOLDER = Path(__file__).parents[1] / "lua"
_WORDS = ("KEYS", "ARGV", "OUT", "STATUS", "INV", "COST", "VERSION", "PLAIN", "INCLUDE")
# What REASONS in a STATUS line stands for: each reason that include/handle.lua may give.
REASONS: Final = tuple(reason.value.upper() for reason in StaleReason if reason not in UNCALLED)


class BadScript(ValueError):
    """A script breaks the header contract; the text names file and line."""


class Script(Struct, frozen=True):
    """One verb in Lua. `keys`, `arguments` and `outs` (items of the reply) are the numbered names
    in order; `*_more` = further ones follow per tag or entry. `now_at` is where ARGV has the time,
    -1 = nowhere.
    """

    name: str
    purpose: str
    keys: list[str]
    keys_more: bool
    arguments: list[str]
    arguments_more: bool
    outs: list[str]
    status: list[str]
    version: int
    source: str
    sha: str
    now_at: int


def _header(name: str, text: str) -> tuple[str, list[tuple[str, str]], str]:
    lines = text.splitlines()
    purpose = lines[0].removeprefix("-- ")
    if not purpose.startswith(f"{name}: "):
        raise BadScript(f"{name}.lua line 1 must be '-- {name}: <what it guarantees>'")
    rows: list[tuple[str, str]] = []
    for number, line in enumerate(lines[1:], 2):
        if not line.startswith("-- "):
            return purpose, rows, "\n".join(lines[number - 1 :])
        if line.startswith("--   "):  # goes on with the line above
            if rows:
                rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line[5:]}")
            else:
                purpose += f" {line[5:]}"
            continue
        word, _, rest = line[3:].partition(" ")
        if word not in _WORDS:
            raise BadScript(f"{name}.lua line {number}: {word!r} is none of {', '.join(_WORDS)}")
        rows.append((word, rest))
    raise BadScript(f"{name}.lua has no body")


def _numbered(name: str, word: str, rows: list[tuple[str, str]]) -> tuple[list[str], bool]:
    names: list[str] = []
    more = False
    for kind, rest in rows:
        if kind != word:
            continue
        if rest.startswith("+"):
            more = True
            continue
        match = re.match(r"(\d+) (\w+)", rest)
        if match is None or int(match[1]) != len(names) + 1 or more:
            raise BadScript(f"{name}.lua: '{word} {rest}' should be number {len(names) + 1} and a name")
        names.append(match[2])
    return names, more


def read_script(path: Path, *, plain: bool = True) -> Script:
    """Reads one script. Raises BadScript when the header is not as the contract asks.

    What PLAIN names is put before the includes: it answers the common case, so that their functions
    are not even made then (ADR 0024). `plain` False leaves it out; the answers are the same.
    """
    name = path.stem
    purpose, rows, body = _header(name, path.read_text())
    one = dict(rows)
    for word in ("OUT", "STATUS", "INV", "COST", "VERSION"):
        if word not in one:
            raise BadScript(f"{name}.lua has no {word} line")
    included = [(path.parent / "include" / f"{part}.lua").read_text() for part in one.get("INCLUDE", "").split()]
    first = [(path.parent / one["PLAIN"]).read_text()] if plain and "PLAIN" in one else []
    source = "\n".join([*first, *included, body])
    keys, keys_more = _numbered(name, "KEYS", rows)
    arguments, arguments_more = _numbered(name, "ARGV", rows)
    outs, _ = _numbered(name, "OUT", rows)
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    status = [part for word in one["STATUS"].split() for part in (REASONS if word == "REASONS" else (word,))]
    version = int(one["VERSION"])
    now_at = arguments.index("now") if "now" in arguments else -1
    return Script(name, purpose, keys, keys_more, arguments, arguments_more, outs, status, version, source, sha, now_at)


@cache
def read_scripts(*, plain: bool = True) -> Mapping[str, Script]:
    """All scripts by name, read once; `plain` as in `read_script`."""
    return MappingProxyType({path.stem: read_script(path, plain=plain) for path in sorted(FOLDER.glob("*.lua"))})
