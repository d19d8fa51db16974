"""`leaseway api`: any request to the API, for what has no verb yet."""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import quote

import click

from facade.programs.cli.program.command import SETTINGS, ApiCommand
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import pairs
from facade.programs.cli.words import REMOTE
from facade.programs.connect.failures import FAILED, WRONG_USE, Failure, Refused

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@click.command(
    "api",
    cls=ApiCommand,
    help=f"{REMOTE['api'][1].capitalize()}, such as GET /v1/queues, and print its answer as JSON.",
    context_settings=SETTINGS,
    examples=(
        "leaseway api GET /v1/queues/orders/grants",
        """leaseway api PUT /v1/queues/orders/grants/billing --data '{"level": "use"}'""",
        "leaseway api GET /v1/queues/orders/statistics --query day=2026-11-27",
    ),
)
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("path")
@click.option("--data", metavar="JSON", help="Body; `-` reads it from stdin.")
@click.option(
    "--query", multiple=True, type=pairs, metavar="NAME=VALUE", help="Parameter of the query; may be repeated."
)
def command(session: Session, method: str, path: str, data: str | None, query: tuple[tuple[str, str], ...]) -> None:
    """Sends the request."""
    if not path.startswith("/"):
        raise click.BadParameter(f"begins with /, such as /v1/queues, given {path!r}", param_hint="PATH")
    given: dict[str, list[str]] = {}
    for name, value in query:
        given.setdefault(name, []).append(value)
    # What a request line can't have is escaped; an escape, and what means something, stays.
    target = quote(path, safe="/%?&=:@!$'()*+,;~", errors="surrogateescape")
    status, found = session.client.exchange(method.upper(), target, _body(data), query=given)
    if status >= 300:
        raise Refused(status, found if isinstance(found, dict) else {})
    if found is None:
        return
    if not isinstance(found, dict):
        raise Failure("the answer is no JSON object: is it a Leaseway?", FAILED)
    session.printer("json").one(found, "name")


def _body(data: str | None) -> Any:
    if data is None:
        return None
    text = sys.stdin.read() if data == "-" else data
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f"--data must be JSON: {error}", WRONG_USE) from None
