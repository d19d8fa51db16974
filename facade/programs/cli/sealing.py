"""`leaseway seal`: control records that LEASEWAY_SECRET has not sealed, shown to an operator, who
says by record which of them to adopt.

What it prints is what `--adopt-listed` reads: an operator deletes the lines that are not to be
adopted. A name has a digest of the record, so what was seen is what is adopted.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from msgspec import to_builtins

from engine.catalog.candidates import Candidate
from engine.recovery.maintenance import Sealing
from engine.settings import EngineSettings
from engine.wiring.foundation import wire_sealing
from facade.programs.cli.maintenance import between
from facade.programs.stack.processes.errors import StackError
from schemas.records import KeyRecord
from schemas.wire import UndecodableRecord, decode

T = TypeVar("T")

EXIT_SEALED, EXIT_NOT_SEALED = 0, 1
MOST_CHARS = 300
_SECRET = ("secret", "previous_secret")
# An answer to a question: yes to all of a group, no to all, or each by itself.
Ask = Callable[[str], str]


@dataclass(frozen=True)
class Wish:
    """What an operator asks for. `names` of records to adopt; `ask`: asks which of the others, None
    = nobody is there to answer. Nothing is written with neither `adopt` nor `drop`.
    """

    adopt: bool = False
    names: Collection[str] = ()
    drop: bool = False
    copied: bool = False
    ask: Ask | None = None


def terminal(question: str) -> str:
    """Asks on the terminal; its end is an empty answer."""
    try:
        return input(question)
    except EOFError:
        return ""


def names_in(path: Path) -> list[str]:
    """The names in a list that `leaseway seal` printed. Raises StackError."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StackError(f"the list {path} can't be read: {error}") from None
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("#")]


def seal(settings: EngineSettings, wish: Wish) -> tuple[int, list[str]]:
    """Exit status and lines: 0 all control records are sealed, 1 some are not. Raises StackError,
    also for a name that no record has that may be adopted; then nothing is written.
    """
    # What has no seal that holds would be logged one by one, and the lines say it.
    logging.getLogger("engine.catalog").setLevel(logging.CRITICAL)
    return asyncio.run(_with_sealing(settings, wish))


async def _with_sealing(settings: EngineSettings, wish: Wish) -> tuple[int, list[str]]:
    async def work(sealing: Sealing) -> tuple[int, list[str]]:
        found = sealing.found()
        if not wish.adopt and not wish.drop:
            return (EXIT_NOT_SEALED if found else EXIT_SEALED), [*_shown(found), _count(found)]
        names = set(wish.names) & {one.name for one in _open(found)}
        if unknown := sorted(set(wish.names) - names):
            raise StackError(
                f"no record that may be adopted is named {unknown[0]!r}: it has changed, or it is barred; "
                "nothing was sealed"
            )
        if wish.adopt and not wish.names and wish.ask is not None:
            names = await asyncio.to_thread(_asked, _open(found), wish.ask)
        done = await sealing.seal(names, drop=wish.drop)
        line = f"sealed again {done.resealed}, adopted {done.adopted}, dropped {done.dropped}, left {len(done.left)}"
        hint = (
            ["# name what to adopt: leaseway seal --adopt NAME..., or --adopt-listed FILE"]
            if wish.adopt and _open(done.left)
            else []
        )
        return (EXIT_NOT_SEALED if done.left else EXIT_SEALED), [*_shown(done.left), *hint, f"# {line}"]

    return await between(wire_sealing(settings, copied=wish.copied), work)


def _open(found: Sequence[Candidate]) -> list[Candidate]:
    return [one for one in found if not one.barred and not one.counts]


def _count(found: Sequence[Candidate]) -> str:
    return f"# {len(found) or 'no'} control record(s) without the seal of this secret"


def _shown(found: Sequence[Candidate]) -> Iterator[str]:
    """A line for each record; the lines of those that can't be adopted begin with #."""
    for one in found:
        if one.counts:
            yield f"# {one.key[:200]!r} counts: {one.reason.about}; `leaseway seal --adopt` seals it again"
        elif one.barred:
            yield f"# {one.name[:400]} can't be adopted, {one.barred}: {one.reason.about}; {_content(one)}"
        else:
            yield f"{one.name}  # at offset {one.offset}, {one.reason.about}; {_content(one)}"


def _asked(found: Sequence[Candidate], ask: Ask) -> set[str]:
    """The names of those that the operator accepts, asked kind by kind."""
    chosen: set[str] = set()
    for kind, members in groupby(found, key=lambda one: one.key.partition("/")[0]):
        group = list(members)
        text = "\n".join(_shown(group))
        answer = ask(
            f"{text}\nadopt {'this record' if len(group) == 1 else f'all {len(group)} records'} of kind {kind!r}? "
            "[y/N/each] "
        )
        if _is(answer, "yes"):
            chosen.update(one.name for one in group)
        elif _is(answer, "each"):
            chosen.update(one.name for one in group if _is(ask(f"adopt {one.name}; {_content(one)}? [y/N] "), "yes"))
    return chosen


def _is(answer: str, word: str) -> bool:
    return bool(answer) and word.startswith(answer.strip().lower() or "-")


def _content(one: Candidate) -> str:
    """What a record says, without secrets and in printable characters."""
    if one.value is None:
        return "it deletes its key" if not one.barred else "no content"
    try:
        record = decode(one.value)
    except UndecodableRecord:
        return "its content is no record"
    said = to_builtins(record)
    text = json.dumps({name: value for name, value in said.items() if value and name not in _SECRET})
    text = text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}..."
    is_admin = isinstance(record, KeyRecord) and (record.admin or record.role == "admin")
    return f"{'the key of an ADMINISTRATOR ' if is_admin else ''}{text}"
