"""Amazon SQS through boto3, which is told to try everything once: what it repeats would be a send
of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
)

from tests.judge.history import UNTOLD, Result
from tests.outside.book import BROKEN, DONE, REFUSED, STATUSES, UNKNOWN, UNREACHED, Book, body_of
from tests.outside.door import Door, Leased, Letter, Trouble
from tests.outside.native import PATIENCE_S

_MAKING = threading.Lock()
_SESSION = boto3.session.Session(aws_access_key_id="outside", aws_secret_access_key="outside", region_name="us-east-1")
_COUNTS = {
    "ready": "ApproximateNumberOfMessages",
    "leased": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
}


def outcome_of(error: ClientError) -> str:
    """What an error's status says of the request."""
    status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
    if status < 500:
        return REFUSED
    return UNKNOWN if status == 503 else BROKEN


class Amazon(Door):
    """A boto3 client; not for several threads."""

    name = "sqs"

    def __init__(self, book: Book, who: str, port: int) -> None:
        super().__init__(book, who)
        self._base = f"http://127.0.0.1:{port}"
        config = Config(
            retries={"total_max_attempts": 1}, connect_timeout=3, read_timeout=PATIENCE_S + 3, max_pool_connections=1
        )
        with _MAKING:  # a session is not for several threads
            self._sqs: Any = _SESSION.client("sqs", endpoint_url=self._base, config=config)

    def url(self, place: str) -> str:
        """The queue's URL."""
        return f"{self._base}/000000000000/{place}"

    def _do(self, call: Callable[..., Any], **arguments: Any) -> Any:
        try:
            return call(**arguments)
        except ClientError as error:
            row = error.response["Error"]
            status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
            raise Trouble(outcome_of(error), status, f"{row.get('Code')}: {row.get('Message')}") from None
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise Trouble(UNREACHED, 0, type(error).__name__) from None
        except (BotoCoreError, HTTPClientError) as error:
            raise Trouble(UNKNOWN, 0, f"{type(error).__name__}: {error}") from None

    def _send(self, queue: str, letters: Sequence[Letter]) -> list[tuple[str, str]]:
        if len(letters) == 1:
            answer = self._do(self._sqs.send_message, QueueUrl=self.url(queue), **_asked(letters[0]))
            return [(DONE, answer["MessageId"])]
        entries = [{"Id": str(i), **_asked(letter)} for i, letter in enumerate(letters)]
        answer = self._do(self._sqs.send_message_batch, QueueUrl=self.url(queue), Entries=entries)
        rows = {row["Id"]: (DONE, row["MessageId"]) for row in answer.get("Successful", ())}
        rows |= {row["Id"]: (_failed(row), "") for row in answer.get("Failed", ())}
        return [rows.get(str(i), (BROKEN, "")) for i in range(len(letters))]

    def _receive(self, place: str, limit: int, wait: float, lease: float) -> list[Leased]:
        answer = self._do(
            self._sqs.receive_message,
            QueueUrl=self.url(place),
            MaxNumberOfMessages=min(limit, 10),
            WaitTimeSeconds=int(wait),
            VisibilityTimeout=int(lease),
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return [_leased(row) for row in answer.get("Messages", ())]

    def _settle(self, place: str, handles: Sequence[str]) -> list[Result]:
        if len(handles) == 1:
            self._do(self._sqs.delete_message, QueueUrl=self.url(place), ReceiptHandle=handles[0])
            return [Result("ok")]
        entries = [{"Id": str(i), "ReceiptHandle": handle} for i, handle in enumerate(handles)]
        answer = self._do(self._sqs.delete_message_batch, QueueUrl=self.url(place), Entries=entries)
        rows = {row["Id"]: DONE for row in answer.get("Successful", ())}
        rows |= {row["Id"]: _failed(row) for row in answer.get("Failed", ())}
        return [Result(STATUSES[rows.get(str(i), BROKEN)]) for i in range(len(handles))]

    def _extend(self, place: str, handle: str, lease: float) -> Result:
        self._do(
            self._sqs.change_message_visibility,
            QueueUrl=self.url(place),
            ReceiptHandle=handle,
            VisibilityTimeout=int(lease),
        )
        return Result("ok")

    def _counts(self, place: str) -> dict[str, int]:
        answer = self._do(self._sqs.get_queue_attributes, QueueUrl=self.url(place), AttributeNames=["All"])[
            "Attributes"
        ]
        return {ours: int(answer[theirs]) for ours, theirs in _COUNTS.items()}

    def _create(self, queue: str, settings: dict[str, Any]) -> int:
        self._do(self._sqs.create_queue, QueueName=queue, Attributes=settings)
        return 200

    def _delete(self, queue: str) -> None:
        self._do(self._sqs.delete_queue, QueueUrl=self.url(queue))

    def _purge(self, queue: str) -> None:
        self._do(self._sqs.purge_queue, QueueUrl=self.url(queue))


def _asked(letter: Letter) -> dict[str, Any]:
    row: dict[str, Any] = {"MessageBody": body_of(letter.token)}
    if letter.delay:
        row["DelaySeconds"] = int(letter.delay)
    if letter.group:
        row["MessageGroupId"] = letter.group
    if letter.dedup:
        row["MessageDeduplicationId"] = letter.dedup
    if letter.kind:
        row["MessageAttributes"] = {"kind": {"DataType": "String", "StringValue": letter.kind}}
    return row


def _leased(row: dict[str, Any]) -> Leased:
    return Leased.of(
        row["Body"],
        id=row["MessageId"],
        handle=row["ReceiptHandle"],
        count=int(row["Attributes"]["ApproximateReceiveCount"]),
        group=row["Attributes"].get("MessageGroupId", ""),
        sequence=int(row["Attributes"].get("SequenceNumber", UNTOLD)),
        kind=row.get("MessageAttributes", {}).get("kind", {}).get("StringValue", ""),
    )


def _failed(row: dict[str, Any]) -> str:
    """An entry that failed: by its sender's fault it was not done, else nobody knows."""
    return REFUSED if row.get("SenderFault") else UNKNOWN
