"""What `leaseway export`, `diff` and `apply` share: the document of definitions, read from a file
and sent.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
Callback = Callable[..., Any]
Change = dict[str, Any]


def document_options(callback: Callback) -> Callback:
    """Adds -f and --prune."""
    kinds = click.Choice(PRUNED)
    prune = click.option("--prune", multiple=True, type=kinds, help="Delete those that FILE does not have; may be repeated.")
    file = click.option("-f", "--file", required=True, metavar="FILE", help="The document, in YAML or JSON; `-` reads stdin.")
    return file(prune(callback))


def put(session: Session, document: dict[str, Any], prune: Sequence[str], *, dry_run: bool) -> list[Change]:
    """What the service has changed, or would. Raises Failure."""
    query = {"dry_run": "true" if dry_run else None, "prune": list(prune) or None}
    found = session.client.call("PUT", PATH, document, query=query, wait_s=0.0 if session.timeout_s else APPLY_S)
    changes: list[Change] = found["changes"]
    return changes


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
