"""The native dialect over sockets, with nothing between: one connection a client, made again after
any trouble.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Sequence
from typing import Any

from tests.judge.history import UNTOLD, Origin, Result
from tests.outside.book import BROKEN, DONE, REFUSED, UNKNOWN, UNREACHED, Book, body_of
from tests.outside.door import Door, Leased, Letter, Trouble

PATIENCE_S = 13.0


def outcome_of(status: int) -> str:
    """What an HTTP status says of the request."""
    if status < 300:
        return DONE
    if status < 500:
        return REFUSED
    return UNKNOWN if status == 503 else BROKEN


def asked(letter: Letter) -> dict[str, Any]:
    """A letter as the native API is told it."""
    row: dict[str, Any] = {"body": body_of(letter.token)}
    if letter.delay:
        row["delay_seconds"] = letter.delay
    if letter.group:
        row["group"] = letter.group
    if letter.dedup:
        row["dedup_id"] = letter.dedup
    if letter.kind:
        row["attributes"] = {"kind": letter.kind}
    return row


def lent_of(row: dict[str, Any]) -> Leased:
    """A delivery of a receive's answer."""
    return Leased.of(
        row.get("body", ""),
        id=row["id"],
        handle=row["handle"],
        count=row["receive_count"],
        kind=row["attributes"].get("kind", {}).get("value", ""),
        origin=_origin(row["origin"]) if row.get("origin") else None,
        sent_ms=row["sent_at_ms"],
        visible_ms=row["next_visible_at_ms"],
        group=row.get("group", ""),
        sequence=int(row.get("sequence_number", UNTOLD)),
    )


def _origin(row: dict[str, Any]) -> Origin:
    copy = row["from_id"], row["from_tag"], row["original_id"], row["original_queue"]
    return Origin(*copy, row["reason"], row["receive_count"])


class Native(Door):
    """One connection; not for several threads."""

    name = "native"

    def __init__(self, book: Book, who: str, port: int, patience: float = PATIENCE_S) -> None:
        super().__init__(book, who)
        self._port, self._patience = port, patience
        self._connection: http.client.HTTPConnection | None = None

    def call(self, method: str, path: str, body: Any = None, wait: float = 0) -> tuple[int, Any]:
        """Status and decoded answer; Trouble of outcome `unknown` or `unreached` when there is
        none.
        """
        connection = self._connected(self._patience + wait)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"content-type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.hang_up()
            raise Trouble(UNKNOWN, 0, f"{type(error).__name__}: {error}") from None

    def hang_up(self) -> None:
        """Close the connection; the next call makes another."""
        if self._connection:
            with contextlib.suppress(OSError):
                self._connection.close()
        self._connection = None

    def ok(self, method: str, path: str, body: Any = None, wait: float = 0) -> Any:
        """The answer, or Trouble for any status that is no success."""
        status, answer = self.call(method, path, body, wait)
        outcome = outcome_of(status)
        if outcome != DONE:
            raise Trouble(outcome, status, f"{(answer or {}).get('code')}: {(answer or {}).get('detail')}")
        return answer

    def _connected(self, timeout: float) -> http.client.HTTPConnection:
        if self._connection is None:
            fresh = http.client.HTTPConnection("127.0.0.1", self._port, timeout=3)
            try:
                fresh.connect()
            except OSError as error:
                raise Trouble(UNREACHED, 0, type(error).__name__) from None
            self._connection = fresh
        elif self._connection.sock is None:  # the server asked to close it
            self._connection = None
            return self._connected(timeout)
        self._connection.sock.settimeout(timeout)
        return self._connection

    def port_used(self) -> int:
        """The client's port of the connection that the next call goes over."""
        return int(self._connected(self._patience).sock.getsockname()[1])

    def _send(self, queue: str, letters: Sequence[Letter]) -> list[tuple[str, str]]:
        answer = self.ok("POST", f"/v1/queues/{queue}/messages", {"messages": [asked(one) for one in letters]})
        return [(DONE, row["id"]) for row in answer["messages"]]

    def _receive(self, place: str, limit: int, wait: float, lease: float) -> list[Leased]:
        queue, _, tag = place.partition("@")
        body = {"max": limit, "wait_seconds": wait, "lease_seconds": lease, **({"tag": tag} if tag else {})}
        return [lent_of(row) for row in self.ok("POST", f"/v1/queues/{queue}/receive", body, wait)["messages"]]

    def _handles(self, verb: str, place: str, body: dict[str, Any]) -> list[Result]:
        answer = self.ok("POST", f"/v1/queues/{place.partition('@')[0]}/{verb}", body)
        return [Result(row["status"], row.get("next_visible_at_ms", 0)) for row in answer["results"]]

    def _settle(self, place: str, handles: Sequence[str]) -> list[Result]:
        return self._handles("ack", place, {"handles": list(handles)})

    def _extend(self, place: str, handle: str, lease: float) -> Result:
        return self._handles("extend", place, {"entries": [{"handle": handle, "lease_seconds": lease}]})[0]

    def release(self, place: str, one: Leased, delay: float) -> None:
        """Give back, to be received after `delay`."""
        body = {"handles": [one.handle], "delay_seconds": delay}
        delay_ms = round(delay * 1000)
        self._on_handles("release", place, [one], lambda: self._handles("release", place, body), delay_ms=delay_ms)

    def kill(self, place: str, one: Leased) -> None:
        """To the dead-letter queue now."""
        self._on_handles("kill", place, [one], lambda: self._handles("kill", place, {"handles": [one.handle]}))

    def _counts(self, place: str) -> dict[str, int]:
        queue, _, tag = place.partition("@")
        tags = self.ok("GET", f"/v1/queues/{queue}")["tags"]
        row = next(row for row in tags if row["name"] == (tag or "default"))
        return {"ready": row["ready"] + row["stored"], "leased": row["leased"], "delayed": row["delayed"]}

    def _create(self, queue: str, settings: dict[str, Any]) -> int:
        status, answer = self.call("POST", "/v1/queues", {"name": queue, **settings})
        if status not in (200, 201):
            raise Trouble(outcome_of(status), status, f"{(answer or {}).get('code')}: {(answer or {}).get('detail')}")
        return status

    def _delete(self, queue: str) -> None:
        self.ok("DELETE", f"/v1/queues/{queue}")

    def _purge(self, queue: str) -> None:
        self.ok("POST", f"/v1/queues/{queue}/purge")

    def exists(self, queue: str) -> bool | None:
        """Whether GET finds it; None when there is no saying. Written as `look`."""
        t0 = self._book.now()
        try:
            status, _ = self.call("GET", f"/v1/queues/{queue}")
        except Trouble as trouble:
            self._write("look", queue, t0, trouble)
            return None
        outcome = DONE if status in (200, 404) else outcome_of(status)
        self._write("look", queue, t0, None if outcome == DONE else Trouble(outcome, status, ""), {"status": status})
        return {200: True, 404: False}.get(status)

    def redrive(self, place: str, destination: str = "") -> str:
        """The task's id, or empty."""
        t0, body = self._book.now(), {"destination": destination} if destination else {}
        try:
            answer = self.ok("POST", f"/v1/queues/{place}/redrive", body)
        except Trouble as trouble:
            self._write("redrive", place, t0, trouble)
            return ""
        self._write("redrive", place, t0, None, answer={"id": answer["id"]})
        return str(answer["id"])

    def task(self, place: str, task: str) -> str:
        """The status of a task, or empty."""
        t0 = self._book.now()
        try:
            answer = self.ok("GET", f"/v1/tasks/{task}")
        except Trouble as trouble:
            self._write("task", place, t0, trouble, {"task": task})
            return ""
        self._write("task", place, t0, None, {"task": task}, answer={"status": answer["status"]})
        return str(answer["status"])
