"""Names that a shell completes: it asks the service, briefly, and offers nothing if that fails."""

from __future__ import annotations

import contextlib
import os

import click

from facade.programs.cli.program.command import COMMON
from facade.programs.connect.client import Client
from facade.programs.connect.failures import Failure
from facade.programs.connect.profiles import connection

PATIENCE_S = 1.0
MOST = 50


def queue_names(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Queues whose names begin so."""
    first = ctx.find_root().params
    given = {name: ctx.params.get(name) or first.get(name) for name in COMMON}
    try:
        client = Client(connection({**given, "timeout": PATIENCE_S}, os.environ))
        with contextlib.closing(client):
            found: list[str] = client.get("/v1/queues", prefix=incomplete, limit=MOST)["queues"]
    except Failure:
        return []
    return found
