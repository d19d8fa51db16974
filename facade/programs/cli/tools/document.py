"""What `leaseway export`, `diff` and `apply` share: the document of definitions, read from a file
and sent.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from facade.programs.cli.program.session import Session
from facade.programs.connect.failures import WRONG_USE, Failure

PATH: Final = "/v1/definitions"
COLUMNS: Final = ("action", "kind", "queue", "name", "field", "before", "after")
# As the engine has them (engine/services/definitions), which would take longer to import.
PRUNED: Final = ("alerts", "grants", "tags", "queues")
# How long the service may take for all changes of a document.
APPLY_S: Final = 600.0
# The service takes 1,000 queues, 50,000 values and some megabytes in one request.
MOST_QUEUES: Final = 1_000
MOST_COMMAS: Final = 40_000
MOST_BYTES: Final = 3_000_000
Callback = Callable[..., Any]
Document = dict[str, Any]
Change = dict[str, Any]


def document_options(callback: Callback) -> Callback:
    """Adds -f and --prune."""
    kinds = click.Choice(PRUNED)
    prune = click.option(
        "--prune", multiple=True, type=kinds, help="Delete those that FILE does not have; may be repeated."
    )
    file = click.option(
        "-f", "--file", required=True, metavar="FILE", help="The document, in YAML or JSON; `-` reads stdin."
    )
    return file(prune(callback))


def put(session: Session, document: dict[str, Any], prune: Sequence[str], *, dry_run: bool) -> list[Change]:
    """What the service has changed, or would; a document that is too large for one request goes in
    several. Raises Failure, which says of how many of them the changes are made.
    """
    cut = parts(document)
    if len(cut) > 1 and "queues" in prune:
        raise Failure(
            f"--prune queues needs a document that goes in one request: at most {MOST_QUEUES} queues", WRONG_USE
        )
    query = {"dry_run": "true" if dry_run else None, "prune": list(prune) or None}
    changes: dict[str, Change] = {}
    for number, part in enumerate(cut):
        try:
            found = session.client.call("PUT", PATH, part, query=query, wait_s=0.0 if session.timeout_s else APPLY_S)
        except Failure as failure:
            if number and not dry_run:
                raise Failure(
                    f"{failure}; {number} of {len(cut)} parts of the document are applied", failure.code
                ) from None
            raise
        # A queue for dead letters may be in several parts.
        changes |= {json.dumps(change): change for change in found["changes"]}
    return list(changes.values())


def parts(document: Document) -> list[Document]:
    """The document, or what it is cut into: each part has some queues, and those that their dead
    letters go to, so that it can be planned by itself. Users come with the first. Raises Failure: a
    queue and its dead-letter queues are too much for one.
    """
    queues = document.get("queues")
    if not isinstance(queues, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in queues
    ):
        return [document]  # the service says what is wrong
    rest = {name: value for name, value in document.items() if name != "queues"}
    by_name = {one["name"]: one for one in queues}
    if len(by_name) < len(queues) or (len(queues) <= MOST_QUEUES and _fits(_sized(document))):
        return [document]
    sizes = {name: _sized(one) for name, one in by_name.items()}
    cut, part, size = list[Document](), dict[str, None](), _sized(rest)
    for name in by_name:
        more = [one for one in _needed(name, by_name) if one not in part]
        grown = _sum(size, *(sizes[one] for one in more))
        if part and not (len(part) + len(more) <= MOST_QUEUES and _fits(grown)):
            cut.append({**({} if cut else rest), "queues": [by_name[one] for one in part]})
            part, more = {}, list(_needed(name, by_name))
            grown = _sum(*(sizes[one] for one in more))
        if len(more) > MOST_QUEUES or not _fits(grown):
            raise Failure(f"queue {name!r} and the queues of its dead letters are too much for one request", WRONG_USE)
        part.update(dict.fromkeys(more))
        size = grown
    return [*cut, {**({} if cut else rest), "queues": [by_name[one] for one in part]}]


def _needed(name: str, by_name: Mapping[str, Document]) -> dict[str, None]:
    """A queue, and those of the document that its dead letters may come to."""
    found, left = dict[str, None](), [name]
    while left:
        one = left.pop()
        if one in by_name and one not in found:
            found[one] = None
            left += _targets(by_name[one])
    return found


def _targets(queue: Document) -> Iterator[str]:
    tags = queue.get("tags")
    for owner in (queue, *(tags if isinstance(tags, list) else ())):
        policy = owner.get("redrive_policy") if isinstance(owner, dict) else None
        target = policy.get("dead_letter_queue") if isinstance(policy, dict) else None
        if isinstance(target, str):
            yield target


def _sized(value: Any) -> tuple[int, int]:
    """The bytes and the commas that a value has as JSON."""
    text = json.dumps(value, default=str)
    return len(text) + 2, text.count(",") + 1


def _sum(*sizes: tuple[int, int]) -> tuple[int, int]:
    return sum(size for size, _ in sizes), sum(commas for _, commas in sizes)


def _fits(size: tuple[int, int]) -> bool:
    return size[0] <= MOST_BYTES and size[1] <= MOST_COMMAS


def read(file: str) -> dict[str, Any]:
    """The document of a file. Raises Failure."""
    import yaml

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Failure(f"{file} can't be read as YAML or JSON: {' '.join(str(error).split())}", WRONG_USE) from None
    if not isinstance(found, dict):
        raise Failure(f"{file} must be an object with `queues` or `users`, as `leaseway export` prints it", WRONG_USE)
    return found
