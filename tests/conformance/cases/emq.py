"""EMQ over Thrift, for the shared cases: one client for each protocol."""

from __future__ import annotations

from typing import Any

import httpx

from schemas.vocabulary import SOURCE_QUEUE_ATTRIBUTE
from tests.conformance.cases.client import PLAIN, TEXT, Counts, Got, QueueSpec, Refused
from tests.conformance.emq import galaxy
from tests.conformance.emq.thrift_client import ThriftClient

_REASONS = {
    5: "invalid", 6: "no_queue", 4: "exists", 2: "invalid", 34: "invalid", 35: "invalid", 12: "invalid",
    9: "bad_handle", 11: "bad_handle",
}  # fmt: skip


class EmqClient:
    """See `QueueClient`. A FIFO queue is a topic queue; it has no deduplication."""

    name = "emq"
    lacks = frozenset(
        {"deduplication", "equal queues", "filters of several values", "needed groups", "several of a group"}
    )
    protocol = "binary"

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._client = ThriftClient(endpoint, self.protocol)

    def _call(self, method: str, **request: Any) -> Any:
        try:
            return self._client.call(method, **{name: value for name, value in request.items() if value is not None})
        except galaxy.Refused as error:
            raise Refused(_REASONS.get(error.code or 0, error.msg)) from error

    def create(self, queue: str, spec: QueueSpec = PLAIN) -> None:
        attribute = {
            "invisibilitySeconds": spec.lease_s,
            "delaySeconds": spec.delay_s,
            "messageMaximumBytes": spec.max_bytes,
        }
        policy = None if spec.dead is None else {"dlqName": spec.dead[0], "maxReceiveTime": spec.dead[1]}
        self._call(
            "createQueue",
            queueName=queue,
            queueAttribute={name: value for name, value in attribute.items() if value is not None},
            topicQueue=spec.fifo or None,
            redrivePolicy=policy,
        )

    def set_lease(self, queue: str, lease_s: int) -> None:
        self._call("setQueueAttribute", queueName=queue, queueAttribute={"invisibilitySeconds": lease_s})

    def delete(self, queue: str) -> None:
        self._call("deleteQueue", queueName=queue)

    def purge(self, queue: str) -> None:
        self._call("purgeQueue", queueName=queue)

    def queues(self, prefix: str) -> list[str]:
        return [name.rpartition("/")[2] for name in self._call("listQueue", queueNamePrefix=prefix)["queueName"]]

    def counts(self, queue: str, tag: str | None = None) -> Counts:
        state = self._call("getTagInfo", queueName=queue, tagName=tag)["tagState"]
        ready, leased = state["approximateAvailableMessageNumber"], state["approximateInvisibilityMessageNumber"]
        return Counts(ready, leased, state["approximateMessageNumber"] - ready - leased)

    def create_tag(self, queue: str, tag: str, kinds: tuple[str, ...] = ()) -> None:
        values = [{"type": "string", "stringValue": kind} for kind in kinds]
        assert len(values) <= 1, "EMQ's filters name an attribute once"
        one = {"attributeName": "kind", "attributeValue": values[0]} if values else {}
        self._call("createTag", queueName=queue, tagName=tag, **one)

    def delete_tag(self, queue: str, tag: str) -> None:
        self._call("deleteTag", queueName=queue, tagName=tag)

    def send(
        self,
        queue: str,
        *bodies: str,
        delay_s: int | None = None,
        attributes: TEXT | None = None,
        group: str | None = None,
    ) -> list[str]:
        given = {name: {"type": "string", "stringValue": text} for name, text in (attributes or {}).items()}
        more = {"delaySeconds": delay_s, "messageAttributes": given or None}
        if len(bodies) == 1:
            return [self._call("sendMessage", queueName=queue, messageBody=bodies[0], topic=group, **more)["messageID"]]
        own = {name: value for name, value in more.items() if value is not None}
        entries = [{"entryId": str(number), "messageBody": body, **own} for number, body in enumerate(bodies)]
        told = self._call("sendMessageBatch", queueName=queue, sendMessageBatchRequestEntryList=entries, topic=group)
        if "failed" in told:
            raise Refused(_REASONS.get(told["failed"][-1]["reason"]["errorCode"], "failed"))
        return [entry["messageID"] for entry in told["successful"]]

    def receive(
        self, queue: str, most: int = 10, *, tag: str | None = None, wait_s: int = 0, lease_s: int | None = None
    ) -> list[Got]:
        asked = {
            "queueName": queue,
            "maxReceiveMessageNumber": most,
            "maxReceiveMessageWaitSeconds": wait_s,
            "tagName": tag,
        }
        try:
            got = self._call("receiveMessage", **asked)
        except Refused as refused:
            # EMQ has no code of its own for a tag that is not there.
            raise Refused(
                "no_queue" if tag is not None and "tag" in str(refused.__cause__) else refused.reason
            ) from None
        found = []
        for one in got:
            if lease_s is not None:  # a receive of EMQ has no lease of its own
                self.extend(queue, one["receiptHandle"], lease_s)
            own = {
                name: value
                for name, value in one.get("messageAttributes", {}).items()
                if name != SOURCE_QUEUE_ATTRIBUTE
            }
            texts = {name: value["stringValue"] for name, value in own.items() if "stringValue" in value}
            told = one["attributes"]
            count, sent_ms, first_ms = (
                int(told[name]) for name in ("receiveCount", "sendTimestamp", "firstReceiveTimestamp")
            )
            found.append(
                Got(one["messageID"], one["receiptHandle"], one["messageBody"], count, texts, sent_ms, first_ms)
            )
        return found

    def ack(self, queue: str, *handles: str, tag: str | None = None) -> None:
        entries = [{"receiptHandle": handle} for handle in handles]
        told = self._call("deleteMessageBatch", queueName=queue, deleteMessageBatchRequestEntryList=entries)
        if "failed" in told:
            raise Refused(_REASONS.get(told["failed"][0]["reason"]["errorCode"], "failed"))

    def extend(self, queue: str, handle: str, lease_s: int) -> str:
        self._call("changeMessageVisibilitySeconds", queueName=queue, receiptHandle=handle, invisibilitySeconds=lease_s)
        return handle

    def release(self, queue: str, handle: str) -> None:
        self.extend(queue, handle, 0)

    def redrive(self, queue: str) -> None:
        httpx.post(f"{self._endpoint}/v1/queues/{queue}/redrive").raise_for_status()  # EMQ has none: natively

    def send_once(self, queue: str, body: str, group: str, dedup_id: str | None) -> str:
        raise NotImplementedError("EMQ has no deduplication")

    def close(self) -> None:
        self._client.close()


class EmqCompactClient(EmqClient):
    name = "emq-compact"
    protocol = "compact"


class EmqJsonClient(EmqClient):
    name = "emq-json"
    protocol = "json"
