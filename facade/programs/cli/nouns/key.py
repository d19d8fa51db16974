"""`leaseway key`: access keys."""

from __future__ import annotations

from typing import Any

import click

from facade.programs.cli.program.command import noun, yes_option
from facade.programs.cli.program.session import Session
from facade.programs.cli.program.values import moment_ms, seconds, words_of
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import path_to
from schemas.vocabulary import Role

command = noun("key", REMOTE["key"][1])
COLUMNS = ("key_id", "principal", "role", "disabled", "expires_at_ms", "last_used_at_ms")

_key = click.argument("key_id", metavar="KEY")
_role = click.option("--role", type=words_of(Role), help="What it may on every queue (a new key: member).")
_expires = click.option(
    "--expires", type=moment_ms, metavar="TIME", help="When it ends: ISO 8601 or epoch ms; 0 = never."
)


@command.verb("ls", "leaseway key ls", "leaseway key ls -o json")
def ls(session: Session) -> None:
    """List all access keys, without their secrets. For administrators."""
    session.rows(session.client.get("/v1/keys")["keys"], COLUMNS, name="key_id")


@command.verb(
    "create",
    "leaseway key create shop-1 --principal shop",
    "leaseway key create prometheus --principal monitor --role reader",
)
@_key
@click.option("--principal", required=True, metavar="NAME", help="Who has it: the owner of what is made with it.")
@_role
@_expires
def create(session: Session, key_id: str, principal: str, role: str | None, expires: int | None) -> None:
    """Create an access key. Its secret is printed, this once."""
    _secret_is_shown(session)
    body = {"key_id": key_id, "principal": principal, "role": role, "expires_at_ms": expires}
    made = session.client.post("/v1/keys", {name: value for name, value in body.items() if value is not None})
    session.one(made, name="key_id")


@command.verb("set", "leaseway key set shop-1 --disable", "leaseway key set shop-1 --expires 2027-01-01")
@_key
@_role
@_expires
@click.option("--disable/--enable", "disabled", default=None, help="Whether it does not count for now.")
def change(session: Session, key_id: str, role: str | None, expires: int | None, *, disabled: bool | None) -> None:
    """Change an access key: its role, its end, whether it counts."""
    body: dict[str, Any] = {"role": role, "expires_at_ms": expires, "disabled": disabled}
    named = {name: value for name, value in body.items() if value is not None}
    if not named:
        raise click.UsageError("name what to change: --role, --expires, --disable or --enable")
    session.one(session.client.call("PATCH", path_to("keys", key_id), named), name="key_id")


@command.verb("rotate", "leaseway key rotate shop-1 --grace-seconds 3600")
@_key
@click.option(
    "--grace-seconds", type=seconds, metavar="SECONDS", help="The old secret counts for so long (default: a day)."
)
def rotate(session: Session, key_id: str, grace_seconds: float | None) -> None:
    """Give an access key another secret, printed this once. A key may do so for itself."""
    _secret_is_shown(session)
    body = {} if grace_seconds is None else {"grace_seconds": grace_seconds}
    session.one(session.client.post(path_to("keys", key_id, "rotate"), body), name="key_id")


@command.verb("rm", "leaseway key rm shop-1 --yes")
@_key
@yes_option
def rm(session: Session, key_id: str, *, yes: bool) -> None:
    """Delete an access key."""
    session.confirm(f"delete access key {key_id!r}", yes=yes)
    session.client.call("DELETE", path_to("keys", key_id))
    session.say(f"deleted access key {key_id!r}")


def _secret_is_shown(session: Session) -> None:
    if not session.shows_all:
        raise click.UsageError("the secret is printed this once, and -o name or --columns would lose it: use -o json")
