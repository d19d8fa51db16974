"""Each operation of each dialect, asked by somebody with a key, without one, or with one that
counts no more; and what became of it.
"""

from __future__ import annotations

import hmac
import itertools
from datetime import UTC, datetime
from typing import Any

import httpx
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import get_session

from facade.dialects.native.operations import OPERATIONS
from facade.dialects.rocketmq.actions import ACTIONS
from facade.dialects.rocketmq.messages.recall import RecallHandle
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code
from tests.conformance.emq.galaxy import Failed, Refused
from tests.conformance.emq.test_permissions import METHODS
from tests.conformance.emq.test_permissions import NO_QUEUE as EMQ_NO_QUEUE
from tests.conformance.emq.thrift_client import ThriftClient
from tests.conformance.mns import test_permissions as mns
from tests.conformance.mns.raw import Raw, signed
from tests.conformance.rights.table import Outcome
from tests.conformance.rocketmq import raw as rocketmq

# Who is wrong too often is refused without a look at the secret (429): as unknown as before, and
# nobody else is.
_HANDLE = "dHf8AQGiDV0z-Xf6qGRQAbqZ"
_ID = "37a22984-211a-8000-8000-0000001bedf1"
_new = itertools.count(1)
_PARTS = {
    "tag": "none",
    "message": _ID,
    "principal": "somebody",
    "user": "somebody",
    "alert": "a1f2e3d4c5b60",
    "task": "0" * 16,
    "transaction": "0" * 32,
}
_BODIES: dict[str, Any] = {
    "send": {"messages": [{"body": "x"}]},
    "receive": {"max": 1},
    "set_redrive_policy": {"dead_letter_queue": "dead", "max_receive_count": 3},
    "redrive": {},
    "check": {"max": 1, "wait_seconds": 0},
    "add_alert": {"subject": "send_request", "measurement": "count", "threshold": 1000},
    "prepare": {"producer_group": "group", "messages": [{"body": "x"}]},
    "create_tag": {"name": "t"},
}
_QUERIES = {"statistics": {"day": "2026-01-01"}, "query_metric": {"metric": "send_request.count"}}
_SQS_OUTCOMES = {
    "AccessDenied": Outcome.DENIED,
    "AWS.SimpleQueueService.NonExistentQueue": Outcome.HIDDEN,
    **dict.fromkeys(("InvalidClientTokenId", "MissingAuthenticationToken", "SignatureDoesNotMatch", "RequestThrottled"),
                    Outcome.UNKNOWN),
}  # fmt: skip


class Credentials:
    """A key id and its secret; anonymous = without either."""

    def __init__(self, key_id: str, secret: str, *, anonymous: bool = False) -> None:
        self.key_id = key_id
        self.secret = secret
        self.anonymous = anonymous


class Native:
    """The native API, by the paths and the examples of its own operations."""

    def __init__(self, endpoint: str) -> None:
        self._http = httpx.Client(base_url=endpoint, timeout=60)
        self._operations = {one.name: one for one in OPERATIONS}

    def close(self) -> None:
        self._http.close()

    def ask(self, by: Credentials, name: str, queue: str) -> Outcome:
        operation = self._operations[name]
        path = operation.path.format(queue=queue, key=f"key{next(_new)}", producer_group=f"group-{by.key_id}", **_PARTS)
        body = _BODIES.get(name, operation.example.request)
        if name == "create_queue":
            body = {"name": f"native{next(_new)}", "partitions": 1}
        elif name == "put_definitions":
            body = {"queues": [{"name": f"native{next(_new)}", "partitions": 1}]}
        elif name == "create_key":
            body = {"key_id": f"key{next(_new)}", "principal": "somebody"}
        elif name == "copy_queue":
            body = {"target": f"copy{next(_new)}"}
        auth = None if by.anonymous else (by.key_id, by.secret)
        reply = self._http.request(operation.method, path, json=body, params=_QUERIES.get(name), auth=auth)
        code = reply.json().get("code") if reply.status_code >= 400 else ""
        assert reply.status_code < 500, (name, reply.text)
        known = {"not_authorised": Outcome.DENIED, "queue_not_found": Outcome.HIDDEN}
        return (
            Outcome.UNKNOWN if code in ("not_authenticated", "too_many_attempts") else known.get(code, Outcome.LET_IN)
        )


class Sqs:
    """SQS by botocore."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._session = get_session()
        self._clients: dict[str, Any] = {}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def _client(self, by: Credentials) -> Any:
        if by.secret not in self._clients:
            config = Config(retries={"total_max_attempts": 1}, signature_version=UNSIGNED if by.anonymous else None)
            self._clients[by.secret] = self._session.create_client(
                "sqs",
                "us-east-1",
                endpoint_url=self._endpoint,
                aws_access_key_id=by.key_id,
                aws_secret_access_key=by.secret,
                config=config,
            )
        return self._clients[by.secret]

    def ask(self, by: Credentials, name: str, queue: str) -> Outcome:
        account, _, queue = queue.rpartition(".")
        account = account or "000000000000"
        url = f"{self._endpoint}/{account}/{queue}"
        arn = f"arn:aws:sqs:us-east-1:{account}:{queue}"
        entry = {"Id": "a", "ReceiptHandle": _HANDLE}
        more: dict[str, dict[str, Any]] = {
            "CreateQueue": {"QueueName": f"sqs{next(_new)}"},
            "ListQueues": {},
            "GetQueueUrl": {"QueueName": queue, "QueueOwnerAWSAccountId": account},
            "GetQueueAttributes": {"QueueUrl": url, "AttributeNames": ["All"]},
            "SetQueueAttributes": {"QueueUrl": url, "Attributes": {"DelaySeconds": "0"}},
            "SendMessage": {"QueueUrl": url, "MessageBody": "x"},
            "SendMessageBatch": {"QueueUrl": url, "Entries": [{"Id": "a", "MessageBody": "x"}]},
            "DeleteMessage": {"QueueUrl": url, "ReceiptHandle": _HANDLE},
            "DeleteMessageBatch": {"QueueUrl": url, "Entries": [entry]},
            "ChangeMessageVisibility": {"QueueUrl": url, "ReceiptHandle": _HANDLE, "VisibilityTimeout": 5},
            "ChangeMessageVisibilityBatch": {"QueueUrl": url, "Entries": [{**entry, "VisibilityTimeout": 5}]},
            "AddPermission": {
                "QueueUrl": url,
                "Label": f"l{next(_new)}",
                "AWSAccountIds": ["nobody"],
                "Actions": ["SendMessage"],
            },
            "RemovePermission": {"QueueUrl": url, "Label": "none"},
            "TagQueue": {"QueueUrl": url, "Tags": {"a": "b"}},
            "UntagQueue": {"QueueUrl": url, "TagKeys": ["a"]},
            "StartMessageMoveTask": {"SourceArn": arn},
            "ListMessageMoveTasks": {"SourceArn": arn},
            "CancelMessageMoveTask": {"TaskHandle": "e30="},
        }
        method = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")
        try:
            getattr(self._client(by), method)(**more.get(name, {"QueueUrl": url}))
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
                raise
            if code == "ResourceNotFoundException" and name in ("StartMessageMoveTask", "ListMessageMoveTasks"):
                return Outcome.HIDDEN  # AWS's word for a source that does not exist
            return _SQS_OUTCOMES.get(code, Outcome.LET_IN)
        return Outcome.LET_IN


class Emq:
    """EMQ over Thrift."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint

    def close(self) -> None:
        """Nothing is open."""

    def ask(self, by: Credentials, name: str, queue: str) -> Outcome:
        client = ThriftClient(self._endpoint, "compact", by.key_id, "" if by.anonymous else by.secret)
        request = METHODS[name][1]
        if name == "setQueueRedrivePolicy":
            request = {"redrivePolicy": {"dlqName": "shop/dead", "maxReceiveTime": 3}}
        try:
            answer = client.call(name, queueName=queue, **request)
        except Refused as error:
            return {13: Outcome.DENIED, EMQ_NO_QUEUE: Outcome.HIDDEN}.get(error.code or 0, Outcome.LET_IN)
        except Failed as error:
            if not str(error).startswith(("401 ", "429 ")):
                raise
            return Outcome.UNKNOWN
        finally:
            client.close()
        failed = (answer or {}).get("failed", ()) if isinstance(answer, dict) else ()
        codes = {entry["reason"]["errorCode"] for entry in failed}
        return Outcome.DENIED if 13 in codes else Outcome.HIDDEN if EMQ_NO_QUEUE in codes else Outcome.LET_IN


class Mns:
    """MNS over XML."""

    def __init__(self, endpoint: str) -> None:
        self._raw = Raw(endpoint)

    def close(self) -> None:
        """Nothing is open."""

    def ask(self, by: Credentials, name: str, queue: str) -> Outcome:
        _, method, rest, body = mns.OPERATIONS[name]
        target = f"/queues/{queue}{rest.replace('@none', '@gone').replace('@more', f'@more{next(_new)}')}"
        headers = signed(by.key_id, by.secret, method, target, {})
        if by.anonymous:
            del headers["Authorization"]
        reply = self._raw.ask(method, target, body, headers)
        assert reply.status < 500, reply.body
        codes = {
            b"<Code>AccessDenied<": Outcome.DENIED,
            b"<Code>QueueNotExist<": Outcome.HIDDEN,
            **dict.fromkeys((b"<Code>InvalidAccessKeyId<", b"<Code>SignatureDoesNotMatch<"), Outcome.UNKNOWN),
            **dict.fromkeys((b"<Code>MissingAuthorizationHeader<", b"<Code>TooManyRequests<"), Outcome.UNKNOWN),
        }
        return next((outcome for code, outcome in codes.items() if code in reply.body), Outcome.LET_IN)


class Rocketmq:
    """RocketMQ over gRPC."""

    def __init__(self, endpoints: str) -> None:
        self._raw = rocketmq.Raw(endpoints)

    def close(self) -> None:
        self._raw.channel.close()

    def ask(self, by: Credentials, name: str, queue: str) -> Outcome:
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        made = hmac.new(by.secret.encode(), time.encode(), "sha1").hexdigest()
        words = f"MQv2-HMAC-SHA1 Credential={by.key_id}/, SignedHeaders=x-mq-date-time, Signature={made}"
        metadata = [*rocketmq.CLIENT, ("x-mq-date-time", time)] + ([] if by.anonymous else [("authorization", words)])
        if name == "ReceiveMessage":
            codes = [
                one.status.code for one in self._raw.received(rocketmq.receiving(queue, "default"), metadata=metadata)
            ]
            code = codes[0] if codes else Code.OK
        else:
            code = self._raw.ask(name, _request(name, queue), metadata).status.code
        known = {Code.FORBIDDEN: Outcome.DENIED, Code.TOPIC_NOT_FOUND: Outcome.HIDDEN}
        known |= dict.fromkeys((Code.UNAUTHORIZED, Code.TOO_MANY_REQUESTS), Outcome.UNKNOWN)
        assert code < 50_000, (name, code)
        return known.get(code, Outcome.LET_IN)


def _request(name: str, queue: str) -> Any:
    topic, group = pb.Resource(name=queue), pb.Resource(name="default")
    more: dict[str, Any] = {
        "SendMessage": rocketmq.sending(queue, b"x"),
        "QueryRoute": pb.QueryRouteRequest(topic=topic),
        "QueryAssignment": pb.QueryAssignmentRequest(topic=topic, group=group),
        "AckMessage": pb.AckMessageRequest(
            topic=topic, group=group, entries=[pb.AckMessageEntry(message_id="i", receipt_handle=_HANDLE)]
        ),
        "ChangeInvisibleDuration": pb.ChangeInvisibleDurationRequest(topic=topic, group=group, receipt_handle=_HANDLE),
        "ForwardMessageToDeadLetterQueue": pb.ForwardMessageToDeadLetterQueueRequest(
            topic=topic, group=group, receipt_handle=_HANDLE
        ),
        "RecallMessage": pb.RecallMessageRequest(
            topic=topic, recall_handle=RecallHandle(queue, 2**42, _ID, "m").text()
        ),
    }
    return more.get(name) or ACTIONS[name].request()
