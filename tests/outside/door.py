"""What a client can ask, in whichever dialect; every call is written into the book with its
outcome.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.judge.history import UNTOLD, Delivered, Origin, Result, Sent, digest
from tests.outside.book import DONE, STATUSES, Book, token_of


class Trouble(Exception):
    """An operation that was not simply done: its outcome (see `book`), a status and a code."""

    def __init__(self, outcome: str, status: int, code: str) -> None:
        super().__init__(f"{outcome}: {status} {code}")
        self.outcome, self.status, self.code = outcome, status, code


@dataclass(frozen=True)
class Letter:
    """A message to send."""

    token: str
    delay: float = 0
    group: str = ""
    dedup: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Leased:
    """A message as it was received; times are the server's, 0 where they are not told."""

    token: str
    whole: bool
    id: str
    handle: str
    count: int
    kind: str = ""
    origin: Origin | None = None
    sent_ms: int = 0
    visible_ms: int = 0
    group: str = ""
    sequence: int = UNTOLD

    @classmethod
    def of(cls, body: str, **more: Any) -> Leased:
        """Of a body as received."""
        token, whole = token_of(body)
        return cls(token=token[:120], whole=whole, **more)


class Door(abc.ABC):
    """A client. Every public method writes one entry; none raises Trouble but says the outcome."""

    name = ""

    def __init__(self, book: Book, who: str) -> None:
        self._book, self.who = book, who

    # What a dialect does; raises Trouble.
    @abc.abstractmethod
    def _send(self, queue: str, letters: Sequence[Letter]) -> list[tuple[str, str]]: ...
    @abc.abstractmethod
    def _receive(self, place: str, limit: int, wait: float, lease: float) -> list[Leased]: ...
    @abc.abstractmethod
    def _settle(self, place: str, handles: Sequence[str]) -> list[Result]: ...
    @abc.abstractmethod
    def _extend(self, place: str, handle: str, lease: float) -> Result: ...
    @abc.abstractmethod
    def _counts(self, place: str) -> dict[str, int]: ...
    @abc.abstractmethod
    def _create(self, queue: str, settings: dict[str, Any]) -> int: ...
    @abc.abstractmethod
    def _delete(self, queue: str) -> None: ...
    @abc.abstractmethod
    def _purge(self, queue: str) -> None: ...

    def send(self, queue: str, letters: Sequence[Letter], **args: Any) -> bool:
        """True when every one was answered as sent."""
        t0, trouble = self._book.now(), None
        rows: list[tuple[str, str]] = []
        try:
            rows = self._send(queue, letters)
        except Trouble as raised:
            trouble = raised
        mixed = any(result != DONE for result, _ in rows)
        more: dict[str, Any] = {"results": [Result(STATUSES[result]) for result, _ in rows]} if mixed else {}
        ids = [given for _, given in rows]
        self._write("send", queue, t0, trouble, args=args, sends=[_sent(one) for one in letters], ids=ids, **more)
        return trouble is None and not mixed

    def wrote_send(self, queue: str, t0: float, token: str, trouble: Trouble | None) -> None:
        """Writes a send that a rude client did by hand."""
        self._write("send", queue, t0, trouble, sends=[_sent(Letter(token))])

    def receive(self, place: str, limit: int, wait: float, lease: float) -> list[Leased] | None:
        """What was leased; None when there was no answer that says."""
        t0, trouble = self._book.now(), None
        leased: list[Leased] | None = None
        try:
            leased = self._receive(place, limit, wait, lease)
        except Trouble as raised:
            trouble = raised
        self.wrote_receive(place, t0, limit, lease, leased, trouble)
        return leased

    def wrote_receive(
        self,
        place: str,
        t0: float,
        limit: int,
        lease: float,
        leased: list[Leased] | None,
        trouble: Trouble | None,
        **args: Any,
    ) -> None:
        """Writes a receive, also one that a rude client did by hand."""
        args |= {"max": limit, "lease_ms": round(lease * 1000)}
        self._write("receive", place, t0, trouble, args=args, deliveries=[_delivered(one) for one in leased or ()])

    def settle(self, place: str, leased: Sequence[Leased]) -> bool:
        """Ack or delete; True when each was said to be done."""
        results = self._on_handles("ack", place, leased, lambda: self._settle(place, [one.handle for one in leased]))
        return len(results) == len(leased) and all(result.status == "ok" for result in results)

    def extend(self, place: str, one: Leased, lease: float) -> None:
        """A new lease, counted from now; 0 gives it back."""
        self._on_handles(
            "extend", place, [one], lambda: [self._extend(place, one.handle, lease)], lease_ms=round(lease * 1000)
        )

    def counts(self, place: str, **args: Any) -> dict[str, int] | None:
        """`ready`, `leased`, `delayed`, as the service says; None when it does not."""
        t0 = self._book.now()
        try:
            counts = self._counts(place)
        except Trouble as trouble:
            self._write("info", place, t0, trouble, args=args)
            return None
        answer = {place.partition("@")[2] or "default": {**counts, "stored": 0}}
        self._write("info", place, t0, None, args=args, answer=answer)
        return counts

    def create(self, queue: str, settings: dict[str, Any], **args: Any) -> int:
        """201 made, 200 it was there, else 0 (written with its outcome); SQS can't tell 201 from
        200. `args`: what the judge is told of the queue.
        """
        t0, made, trouble = self._book.now(), 0, None
        try:
            made = self._create(queue, settings)
        except Trouble as raised:
            trouble = raised
        self._write("create", queue, t0, trouble, args={**args, "status": made})
        return made

    def delete(self, queue: str, **args: Any) -> str:
        """The outcome."""
        return self._plainly("delete", queue, lambda: self._delete(queue), args)

    def purge(self, queue: str) -> str:
        """The outcome."""
        return self._plainly("purge", queue, lambda: self._purge(queue), {})

    def _plainly(self, verb: str, queue: str, call: Any, args: dict[str, Any]) -> str:
        t0, trouble = self._book.now(), None
        try:
            call()
        except Trouble as raised:
            trouble = raised
        self._write(verb, queue, t0, trouble, args=args)
        return trouble.outcome if trouble else DONE

    def _on_handles(self, verb: str, place: str, leased: Sequence[Leased], call: Any, **args: Any) -> list[Result]:
        t0, trouble = self._book.now(), None
        results: list[Result] = []
        try:
            results = call()
        except Trouble as raised:
            trouble = raised
        handles = [digest(one.handle) for one in leased]
        self._write(verb, place, t0, trouble, args=args, handles=handles, results=results)
        return results

    def _write(
        self, verb: str, place: str, t0: float, trouble: Trouble | None, args: dict[str, Any] | None = None, **more: Any
    ) -> None:
        """An operation at a place, which is `queue` or `queue@tag`; without trouble it was done."""
        queue, _, tag = place.partition("@")
        args = {"status": 200, **(args or {})}
        if trouble is not None:
            code, _, detail = trouble.code.partition(": ")
            args["status"], more["answer"] = trouble.status, {"code": code, "detail": detail[:200]}
        outcome = trouble.outcome if trouble else DONE
        more |= {"args": args, "process": self.who, "by": self.name}
        self._book.op(verb, t0, outcome, queue=queue, tag=tag or "default", **more)


def _sent(letter: Letter) -> Sent:
    delay_ms = round(letter.delay * 1000)
    return Sent(letter.token, letter.token, letter.kind, letter.kind, delay_ms, letter.group, letter.dedup)


def _delivered(one: Leased) -> Delivered:
    return Delivered(
        id=one.id,
        uid=one.token,
        body=one.token if one.whole else "torn",
        attributes=one.kind,
        handle=digest(one.handle),
        count=one.count,
        sent_ms=one.sent_ms,
        visible_ms=one.visible_ms,
        origin=one.origin,
        group=one.group,
        sequence=one.sequence,
    )
