"""One client of the native API over one connection: every call is an invoke and a completion in the
history.
"""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.judge.history import Delivered, Line, Origin, Recorder, Result, Sent, digest

TIMEOUT_S = 20.0
# The service adds it to letters of its own accord.
ADDED = "DLQ.sourceQueue"
JSON: Mapping[str, str] = {"content-type": "application/json"}
FILLER = "abcdefghijklmnopqrstuvwxyz " * 20


def attributes_digest(attributes: dict[str, Any]) -> str:
    """Of names, types and values as the service tells them."""
    rows = sorted(
        (name, a["type"], a.get("value", a.get("value_base64"))) for name, a in attributes.items() if name != ADDED
    )
    return digest(repr(rows))


def compose(uid: str, kind: str) -> tuple[str, dict[str, Any]]:
    """Body and attributes of a message: both follow from its name, so that each carries what the
    other can be told by.
    """
    body = f"{uid} {FILLER[: 20 + int(digest(uid)[:4], 16) % 400]}"
    return body, {"kind": {"type": "string", "value": kind}, "of": {"type": "string", "value": digest(uid)}}


class Leased(msgspec.Struct):
    """A delivery with the handle that the history keeps only in short."""

    it: Delivered
    handle: str


class Client:
    """One process of the history. Calls never raise for what the service does; they return what was
    understood.

    `worked` is told when a verb last did its work on a queue: ("send" | "receive", queue) ->
    monotonic seconds.
    """

    def __init__(self, recorder: Recorder, endpoint: str, process: int, worked: dict[tuple[str, str], float]) -> None:
        self._recorder = recorder
        self._endpoint = endpoint
        self._process = process
        self._connection: http.client.HTTPConnection | None = None
        self._worked = worked
        self._made = 0

    def uid(self, queue: str) -> str:
        """A name for a message that nobody else gives."""
        self._made += 1
        return f"{queue}.{self._process}.{self._made}"

    @property
    def endpoint(self) -> str:
        """Host and port of the service."""
        return self._endpoint

    def works(self, verb: str, queue: str) -> None:
        """Notes that a verb has just done its work on a queue."""
        self._worked[verb, queue] = time.monotonic()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = JSON) -> tuple[int, Any]:
        """(status, JSON) without a line in the history. Status 0: no answer; -1: nobody took the
        request.
        """
        try:
            if (refused := self._connect()) is not None:
                return -1, refused
            assert self._connection is not None
            data = None if body is None else msgspec.json.encode(body)
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            text = response.read()
            return response.status, msgspec.json.decode(text) if text else None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            return 0, repr(error)

    def _connect(self) -> str | None:
        """Connects if there is no connection; returns the error if nobody takes it."""
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._endpoint, timeout=TIMEOUT_S)
            try:
                self._connection.connect()
            except OSError as error:
                self.close()
                return repr(error)
        return None

    def leave(self, method: str, path: str, body: Any, line: Line, after_s: float, headers: Mapping[str, str]) -> Line:
        """Asks, and leaves after a while without an answer; returns the completion, not yet
        written.
        """
        self._invoke(line)
        with contextlib.suppress(OSError, http.client.HTTPException):
            if self._connect() is None and self._connection is not None:
                self._connection.request(method, path, msgspec.json.encode(body), headers)
                time.sleep(after_s)
        self.close()
        return Line("info", time.monotonic_ns(), op=line.op, process=self._process, args={"status": 0})

    def _invoke(self, line: Line) -> None:
        line.at, line.op, line.process = time.monotonic_ns(), self._recorder.number(), self._process
        self._recorder.write(line)

    def call(
        self, method: str, path: str, body: Any, line: Line, headers: Mapping[str, str] = JSON
    ) -> tuple[Line, Any]:
        """Asks, with an invoke before; returns the completion, not yet written, and the JSON."""
        self._invoke(line)
        status, answer = self.ask(method, path, body, headers)
        done = Line("ok", time.monotonic_ns(), op=line.op, process=self._process, args={"status": status})
        if not 200 <= status < 300:
            known = status in (-1, 429) or 400 <= status < 500
            done.type, done.answer = "fail" if known else "info", answer
        return done, answer

    def write(self, line: Line) -> None:
        self._recorder.write(line)

    def create(self, queue: str, body: dict[str, Any], plan: dict[str, Any]) -> None:
        """Makes a queue; `plan` is what the checkers are told of it. Raises AssertionError when it
        can't be made.
        """
        done, answer = self.call(
            "POST", "/v1/queues", {"name": queue, **body}, Line("invoke", 0, verb="create", queue=queue, args=plan)
        )
        self.write(done)
        assert done.type == "ok", answer

    def send(self, queue: str, entries: Sequence[dict[str, Any]]) -> bool:
        """Sends messages given as uid, kind, delay_ms, group, dedup; True when it was answered by
        ok.
        """
        sends, messages = [], []
        for entry in entries:
            body, attributes = compose(entry["uid"], entry.get("kind", ""))
            message: dict[str, Any] = {"body": body, "attributes": attributes}
            if entry.get("delay_ms"):
                message["delay_seconds"] = entry["delay_ms"] / 1000
            if entry.get("group"):
                message["group"] = entry["group"]
            if entry.get("dedup"):
                message["dedup_id"] = entry["dedup"]
            messages.append(message)
            sends.append(Sent(body=digest(body), attributes=attributes_digest(attributes), **entry))
        line = Line("invoke", 0, verb="send", queue=queue, sends=sends)
        done, answer = self.call("POST", f"/v1/queues/{queue}/messages", {"messages": messages}, line)
        if done.type == "ok":
            self.works("send", queue)
            done.ids = [m["id"] for m in answer["messages"]]
        self.write(done)
        return done.type == "ok"

    def receive(
        self, queue: str, *, tag: str = "default", max: int = 10, wait_ms: int = 1000, lease_ms: int = 6000
    ) -> list[Leased] | None:
        """What was leased; None when there was no good answer."""
        body = {"tag": tag, "max": max, "wait_seconds": wait_ms / 1000, "lease_seconds": lease_ms / 1000}
        line = Line("invoke", 0, verb="receive", queue=queue, tag=tag, args={"max": max, "lease_ms": lease_ms})
        done, answer = self.call("POST", f"/v1/queues/{queue}/receive", body, line)
        leased = None
        if done.type == "ok":
            leased = [_leased(m) for m in answer["messages"]]
            done.deliveries = [one.it for one in leased]
            if leased:
                self.works("receive", queue)
        self.write(done)
        return leased

    def settle(
        self,
        verb: str,
        queue: str,
        leased: Sequence[Leased],
        *,
        tag: str = "default",
        delay_ms: int = 0,
        lease_ms: int = 0,
    ) -> bool:
        """ack, extend, release or kill; True when it was answered by ok (single handles may be
        stale).
        """
        if not leased:
            return True
        body: dict[str, Any] = {"handles": [one.handle for one in leased]}
        if verb == "release":
            body["delay_seconds"] = delay_ms / 1000
        elif verb == "extend":
            body = {"entries": [{"handle": one.handle, "lease_seconds": lease_ms / 1000} for one in leased]}
        args = {"release": {"delay_ms": delay_ms}, "extend": {"lease_ms": lease_ms}}.get(verb, {})
        line = Line("invoke", 0, verb=verb, queue=queue, tag=tag, args=args, handles=[one.it.handle for one in leased])
        done, answer = self.call("POST", f"/v1/queues/{queue}/{verb}", body, line)
        if done.type == "ok":
            done.results = [Result(r["status"], r.get("next_visible_at_ms", 0)) for r in answer["results"]]
        self.write(done)
        return done.type == "ok"

    def redrive(self, queue: str) -> str:
        """Sends letters back to where they came from; the task's id, or empty."""
        line = Line("invoke", 0, verb="redrive", queue=queue)
        done, answer = self.call("POST", f"/v1/queues/{queue}/redrive", {}, line)
        done.answer = answer
        self.write(done)
        return str(answer["id"]) if done.type == "ok" else ""

    def task(self, task: str) -> str:
        """The status of a task, or empty."""
        done, answer = self.call("GET", f"/v1/tasks/{task}", None, Line("invoke", 0, verb="task", args={"task": task}))
        if done.type == "ok":
            done.answer = {"status": answer["status"]}
        self.write(done)
        return str(answer["status"]) if done.type == "ok" else ""

    def purge(self, queue: str) -> bool:
        done, _ = self.call("POST", f"/v1/queues/{queue}/purge", None, Line("invoke", 0, verb="purge", queue=queue))
        self.write(done)
        return done.type == "ok"

    def look(self, queue: str, *, empty: bool) -> bool:
        """Writes down the counts of a queue at rest; `empty` says that all was received before."""
        line = Line("invoke", 0, verb="info", queue=queue, args={"rest": True, "empty": empty})
        done, answer = self.call("GET", f"/v1/queues/{queue}", None, line)
        if done.type == "ok":
            done.answer = {
                t["name"]: {key: t[key] for key in ("ready", "delayed", "leased", "stored")} for t in answer["tags"]
            }
        self.write(done)
        return done.type == "ok"


def _leased(m: dict[str, Any]) -> Leased:
    body = m.get("body", "")
    o = m.get("origin")
    origin = o and Origin(
        o["from_id"], o["from_tag"], o["original_id"], o["original_queue"], o["reason"], o["receive_count"]
    )
    it = Delivered(
        id=m["id"],
        uid=body.split(" ", 1)[0],
        body=digest(body),
        attributes=attributes_digest(m["attributes"]),
        handle=digest(m["handle"]),
        count=m["receive_count"],
        sent_ms=m["sent_at_ms"],
        visible_ms=m["next_visible_at_ms"],
        origin=origin,
        group=m.get("group", ""),
        sequence=int(m.get("sequence_number", -1)),
    )
    return Leased(it, m["handle"])
