"""`leaseway doctor`: whether a service is reachable, ready and healthy, and the key counts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import click

from facade.programs.cli.program.command import SETTINGS, ApiCommand
from facade.programs.cli.program.session import Session
from facade.programs.cli.words import REMOTE
from facade.programs.connect.client import Client
from facade.programs.connect.failures import UNHEALTHY, UNREACHABLE, Failure, Refused, Unreachable

POLL_S = 1.0
ROUND_S = 30.0  # at most, for one round of several
SKEW_S = 5.0  # worth a note: times in options and tables are those of the service
Check = dict[str, Any]


def checks(client: Client) -> Iterator[Check]:
    """What was looked at: `check`, `status` (ok, alarm, failed, unreachable) and a `note`. The
    first that gets no answer is the last.
    """
    at = client.connection
    key = f"key {at.key_id}" if at.key_id else "no key"
    note = f"{at.endpoint}, {key}{f', profile {at.profile}' if at.profile else ''}"
    for name, look in (("reachable", _reachable), ("ready", _ready), ("healthy", _healthy), ("key", _key)):
        answered = True
        try:
            status, said = look(client)
        except Failure as failure:
            status, said = "unreachable" if failure.code == UNREACHABLE else "failed", str(failure)
            answered = not isinstance(failure, Unreachable)
        yield {"check": name, "status": status, "note": "; ".join(part for part in (note, said) if part)}
        if not answered:
            return
        note = ""


def _reachable(client: Client) -> tuple[str, str]:
    began = time.monotonic()
    status, _ = client.exchange("GET", "/live")
    took = f"answered in {(time.monotonic() - began) * 1000:.0f} ms"
    ahead_s = client.clock_ms / 1000 - time.time()
    if abs(ahead_s) > SKEW_S:
        took += f"; its clock is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's"
    return ("ok", took) if status == 200 else ("failed", f"GET /live answers {status}")


def _ready(client: Client) -> tuple[str, str]:
    status, found = client.exchange("GET", "/ready")
    answer = found if isinstance(found, dict) else {}
    parts = answer.get("parts", {})
    bad = [f"{part}: {said}" for part, said in parts.items() if said != "ok"]
    return ("ok" if status == 200 else "failed"), ", ".join(bad) or ", ".join(parts) or str(answer.get("detail", ""))


def _healthy(client: Client) -> tuple[str, str]:
    found = client.get("/health")
    alarms = ", ".join(f"{kind} ({count})" for kind, count in found["alarms"].items())
    parts = ", ".join(f"{part} {found[part]}" for part in ("native", "plane"))
    return found["status"], f"{alarms}; {parts}" if alarms else parts


def _key(client: Client) -> tuple[str, str]:
    try:
        client.get("/v1/queues", limit=1)
    except Refused as refused:
        return "failed", str(refused)
    return "ok", "" if client.connection.key_id else "the service asks for none"


@click.command(
    "doctor",
    cls=ApiCommand,
    help=f"{REMOTE['doctor'][1].capitalize()}: 0 is all right, 5 unreachable, 10 unhealthy.",
    context_settings=SETTINGS,
    examples=("leaseway doctor", "leaseway doctor --profile prod -o json", "leaseway doctor --wait --timeout 60"),
)
@click.option("--wait", is_flag=True, help="Look until all is right, for --timeout (default: for ever).")
def command(session: Session, *, wait: bool) -> None:
    """Looks."""
    end = session.end
    patience = session.client.connection.timeout_s
    while True:
        now = time.monotonic()
        session.client.until(
            min(now + (min(patience, ROUND_S) if wait else patience), math.inf if end is None else end)
        )
        found = list(checks(session.client))
        code = _code(found)
        if code == 0 or not wait or (end is not None and time.monotonic() + POLL_S > end):
            break
        time.sleep(POLL_S)
    session.rows(found, ("check", "status", "note"), name="check")
    if code:
        bad = [check["check"] for check in found if check["status"] != "ok"]
        raise Failure(f"not all is right: {', '.join(bad)}", code)


def _code(found: list[Check]) -> int:
    if found[0]["status"] == "unreachable":
        return UNREACHABLE
    return UNHEALTHY if any(check["status"] != "ok" for check in found) else 0
