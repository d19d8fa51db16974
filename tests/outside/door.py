"""What a client can ask, in whichever dialect; every call is written into the book with its
outcome.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.outside.book import DONE, Book, token_of


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
    """A message as it was received."""

    token: str
    whole: bool
    id: str
    handle: str
    count: int
    kind: str = ""
    died_after: int = 0

    @classmethod
    def of(cls, body: str, **more: Any) -> Leased:
        """Of a body as received."""
        token, whole = token_of(body)
        return cls(token=token[:120], whole=whole, **more)


def short(handle: str) -> str:
    """Enough of a handle to tell it from others."""
    return handle[-24:]


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
    def _settle(self, place: str, handles: Sequence[str]) -> list[str]: ...
    @abc.abstractmethod
    def _extend(self, place: str, handle: str, lease: float) -> str: ...
    @abc.abstractmethod
    def _counts(self, place: str) -> dict[str, int]: ...
    @abc.abstractmethod
    def _create(self, queue: str, settings: dict[str, Any]) -> int: ...
    @abc.abstractmethod
    def _delete(self, queue: str) -> None: ...
    @abc.abstractmethod
    def _purge(self, queue: str) -> None: ...

    def send(self, queue: str, letters: Sequence[Letter]) -> bool:
        """True when every one was answered as sent."""
        t0, outcome = self._book.now(), {}
        rows: list[tuple[str, str]] = []
        try:
            rows = self._send(queue, letters)
        except Trouble as trouble:
            outcome, rows = _said(trouble), [(trouble.outcome, "")] * len(letters)
        items = [
            {
                "token": letter.token,
                **({k: v for k, v in vars(letter).items() if v and k != "token"}),
                "result": result,
                "id": given,
            }
            for letter, (result, given) in zip(letters, rows, strict=True)
        ]
        self._write("send", queue, t0, items=items, **(outcome or {"outcome": DONE}))
        return not outcome and all(item["result"] == DONE for item in items)

    def receive(self, place: str, limit: int, wait: float, lease: float) -> list[Leased] | None:
        """What was leased; None when there was no answer that says."""
        t0, outcome = self._book.now(), {}
        leased: list[Leased] | None = None
        try:
            leased = self._receive(place, limit, wait, lease)
        except Trouble as trouble:
            outcome = _said(trouble)
        self.wrote_receive(place, t0, limit, wait, lease, leased, **(outcome or {"outcome": DONE}))
        return leased

    def wrote_receive(
        self, place: str, t0: float, limit: int, wait: float, lease: float, leased: list[Leased] | None, **more: Any
    ) -> None:
        """Write a receive, also one that a rude client did by hand."""
        got = [_got(one) for one in leased or ()]
        self._write("receive", place, t0, max=limit, wait=wait, lease=lease, got=got, **more)

    def settle(self, place: str, leased: Sequence[Leased]) -> bool:
        """Ack or delete; True when each was said to be done."""
        results = self._on_handles("settle", place, leased, lambda: self._settle(place, [one.handle for one in leased]))
        return all(result == DONE for result in results)

    def extend(self, place: str, one: Leased, lease: float) -> None:
        """A new lease, counted from now; 0 gives it back."""
        self._on_handles("extend", place, [one], lambda: [self._extend(place, one.handle, lease)], lease=lease)

    def counts(self, place: str, **more: Any) -> dict[str, int] | None:
        """`ready`, `leased`, `delayed`, as the service says; None when it does not."""
        t0 = self._book.now()
        try:
            counts = self._counts(place)
        except Trouble as trouble:
            self._write("counts", place, t0, **_said(trouble), **more)
            return None
        self._write("counts", place, t0, outcome=DONE, counts=counts, **more)
        return counts

    def create(self, queue: str, settings: dict[str, Any], **more: Any) -> int:
        """201 made, 200 it was there, else 0 (written with its outcome); SQS can't tell 201 from
        200.
        """
        t0, made = self._book.now(), 0
        outcome: dict[str, Any] = {"outcome": DONE}
        try:
            made = self._create(queue, settings)
        except Trouble as trouble:
            outcome = _said(trouble)
        self._write("create", queue, t0, made=made, **outcome, **more)
        return made

    def delete(self, queue: str, **more: Any) -> str:
        """The outcome."""
        return self._plainly("delete", queue, lambda: self._delete(queue), **more)

    def purge(self, queue: str) -> str:
        """The outcome."""
        return self._plainly("purge", queue, lambda: self._purge(queue))

    def _plainly(self, op: str, queue: str, call: Any, **more: Any) -> str:
        t0, said = self._book.now(), {"outcome": DONE}
        try:
            call()
        except Trouble as trouble:
            said = _said(trouble)
        self._write(op, queue, t0, **said, **more)
        return said["outcome"]

    def _on_handles(self, op: str, place: str, leased: Sequence[Leased], call: Any, **more: Any) -> list[str]:
        t0, said = self._book.now(), {"outcome": DONE}
        try:
            results: list[str] = call()
        except Trouble as trouble:
            said = _said(trouble)
            results = [trouble.outcome] * len(leased)
        items = [
            {"token": one.token, "id": one.id, "handle": short(one.handle), "result": result}
            for one, result in zip(leased, results, strict=True)
        ]
        self._write(op, place, t0, items=items, **said, **more)
        return results

    def _write(self, op: str, place: str, t0: float, **more: Any) -> None:
        self._book.write(op, t0, place=place, who=self.who, by=self.name, **more)


def _got(one: Leased) -> dict[str, Any]:
    row = {"token": one.token, "id": one.id, "handle": short(one.handle), "count": one.count}
    more = {"whole": one.whole} if not one.whole else {}
    return {
        **row,
        **more,
        **({"kind": one.kind} if one.kind else {}),
        **({"died_after": one.died_after} if one.died_after else {}),
    }


def _said(trouble: Trouble) -> dict[str, Any]:
    return {"outcome": trouble.outcome, "status": trouble.status, "code": trouble.code[:200]}


def chunks(leased: Sequence[Leased], size: int) -> Iterable[Sequence[Leased]]:
    """Parts of at most `size`."""
    return (leased[i : i + size] for i in range(0, len(leased), size))
