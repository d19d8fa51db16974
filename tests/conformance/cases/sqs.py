"""The SQS dialect for the cases, in both protocols: boto3 speaks JSON, and forms and XML are made
here by hand.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import boto3
import httpx
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.conformance.cases.client import PLAIN, TEXT, Counts, Got, QueueSpec, Refused

REASONS = {
    "AWS.SimpleQueueService.NonExistentQueue": "no_queue",
    "QueueAlreadyExists": "exists",
    "InvalidParameterValue": "invalid",
    "InvalidAttributeValue": "invalid",
    "MissingParameter": "invalid",
    "ReceiptHandleIsInvalid": "bad_handle",
}


class SqsClient(ABC):
    """What both protocols have in common: `_ask` takes and gives what the service model says."""

    name: str

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    @abstractmethod
    def _ask(self, action: str, **given: Any) -> dict[str, Any]: ...

    @abstractmethod
    def close(self) -> None: ...

    def _url(self, queue: str, tag: str | None = None) -> str:
        return f"{self._endpoint}/000000000000/{queue}" + (f"@{tag}" if tag else "")

    def create(self, queue: str, spec: QueueSpec = PLAIN) -> None:
        policy = spec.dead and json.dumps({"deadLetterTargetArn": _arn(spec.dead[0]), "maxReceiveCount": spec.dead[1]})
        wanted = {
            "FifoQueue": "true" if spec.fifo else None,
            "ContentBasedDeduplication": "true" if spec.content_dedup else None,
            "VisibilityTimeout": spec.lease_s,
            "DelaySeconds": spec.delay_s,
            "MaximumMessageSize": spec.max_bytes,
            "RedrivePolicy": policy,
        }
        self._ask(
            "CreateQueue",
            QueueName=queue,
            Attributes={name: str(value) for name, value in wanted.items() if value is not None},
        )

    def set_lease(self, queue: str, lease_s: int) -> None:
        self._ask("SetQueueAttributes", QueueUrl=self._url(queue), Attributes={"VisibilityTimeout": str(lease_s)})

    def delete(self, queue: str) -> None:
        self._ask("DeleteQueue", QueueUrl=self._url(queue))

    def purge(self, queue: str) -> None:
        self._ask("PurgeQueue", QueueUrl=self._url(queue))

    def queues(self, prefix: str) -> list[str]:
        return [url.rpartition("/")[2] for url in self._ask("ListQueues", QueueNamePrefix=prefix).get("QueueUrls", ())]

    def counts(self, queue: str, tag: str | None = None) -> Counts:
        found = self._ask("GetQueueAttributes", QueueUrl=self._url(queue, tag), AttributeNames=["All"])["Attributes"]
        return Counts(*(int(found[f"ApproximateNumberOfMessages{state}"]) for state in ("", "NotVisible", "Delayed")))

    def create_tag(self, queue: str, tag: str, kinds: tuple[str, ...] = ()) -> None:
        policy = {"FilterPolicy": json.dumps({"kind": list(kinds)})} if kinds else {}
        self._ask("CreateQueue", QueueName=f"{queue}@{tag}", Attributes=policy)

    def delete_tag(self, queue: str, tag: str) -> None:
        self._ask("DeleteQueue", QueueUrl=self._url(queue, tag))

    def send(
        self,
        queue: str,
        *bodies: str,
        delay_s: int | None = None,
        attributes: TEXT | None = None,
        group: str | None = None,
    ) -> list[str]:
        more: dict[str, Any] = {} if delay_s is None else {"DelaySeconds": delay_s}
        if attributes:
            more["MessageAttributes"] = {
                name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
            }
        entries = [{"MessageBody": body, **more, **_of_group(group, f"{group}.{body}")} for body in bodies]
        if len(entries) == 1:
            return [self._ask("SendMessage", QueueUrl=self._url(queue), **entries[0])["MessageId"]]
        numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
        found = self._ask("SendMessageBatch", QueueUrl=self._url(queue), Entries=numbered)
        _refuse_failed(found)
        return [one["MessageId"] for one in found["Successful"]]

    def send_once(self, queue: str, body: str, group: str, dedup_id: str | None) -> str:
        return str(
            self._ask("SendMessage", QueueUrl=self._url(queue), MessageBody=body, **_of_group(group, dedup_id))[
                "MessageId"
            ]
        )

    def receive(
        self, queue: str, most: int = 10, *, tag: str | None = None, wait_s: int = 0, lease_s: int | None = None
    ) -> list[Got]:
        found = self._ask(
            "ReceiveMessage",
            QueueUrl=self._url(queue, tag),
            MaxNumberOfMessages=most,
            WaitTimeSeconds=wait_s,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
            **({} if lease_s is None else {"VisibilityTimeout": lease_s}),
        )
        return [
            Got(
                one["MessageId"],
                one["ReceiptHandle"],
                one["Body"],
                int(one["Attributes"]["ApproximateReceiveCount"]),
                {name: value["StringValue"] for name, value in one.get("MessageAttributes", {}).items()},
                int(one["Attributes"]["SentTimestamp"]),
                int(one["Attributes"]["ApproximateFirstReceiveTimestamp"]),
            )
            for one in found.get("Messages", ())
        ]

    def ack(self, queue: str, *handles: str, tag: str | None = None) -> None:
        if len(handles) == 1:
            self._ask("DeleteMessage", QueueUrl=self._url(queue, tag), ReceiptHandle=handles[0])
            return
        entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles)]
        _refuse_failed(self._ask("DeleteMessageBatch", QueueUrl=self._url(queue, tag), Entries=entries))

    def extend(self, queue: str, handle: str, lease_s: int) -> str:
        self._ask("ChangeMessageVisibility", QueueUrl=self._url(queue), ReceiptHandle=handle, VisibilityTimeout=lease_s)
        return handle

    def release(self, queue: str, handle: str) -> None:
        self.extend(queue, handle, 0)

    def redrive(self, queue: str) -> None:
        self._ask("StartMessageMoveTask", SourceArn=_arn(queue))


def _arn(queue: str) -> str:
    return f"arn:aws:sqs:us-east-1:000000000000:{queue}"


def _of_group(group: str | None, dedup_id: str | None) -> dict[str, str]:
    if group is None:
        return {}
    return {"MessageGroupId": group} | ({} if dedup_id is None else {"MessageDeduplicationId": dedup_id})


def _refuse_failed(found: dict[str, Any]) -> None:
    for one in found.get("Failed", ()):
        raise Refused(REASONS.get(one["Code"], one["Code"]))


class JsonClient(SqsClient):
    """AWS JSON, by boto3."""

    name = "sqs-json"
    lacks: frozenset[str] = frozenset()

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        config = Config(retries={"total_max_attempts": 1}, read_timeout=30)
        keys = {"aws_access_key_id": "shop", "aws_secret_access_key": "not-looked-at"}
        self._boto = boto3.client("sqs", endpoint_url=endpoint, region_name="us-east-1", config=config, **keys)

    def _ask(self, action: str, **given: Any) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._boto._make_api_call(action, given)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            raise Refused(REASONS.get(code, code)) from None
        return found

    def close(self) -> None:
        self._boto.close()


# Lists and maps of the query protocol: the member's name in JSON -> the element's in a form or in
# XML.
_LISTS = {"AttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName", "QueueUrls": "QueueUrl"}
_MAPS = {"Attributes": "Attribute", "MessageAttributes": "MessageAttribute"}


class QueryClient(SqsClient):
    """The query protocol."""

    name = "sqs-query"
    lacks: frozenset[str] = frozenset()

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self._http = httpx.Client(base_url=endpoint, timeout=30)

    def _ask(self, action: str, **given: Any) -> dict[str, Any]:
        answer = self._http.post("/", data={"Action": action, "Version": "2012-11-05", **dict(_form(action, given))})
        root = ElementTree.fromstring(answer.text)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        if answer.is_success:
            result = root.find(f"{action}Result")
            return {} if result is None else _members(result)
        code = root.findtext("Error/Code") or answer.text
        raise Refused(REASONS.get(code, code))

    def close(self) -> None:
        self._http.close()


def _form(action: str, given: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in given.items():
        if name == "Entries":
            for number, entry in enumerate(value, 1):
                yield from _form(action, entry, f"{action}RequestEntry.{number}.")
        elif isinstance(value, list):
            yield from ((f"{prefix}{_LISTS[name]}.{number}", one) for number, one in enumerate(value, 1))
        elif name in _MAPS:
            for number, (key, held) in enumerate(value.items(), 1):
                at = f"{prefix}{_MAPS[name]}.{number}."
                yield f"{at}Name", key
                yield from _form(action, held, f"{at}Value.") if isinstance(held, dict) else [(f"{at}Value", held)]
        else:
            yield f"{prefix}{name}", str(value)


def _members(element: ElementTree.Element) -> dict[str, Any]:
    """The element as JSON has it."""
    found: dict[str, Any] = {}
    for child in element:
        value: Any = _members(child) if len(child) else child.text or ""
        if child.tag in _MAPS.values():
            found.setdefault(f"{child.tag}s", {})[value["Name"]] = value["Value"]
        elif child.tag == "Message" and len(child):
            found.setdefault("Messages", []).append(value)
        elif child.tag == "QueueUrl" and element.tag == "ListQueuesResult":
            found.setdefault("QueueUrls", []).append(value)
        elif child.tag.endswith("ResultEntry"):
            found.setdefault("Successful", []).append(value)
        elif child.tag == "BatchResultErrorEntry":
            found.setdefault("Failed", []).append(value)
        else:
            found[child.tag] = value
    return found
