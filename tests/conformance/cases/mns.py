"""MNS over XML, for the shared cases. What MNS has no operation for is done natively."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.conformance.cases.client import PLAIN, TEXT, Counts, Got, QueueSpec, Refused
from tests.conformance.cases.native import NativeClient
from tests.conformance.mns.raw import NAMESPACE, Raw, Reply

_REASONS = {
    "QueueNotExist": "no_queue", "QueueAlreadyExist": "exists", "InvalidArgument": "invalid",
    "InvalidQueueName": "invalid",
    "QueueNameLengthError": "invalid", "InvalidRequestURL": "invalid", "ReceiptHandleError": "bad_handle",
}  # fmt: skip


def _element(name: str, value: object) -> str:
    return "" if value is None else f"<{name}>{escape(str(value), {chr(13): '&#13;'})}</{name}>"


class MnsClient:
    """See `QueueClient`. Its queues have priority; it has no FIFO queues, purges, releases and
    redrives of its own.
    """

    name = "mns"
    lacks = frozenset({"deduplication", "late handles", "needed groups"})

    def __init__(self, endpoint: str) -> None:
        self._raw = Raw(endpoint)
        self._native = NativeClient(endpoint)

    def _ask(self, method: str, target: str, body: str = "") -> Reply:
        reply = self._raw.ask(method, target, body)
        if reply.status < 400:
            return reply
        root = reply.root
        code = (
            root.findtext(f".//{NAMESPACE}ErrorCode")
            if root.tag != f"{NAMESPACE}Error"
            else root.findtext(f"{NAMESPACE}Code")
        )
        raise Refused(_REASONS.get(code or "", code or ""))

    def _path(self, queue: str, tag: str | None = None) -> str:
        return f"/queues/{quote(queue)}" + (f"@{tag}" if tag is not None else "")

    def create(self, queue: str, spec: QueueSpec = PLAIN) -> None:
        if spec.fifo or spec.dead is not None or queue.endswith(".fifo"):
            self._native.create(queue, spec)
            return
        parts = (
            ("VisibilityTimeout", spec.lease_s),
            ("DelaySeconds", spec.delay_s),
            ("MaximumMessageSize", spec.max_bytes),
        )
        self._ask("PUT", self._path(queue), f"<Queue>{''.join(_element(*part) for part in parts)}</Queue>")

    def set_lease(self, queue: str, lease_s: int) -> None:
        self._ask(
            "PUT", f"{self._path(queue)}?metaoverride=true", f"<Queue>{_element('VisibilityTimeout', lease_s)}</Queue>"
        )

    def delete(self, queue: str) -> None:
        self._ask("DELETE", self._path(queue))

    def purge(self, queue: str) -> None:
        self._native.purge(queue)

    def queues(self, prefix: str) -> list[str]:
        reply = self._raw.ask("GET", "/queues", headers={"x-mns-prefix": prefix})
        return [url.rpartition("/")[2] for url in reply.texts("Queue", "QueueURL")]

    def counts(self, queue: str, tag: str | None = None) -> Counts:
        reply = self._ask("GET", self._path(queue, tag))
        ready, leased, delayed = (
            int(reply.text(name)) for name in ("ActiveMessages", "InactiveMessages", "DelayMessages")
        )
        return Counts(ready, leased, delayed)

    def create_tag(self, queue: str, tag: str, kinds: tuple[str, ...] = ()) -> None:
        if kinds:
            self._native.create_tag(queue, tag, kinds)
        else:
            self._ask("PUT", self._path(queue, tag), "<Queue/>")

    def delete_tag(self, queue: str, tag: str) -> None:
        self._ask("DELETE", self._path(queue, tag))

    def send(
        self,
        queue: str,
        *bodies: str,
        delay_s: int | None = None,
        attributes: TEXT | None = None,
        group: str | None = None,
    ) -> list[str]:
        given = "".join(
            f"<PropertyValue>{_element('Name', name)}{_element('Value', value)}<Type>STRING</Type></PropertyValue>"
            for name, value in (attributes or {}).items()
        )
        more = _element("DelaySeconds", delay_s) + _element("MessageGroupId", group)
        more += f"<UserProperties>{given}</UserProperties>" if given else ""
        messages = [f"<Message>{_element('MessageBody', body)}{more}</Message>" for body in bodies]
        if len(messages) == 1:
            return [self._ask("POST", f"{self._path(queue)}/messages", messages[0]).text("MessageId")]
        sent: list[str] = []
        for at in range(0, len(messages), 16):
            body = f"<Messages>{''.join(messages[at : at + 16])}</Messages>"
            sent += self._ask("POST", f"{self._path(queue)}/messages", body).texts("Message", "MessageId")
        return sent

    def send_once(self, queue: str, body: str, group: str, dedup_id: str | None) -> str:
        raise NotImplementedError("MNS has no deduplication")

    def receive(
        self, queue: str, most: int = 10, *, tag: str | None = None, wait_s: int = 0, lease_s: int | None = None
    ) -> list[Got]:
        try:
            reply = self._ask("GET", f"{self._path(queue, tag)}/messages?numOfMessages={most}&waitseconds={wait_s}")
        except Refused as refused:
            if refused.reason == "MessageNotExist":
                return []
            raise
        return [self._got(queue, one, lease_s) for one in reply.root]

    def _got(self, queue: str, message: ElementTree.Element, lease_s: int | None) -> Got:
        found: dict[str, Any] = {part.tag.removeprefix(NAMESPACE): part.text or "" for part in message}
        handle = found["ReceiptHandle"]
        if lease_s is not None:  # a receive of MNS has no lease of its own
            handle = self.extend(queue, handle, lease_s)
        texts = {}
        for one in message.iterfind(f"{NAMESPACE}UserProperties/{NAMESPACE}PropertyValue"):
            name, value = one.findtext(f"{NAMESPACE}Name"), one.findtext(f"{NAMESPACE}Value")
            assert name is not None and value is not None
            texts[name] = value
        sent_ms, first_ms, count = (int(found[name]) for name in ("EnqueueTime", "FirstDequeueTime", "DequeueCount"))
        return Got(found["MessageId"], handle, found["MessageBody"], count, texts, sent_ms, first_ms)

    def ack(self, queue: str, *handles: str, tag: str | None = None) -> None:
        for at in range(0, len(handles), 16):
            some = "".join(_element("ReceiptHandle", handle) for handle in handles[at : at + 16])
            try:
                self._ask("DELETE", f"{self._path(queue)}/messages", f"<ReceiptHandles>{some}</ReceiptHandles>")
            except Refused as refused:
                if refused.reason != "MessageNotExist":
                    raise

    def extend(self, queue: str, handle: str, lease_s: int) -> str:
        target = f"{self._path(queue)}/messages?ReceiptHandle={quote(handle)}&VisibilityTimeout={lease_s}"
        return self._ask("PUT", target).text("ReceiptHandle")

    def release(self, queue: str, handle: str) -> None:
        self._native.release(queue, handle)

    def redrive(self, queue: str) -> None:
        self._native.redrive(queue)

    def close(self) -> None:
        self._raw.close()
        self._native.close()
