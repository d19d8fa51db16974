"""Looking at messages, which counts nothing: a page of them, one, and those that come."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from facade.programs.cli.program.session import Session
from facade.programs.connect.client import path_to
from facade.programs.connect.failures import Failure, Refused, is_passing

PEEKED = ("id", "state", "sent_at_ms", "receive_count", "group", "body", "body_base64")
EVERY_S = 1.0
# A message may be seen later than one that was sent a little after it, from another partition.
OVERLAP_MS = 2000
LAST_S = 60
PAGE = 100
MASKED = "the mask of the queue hides something of what is shown: it is not as it was sent, and *** stands for a value"
SERVICE_FAILED = 500  # and above: a status that blames the service, perhaps of one partition alone


def query(session: Session, queue: str, limit: int | None, **asked: Any) -> Iterator[dict[str, Any]]:
    """Messages, at most `limit`, partition by partition in the order of their sends."""
    return chain.from_iterable(_pages(session, queue, limit, **asked))


def _pages(session: Session, queue: str, limit: int | None, **asked: Any) -> Iterator[list[dict[str, Any]]]:
    return session.client.pages(path_to("queues", queue, "messages"), "messages", limit=limit, size=PAGE, **asked)


def search(
    session: Session, queue: str, limit: int, most: int, place: str | None, **asked: Any
) -> list[dict[str, Any]]:
    """Messages that fit, at most `limit`, of some `most` that are read from a place on (None = the
    first). Says on stderr how many were read, and where to go on.
    """
    found: list[dict[str, Any]] = []
    scanned = 0
    while True:
        page = session.client.get(
            path_to("queues", queue, "messages"), **asked, next=place, limit=min(PAGE, limit - len(found))
        )
        found += page["messages"]
        scanned += page["scanned"]
        place = page["next"]
        if place is None or len(found) >= limit or scanned >= most:
            break
    more = "" if place is None else f"; --next {place} goes on"
    session.say(f"looked at {scanned} message(s){more}")
    return found


def say_masked(session: Session, rows: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """The same messages; says on stderr, once, that something of them is hidden."""
    said = False
    for row in rows:
        if row.get("masked") and not said:
            session.say(MASKED)
            said = True
        yield row


def attributes_of(conditions: Sequence[dict[str, str]]) -> list[str] | None:
    """Conditions as the query has them."""
    return [f"{one['name']}={one['value']}" if "value" in one else one["name"] for one in conditions] or None


def _by_time(row: dict[str, Any]) -> tuple[int, int, int]:
    return row["sent_at_ms"], row["partition"], row["offset"]


def tail(session: Session, queue: str, since_ms: int | None, *, follow: bool, **asked: Any) -> Iterator[dict[str, Any]]:
    """Messages sent since then (default: a minute ago), by time. If `follow`, those that come too,
    for ever, a page after the other: by time in a page.
    """
    if since_ms is None or follow:
        # The clock that counts is that of the service: that of this machine may be wrong.
        session.client.exchange("GET", "/live")
    from_ms = session.client.clock_ms - LAST_S * 1000 if since_ms is None else since_ms
    if follow:
        yield from _followed(session, queue, from_ms, asked)
    else:
        yield from sorted(query(session, queue, None, **asked, **{"from": from_ms}), key=_by_time)


@dataclass
class _Part:
    """What is followed of a queue: all of it, or one partition. `from_ms`: what was sent before is
    printed. `seen`: when each message was sent that was printed since then.
    """

    asked: dict[str, Any]
    from_ms: int
    seen: dict[str, int]

    def read(self, session: Session, queue: str) -> Iterator[dict[str, Any]]:
        """One pass over it: messages that were not printed, page by page. Raises Failure."""
        began = session.client.clock_ms
        for page in _pages(session, queue, None, **self.asked, **{"from": self.from_ms}):
            found = [row for row in page if row["id"] not in self.seen]
            self.seen.update({row["id"]: row["sent_at_ms"] for row in found})
            yield from sorted(found, key=_by_time)
        # What came to a partition after it was read, in this pass, is not older than the pass.
        if self.seen:
            self.from_ms = max(self.from_ms, min(began, max(self.seen.values())) - OVERLAP_MS)
            self.seen = {message: at for message, at in self.seen.items() if at >= self.from_ms}


def _followed(session: Session, queue: str, from_ms: int, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """After the first page that the service could not give, each partition is followed by itself:
    one that fails at every pass hides none of the others.
    """
    parts, said = [_Part(asked, from_ms, {})], False
    while True:
        failures: list[Failure] = []
        for part in parts:
            try:
                yield from part.read(session, queue)
            except Failure as error:
                if not is_passing(error):
                    raise
                failures.append(error)
        if failures and not said:
            session.say(f"{failures[0]}; trying again")
        said = bool(failures)
        if len(parts) == 1 and any(
            isinstance(failure, Refused) and failure.status >= SERVICE_FAILED for failure in failures
        ):
            (whole,) = parts
            numbers = _partitions(session, queue)
            parts = [_Part({**asked, "partition": one}, whole.from_ms, dict(whole.seen)) for one in numbers] or parts
        time.sleep(EVERY_S)


def _partitions(session: Session, queue: str) -> range:
    """The partitions of a queue; none when they are not known, for who may read messages need not
    be told of the queue.
    """
    try:
        return range(session.client.get(path_to("queues", queue))["partitions"])
    except Failure:
        return range(0)
