"""Looking at messages, which counts nothing: a page of them, one, and those that come."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from facade.programs.cli.connect.client import path_to
from facade.programs.cli.connect.failures import UNREACHABLE, Failure
from facade.programs.cli.program.session import Session

PEEKED = ("id", "state", "sent_at_ms", "receive_count", "group", "body", "body_base64")
EVERY_S = 1.0
# A message may be seen later than one that was sent a little after it, from another partition.
OVERLAP_MS = 2000
LAST_S = 60
PAGE = 100


def query(session: Session, queue: str, limit: int | None, **asked: Any) -> Iterator[dict[str, Any]]:
    """Messages, at most `limit`, partition by partition in the order of their sends."""
    place, left = None, limit
    while left is None or left > 0:
        page = session.client.get(
            path_to("queues", queue, "messages"), **asked, next=place, limit=PAGE if left is None else min(PAGE, left)
        )
        yield from page["messages"] if left is None else islice(page["messages"], left)
        left = None if left is None else left - len(page["messages"])
        place = page["next"]
        if place is None:
            return


def attributes_of(conditions: Sequence[dict[str, str]]) -> list[str] | None:
    """Conditions as the query has them."""
    return [f"{one['name']}={one['value']}" if "value" in one else one["name"] for one in conditions] or None


def _lately(session: Session) -> int:
    """A minute ago, by the clock of the service: that of this machine may be wrong."""
    session.client.exchange("GET", "/live")
    return session.client.clock_ms - LAST_S * 1000


def tail(session: Session, queue: str, since_ms: int | None, *, follow: bool, **asked: Any) -> Iterator[dict[str, Any]]:
    """Messages sent since then, by time; if `follow`, those that come too, for ever."""
    from_ms = _lately(session) if since_ms is None else since_ms
    seen: dict[str, int] = {}
    away = False
    while True:
        try:
            found = [row for row in query(session, queue, None, **asked, **{"from": from_ms}) if row["id"] not in seen]
            away = False
        except Failure as error:
            if not follow or error.code != UNREACHABLE:
                raise
            found = []
            if not away:
                session.say(f"{error}; trying again")
            away = True
        yield from sorted(found, key=lambda row: (row["sent_at_ms"], row["partition"], row["offset"]))
        if not follow:
            return
        seen.update({row["id"]: row["sent_at_ms"] for row in found})
        if seen:
            from_ms = max(from_ms, max(seen.values()) - OVERLAP_MS)
            seen = {message: at for message, at in seen.items() if at >= from_ms}
        time.sleep(EVERY_S)
