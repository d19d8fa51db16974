"""The native dialect for the cases."""

from __future__ import annotations

from typing import Any

import httpx

from tests.conformance.cases.client import PLAIN, TEXT, Counts, Got, QueueSpec, Refused

REASONS = {
    "queue_not_found": "no_queue",
    "tag_not_found": "no_queue",
    "queue_exists": "exists",
    "invalid_value": "invalid",
    "message_too_large": "invalid",
    "invalid_handle": "bad_handle",
}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class NativeClient:
    """JSON over HTTP."""

    name = "native"
    lacks: frozenset[str] = frozenset()

    def __init__(self, endpoint: str) -> None:
        self._http = httpx.Client(base_url=f"{endpoint}/v1", timeout=30)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._http.request(method, path, json=body) if body is not None else self._http.request(method, path)
        found: Any = answer.json() if answer.content else None
        if answer.is_success:
            return found
        raise Refused(REASONS.get(found["code"], found["code"]))

    def create(self, queue: str, spec: QueueSpec = PLAIN) -> None:
        dead = spec.dead and {"dead_letter_queue": spec.dead[0], "max_receive_count": spec.dead[1]}
        self.ask(
            "POST",
            "/queues",
            _given(
                name=queue,
                fifo=spec.fifo,
                content_dedup=spec.content_dedup or None,
                lease_seconds=spec.lease_s,
                delay_seconds=spec.delay_s,
                max_message_bytes=spec.max_bytes,
                redrive_policy=dead,
            ),
        )

    def set_lease(self, queue: str, lease_s: int) -> None:
        self.ask("PATCH", f"/queues/{queue}", {"lease_seconds": lease_s})

    def set_parks(self, queue: str, count: int) -> None:
        """A FIFO queue that another dialect has made parks groups; no other dialect can say so."""
        self.ask("PATCH", f"/queues/{queue}", {"on_exhausted": "park", "max_receive_count": count})

    def set_in_flight(self, queue: str, most: int) -> None:
        """Bounds what is leased of a queue that another dialect has made."""
        self.ask("PATCH", f"/queues/{queue}", {"max_in_flight": most})

    def parked(self, queue: str) -> list[tuple[str, int]]:
        """The parked groups, and how many messages each holds back."""
        return [(one["group"], one["held"]) for one in self.ask("GET", f"/queues/{queue}/parked")["groups"]]

    def unpark(self, queue: str, group: str) -> bool:
        return bool(self.ask("POST", f"/queues/{queue}/unpark", {"group": group})["unparked"])

    def delete(self, queue: str) -> None:
        self.ask("DELETE", f"/queues/{queue}")

    def purge(self, queue: str) -> None:
        self.ask("POST", f"/queues/{queue}/purge")

    def pause(self, queue: str) -> None:
        """Has nobody receive; no other dialect can say so."""
        self.ask("POST", f"/queues/{queue}/pause", {"reason": "a case"})

    def resume(self, queue: str) -> None:
        self.ask("POST", f"/queues/{queue}/resume")

    def queues(self, prefix: str) -> list[str]:
        return list(self.ask("GET", f"/queues?prefix={prefix}")["queues"])

    def counts(self, queue: str, tag: str | None = None) -> Counts:
        tags = self.ask("GET", f"/queues/{queue}/tags")["tags"]
        found = next(one for one in tags if one["name"] == (tag or "default"))
        return Counts(found["ready"] + found["stored"], found["leased"] + found["parked"], found["delayed"])

    def create_tag(self, queue: str, tag: str, kinds: tuple[str, ...] = ()) -> None:
        conditions = [{"name": "kind", "value": kind} for kind in kinds]
        body = {"name": tag, **({"filter": {"operator": "OR", "conditions": conditions}} if kinds else {})}
        self.ask("POST", f"/queues/{queue}/tags", body)

    def delete_tag(self, queue: str, tag: str) -> None:
        self.ask("DELETE", f"/queues/{queue}/tags/{tag}")

    def _send(self, queue: str, messages: list[dict[str, Any]]) -> list[str]:
        return [
            sent["id"] for sent in self.ask("POST", f"/queues/{queue}/messages", {"messages": messages})["messages"]
        ]

    def send(
        self,
        queue: str,
        *bodies: str,
        delay_s: int | None = None,
        attributes: TEXT | None = None,
        group: str | None = None,
    ) -> list[str]:
        more = _given(delay_seconds=delay_s, attributes=attributes, group=group)
        ids = [{"dedup_id": f"{group}.{body}"} if group is not None else {} for body in bodies]
        return self._send(queue, [{"body": body, **more, **own} for body, own in zip(bodies, ids, strict=True)])

    def send_once(self, queue: str, body: str, group: str, dedup_id: str | None) -> str:
        return self._send(queue, [_given(body=body, group=group, dedup_id=dedup_id)])[0]

    def receive(
        self, queue: str, most: int = 10, *, tag: str | None = None, wait_s: int = 0, lease_s: int | None = None
    ) -> list[Got]:
        body = {"max": most, "wait_seconds": wait_s, **_given(tag=tag, lease_seconds=lease_s)}
        return [
            Got(
                one["id"],
                one["handle"],
                one["body"],
                one["receive_count"],
                {name: value["value"] for name, value in one["attributes"].items() if name != "DLQ.sourceQueue"},
                one["sent_at_ms"],
                one["first_received_at_ms"],
            )
            for one in self.ask("POST", f"/queues/{queue}/receive", body)["messages"]
        ]

    def ack(self, queue: str, *handles: str, tag: str | None = None) -> None:
        self.ask("POST", f"/queues/{queue}/ack", {"handles": handles})

    def extend(self, queue: str, handle: str, lease_s: int) -> str:
        self.ask("POST", f"/queues/{queue}/extend", {"entries": [{"handle": handle, "lease_seconds": lease_s}]})
        return handle

    def release(self, queue: str, handle: str) -> None:
        self.ask("POST", f"/queues/{queue}/release", {"handles": [handle]})

    def redrive(self, queue: str) -> None:
        self.ask("POST", f"/queues/{queue}/redrive", {})

    def close(self) -> None:
        self._http.close()
