"""Every method, every range and every error code of EMQ, as rows of requests.

A text that begins with `@` stands for something that the stage has, or makes anew for each request
(`test_rows.Stage`). A batch whose entries have all failed counts as refused with the code of the
first. What takes more than a request is in the other tests of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from facade.dialects.emq.wire.errors import ErrorCode

TEXT: Final = {"type": "string", "stringValue": "x"}
BINARY: Final = {"type": "binary.Raw", "binaryValue": b"\x00\xff"}


class Row(NamedTuple):
    """A request; `code` None = it is answered."""

    method: str
    request: Any
    code: int | None = None
    about: str = ""


class Range(NamedTuple):
    """A number that a request has: both ends are answered with `inside`, what `wrong` has is
    refused with its code.
    """

    method: str
    about: str
    low: int
    high: int
    request: Callable[[int], Any]
    wrong: Mapping[int, int]
    inside: int | None = None


def _of(method: str, about: str, low: int, high: int, request: Callable[[int], Any]) -> Range:
    return Range(method, about, low, high, request, {low - 1: 2, high + 1: 2})


def _count(
    method: str, about: str, high: int, request: Callable[[int], Any], inside: int | None = None, none: int = 35
) -> Range:
    return Range(method, about, 1, high, request, {0: none, high + 1: 2}, inside)


def _attribute(field: str, low: int, high: int) -> Range:
    return _of(
        "setQueueAttribute", field, low, high, lambda n: {"queueName": "@settings", "queueAttribute": {field: n}}
    )


def _batch(field: str, make: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda n: {"queueName": "@queue", field: [make(number) for number in range(n)]}


def _sent(field: str, low: int, high: int) -> list[Range]:
    single = _of("sendMessage", field, low, high, lambda n: {"queueName": "@levels", "messageBody": "m", field: n})
    entry = _of(
        "sendMessageBatch", field, low, high,
        lambda n: {"queueName": "@levels", "sendMessageBatchRequestEntryList": [{"entryId": "1", "messageBody": "m",
                                                                                 field: n}]},
    )  # fmt: skip
    return [single, entry]


def _user(field: str, high: int) -> Range:
    quota: Callable[[int], Any] = lambda n: {"queueNumber": n} if field == "queueNumber" else {"throughput": {field: n}}  # noqa: E731
    return _of("setUserQuota", field, 0, high, lambda n: {"developerId": "somebody", "userQuota": quota(n)})


def _peeked(field: str, low: int, high: int) -> Range:
    span: Callable[[int], Any] = lambda n: {"partitionTimeIntervalAndMaxNum": {"partitionId": 0, field: n}}  # noqa: E731
    return _of("peekMessage", field, low, high, lambda n: {"queueName": "@queue", "peekMessageArg": span(n)})


RANGES: Final = [
    _attribute("delaySeconds", 0, 900),
    _attribute("invisibilitySeconds", 0, 43_200),
    _attribute("receiveMessageWaitSeconds", 0, 20),
    _attribute("receiveMessageMaximumNumber", 1, 100),
    _attribute("messageRetentionSeconds", 60, 1_209_600),
    _attribute("messageMaximumBytes", 1, 262_144),
    _of("setQueueQuota", "readQps", 0, 100_000, lambda n: {"queueName": "@settings",
                                                           "queueQuota": {"throughput": {"readQps": n}}}),
    _of("setQueueQuota", "writeQps", 0, 100_000, lambda n: {"queueName": "@settings",
                                                            "queueQuota": {"throughput": {"writeQps": n}}}),
    _of(
        "setQueueRedrivePolicy", "maxReceiveTime", 1, 100,
        lambda n: {"queueName": "@source", "redrivePolicy": {"dlqName": "@dead", "maxReceiveTime": n}},
    ),
    _of("setPermission", "permission", 0, 11, lambda n: {"queueName": "@queue", "developerId": "somebody",
                                                         "permission": n}),
    _of("createTag", "readQPSQuota", 0, 100_000, lambda n: {"queueName": "@tags", "tagName": "@tag",
                                                            "readQPSQuota": n}),
    _count(
        "createTag", "conditions of attributesFilter", 20,
        lambda n: {
            "queueName": "@tags", "tagName": "@tag",
            "attributesFilter": {"attributes": {f"a{i}": TEXT for i in range(n)}, "logicalOperator": 0},
        },
        none=2,
    ),
    _of(
        "createTag", "logicalOperator", 0, 1,
        lambda n: {"queueName": "@tags", "tagName": "@tag",
                   "attributesFilter": {"attributes": {"a": TEXT}, "logicalOperator": n}},
    ),
    _count("createTag", "length of tagName", 80, lambda n: {"queueName": "@tags", "tagName": f"@tag:{n}"}, none=2),
    _user("readQps", 100_000),
    _user("writeQps", 100_000),
    _user("queueNumber", 1_000_000),
    *_sent("delaySeconds", 0, 900),
    *_sent("invisibilitySeconds", 2, 43_200),
    *_sent("priority", 1, 16),
    _count("sendMessage", "length of topic", 128, lambda n: {"queueName": "@topics", "messageBody": "m",
                                                             "topic": "t" * n}, none=0),
    Range("sendMessage", "bytes", 1, 10, lambda n: {"queueName": "@small", "messageBody": "m" * n}, {0: 10, 11: 34}),
    _count(
        "sendMessageBatch", "entries", 100,
        _batch("sendMessageBatchRequestEntryList", lambda n: {"entryId": str(n), "messageBody": "m"}),
    ),
    _of("receiveMessage", "maxReceiveMessageNumber", 1, 100,
        lambda n: {"queueName": "@again", "maxReceiveMessageNumber": n}),
    _of("receiveMessage", "maxReceiveMessageWaitSeconds", 0, 20,
        lambda n: {"queueName": "@again", "maxReceiveMessageWaitSeconds": n}),
    _of(
        "changeMessageVisibilitySeconds", "invisibilitySeconds", 0, 43_200,
        lambda n: {"queueName": "@queue", "receiptHandle": "@handle", "invisibilitySeconds": n},
    ),
    _of(
        "changeMessageVisibilitySecondsBatch", "invisibilitySeconds", 0, 43_200,
        lambda n: {
            "queueName": "@queue", "changeMessageVisibilityRequestEntryList": [{"receiptHandle": "@handle",
                                                                                "invisibilitySeconds": n}],
        },
    ),
    _count(
        "changeMessageVisibilitySecondsBatch", "entries", 100,
        _batch("changeMessageVisibilityRequestEntryList",
               lambda n: {"receiptHandle": f"h{n}", "invisibilitySeconds": 1}), 11,
    ),
    _count("deleteMessageBatch", "entries", 100, _batch("deleteMessageBatchRequestEntryList",
                                                        lambda n: {"receiptHandle": f"h{n}"}), 11),
    _count(
        "deadMessageBatch", "entries", 100,
        lambda n: {"queueName": "@source",
                   "deadMessageBatchRequestEntryList": [{"receiptHandle": f"h{i}"} for i in range(n)]}, 11,
    ),
    _count("deletePeekMessageBatch", "entries", 100,
           _batch("deletePeekMessageBatchEntryList", lambda n: {"receiptHandle": f"h{n}"}), 11),
    _count(
        "peekMessage", "length of receiptHandleList", 1000,
        lambda n: {"queueName": "@queue", "peekMessageArg": {"receiptHandleList": [f"h{i}" for i in range(n)]}},
        none=2,
    ),
    _peeked("maxNum", 1, 200),
    _peeked("partitionId", 0, 3),
]  # fmt: skip

_Q: Final = {"queueName": "@queue"}
_HANDLES: Final = {"deleteMessageBatchRequestEntryList": [{"receiptHandle": "@handle"}, {"receiptHandle": "@handle"}]}
_CHANGED: Final = {"changeMessageVisibilityRequestEntryList": [{"receiptHandle": "@handle", "invisibilitySeconds": 9}]}

ROWS: Final = [
    Row("getServiceVersion", None),
    Row("validClientVersion", {"major": 1, "minor": 0, "revision": 0, "date": "", "details": ""}),
    Row("validClientVersion", {"major": 2, "minor": 0, "revision": 0, "date": "", "details": ""}, 1),
    Row(
        "createQueue",
        {"queueName": "@new", "queueAttribute": {"partitionNumber": 99}},
        about="partitionNumber is ignored",
    ),
    Row(
        "createQueue",
        {"queueName": "@new", "deleteMessageForce": False, "deadLetterQueue": True, "defaultTagName": "main"},
    ),
    Row("createQueue", {"queueName": "@new", "redrivePolicy": {"dlqName": "@dead", "maxReceiveTime": 3}}),
    Row("createQueue", {"queueName": "@new", "queueAttribute": {"delaySeconds": 901}}, 2),
    Row("createQueue", {"queueName": "@new", "queueQuota": {"throughput": {"readQps": -1}}}, 2),
    Row("createQueue", {"queueName": "@new", "queueAttribute": {"userAttributes": {"": "x"}}}, 2),
    Row("createQueue", {"queueName": "@new", "enablePriority": True, "topicQueue": True}, 2, "priority with topics"),
    Row(
        "createQueue",
        {"queueName": "@new", "deadLetterQueue": True, "redrivePolicy": {"dlqName": "@dead", "maxReceiveTime": 3}},
        1,
    ),
    Row(
        "createQueue",
        {"queueName": "@new", "topicQueue": True, "redrivePolicy": {"dlqName": "@dead", "maxReceiveTime": 3}},
        1,
    ),
    Row("createQueue", {"queueName": "@short"}, 4),
    Row("createQueue", {"queueName": ""}, 5),
    Row("createQueue", {"queueName": "a/b"}, 2),
    Row("createQueue", {"queueName": "q" * 151}, 2, "a name of 151"),
    Row("deleteQueue", {"queueName": "@made"}),
    Row("deleteQueue", {"queueName": "nobody/none"}, 6),
    Row("deleteQueue", {"queueName": ""}, 5),
    Row("deleteQueue", {"queueName": "a/b/c"}, 2),
    Row("purgeQueue", {"queueName": "@settings"}),
    Row("purgeQueue", {"queueName": "none"}, 6),
    Row("setQueueAttribute", {"queueName": "@settings"}, about="nothing named"),
    Row("setQueueAttribute", {"queueName": "@settings", "queueAttribute": {"userAttributes": {"team": "a"}}}),
    Row("setQueueAttribute", {"queueName": "none", "queueAttribute": {"delaySeconds": 1}}, 6),
    Row("setQueueQuota", {"queueName": "none", "queueQuota": {"throughput": {"readQps": 1}}}, 6),
    Row("getQueueInfo", _Q),
    Row("getQueueInfo", {"queueName": "@of somebody"}, 6, "a queue of another owner"),
    Row("listQueue", {"queueNamePrefix": "emq_"}),
    Row("listQueue", {"queueNamePrefix": "a/b/c"}, 2),
    Row(
        "setQueueRedrivePolicy", {"queueName": "@source", "redrivePolicy": {"dlqName": "none", "maxReceiveTime": 3}}, 6
    ),
    Row(
        "setQueueRedrivePolicy",
        {"queueName": "@source", "redrivePolicy": {"dlqName": "@source", "maxReceiveTime": 3}},
        1,
        "itself",
    ),
    Row(
        "setQueueRedrivePolicy",
        {"queueName": "@dead", "redrivePolicy": {"dlqName": "@queue", "maxReceiveTime": 3}},
        1,
        "a chain",
    ),
    Row(
        "setQueueRedrivePolicy",
        {"queueName": "@queue", "redrivePolicy": {"dlqName": "@source", "maxReceiveTime": 3}},
        1,
        "to a source",
    ),
    Row(
        "setQueueRedrivePolicy", {"queueName": "@topics", "redrivePolicy": {"dlqName": "@dead", "maxReceiveTime": 3}}, 1
    ),
    Row(
        "setQueueRedrivePolicy",
        {"queueName": "@queue", "redrivePolicy": {"dlqName": "@levels", "maxReceiveTime": 3}},
        1,
    ),
    Row("removeQueueRedrivePolicy", _Q),
    Row("removeQueueRedrivePolicy", {"queueName": "none"}, 6),
    Row("listDeadLetterSourceQueues", {"dlqName": "@dead"}),
    Row("listDeadLetterSourceQueues", {"dlqName": "none"}, 6),
    Row("queryPrivilegedQueue", {"queueNamePrefix": ""}),
    Row("queryPrivilegedQueue", {"queueNamePrefix": "a/b/c"}, 2),
    Row("getQueueMeta", "@queue"),
    Row("getQueueMeta", "none", 6),
    Row("getQueueMeta", "", 5),
    Row("copyQueue", {"queueMeta": {"queueName": "@copy", "queueAttribute": {}}}),
    Row("copyQueue", {"queueMeta": {"queueName": "@new", "queueAttribute": {}}}, 2, "without an owner"),
    Row("copyQueue", {"queueMeta": {"queueName": "@queue", "queueAttribute": {}}}, 4),
    Row("verifyEMQAdmin", None),
    Row("verifyEMQAdminRole", {"granteeId": "CI1"}),
    Row("setPermission", {**_Q, "developerId": "@owner", "permission": 1}, 2, "the owner's"),
    Row("setPermission", {"queueName": "none", "developerId": "somebody", "permission": 1}, 6),
    Row("revokePermission", {**_Q, "developerId": "somebody"}),
    Row("revokePermission", {"queueName": "none", "developerId": "somebody"}, 6),
    Row("queryPermission", _Q),
    Row("queryPermission", {"queueName": "none"}, 6),
    Row("queryPermissionForId", {**_Q, "developerId": "somebody"}),
    Row("listPermissions", _Q),
    Row(
        "createTag",
        {"queueName": "@tags", "tagName": "@tag", "attributeName": "a", "attributeValue": TEXT, "startTimestamp": 0},
    ),
    Row(
        "createTag",
        {"queueName": "@tags", "tagName": "@tag", "attributeName": "a", "attributeValue": {"type": "EMPTY"}},
    ),
    Row("createTag", {"queueName": "@tags", "tagName": "@tag", "attributeName": "a"}, 2, "no value"),
    Row(
        "createTag",
        {"queueName": "@tags", "tagName": "@tag", "attributeName": "a", "attributeValue": {"type": "number"}},
        2,
    ),
    Row("createTag", {"queueName": "@tags", "tagName": "@tag", "userAttributes": {"k": ""}}, 2),
    Row("createTag", {"queueName": "@tags", "tagName": "a/b"}, 2),
    Row("createTag", {"queueName": "@tags", "tagName": "default"}, 2, "the default tag"),
    Row("createTag", {"queueName": "none", "tagName": "t"}, 6),
    Row("getTagInfo", _Q, about="the default tag"),
    Row("getTagInfo", {**_Q, "tagName": "none"}, 2),
    Row("listTag", _Q),
    Row("listTag", {"queueName": "none"}, 6),
    Row("deleteTag", {**_Q, "tagName": "@made tag"}),
    Row("deleteTag", {**_Q, "tagName": "none"}, 2),
    Row("deleteTag", {**_Q, "tagName": "default"}, 1, "the default tag"),
    Row(
        "sendMessage",
        {**_Q, "messageBody": "m", "messageAttributes": {"a": TEXT}, "delaySeconds": 0, "invisibilitySeconds": 60},
    ),
    Row("sendMessage", {**_Q, "messageBody": "zwölf 消息 \U0001f600"}, about="not ASCII"),
    Row("sendMessage", {**_Q, "messageBody": "m", "messageAttributes": {"b": BINARY}}, about="binary"),
    Row(
        "sendMessage",
        {**_Q, "messageBody": "m", "topic": "no topic queue", "priority": 3},
        about="what other queues ignore",
    ),
    Row("sendMessage", {**_Q, "messageBody": ""}, 10),
    Row(
        "sendMessage",
        {**_Q, "messageBody": "m", "messageAttributes": {"DLQ.sourceQueue": TEXT}},
        2,
        "the reserved attribute",
    ),
    Row("sendMessage", {**_Q, "messageBody": "m", "messageAttributes": {"a": {"type": "string"}}}, 2, "no value"),
    Row(
        "sendMessage", {**_Q, "messageBody": "m", "messageAttributes": {"a": {"type": "binary", "stringValue": "x"}}}, 2
    ),
    Row(
        "sendMessage", {**_Q, "messageBody": "m", "messageAttributes": {"a": {"type": "empty"}}}, 2, "of filters alone"
    ),
    Row(
        "sendMessage",
        {**_Q, "messageBody": "m", "messageAttributes": {"a": {"type": "string.a-b", "stringValue": "x"}}},
        2,
    ),
    Row("sendMessage", {"queueName": "none", "messageBody": "m"}, 6),
    Row("sendMessage", {"queueName": "@quota", "messageBody": "m"}, 20, "over the queue's quota"),
    Row("sendMessage", {"queueName": "@topics", "messageBody": "m", "topic": "~t"}, 2),
    Row("sendMessage", {"queueName": "@topics", "messageBody": "m", "topic": "a b"}, 2),
    Row("sendMessage", {"queueName": "@topics", "messageBody": "m", "delaySeconds": 1}, 2),
    Row("sendMessageBatch", {**_Q, "sendMessageBatchRequestEntryList": [{"entryId": "", "messageBody": "m"}]}, 35),
    Row("sendMessageBatch", {**_Q, "sendMessageBatchRequestEntryList": [{"entryId": "1", "messageBody": "m"}] * 2}, 12),
    Row("sendMessageBatch", {**_Q, "sendMessageBatchRequestEntryList": [{"entryId": "1", "messageBody": ""}]}, 10),
    Row(
        "sendMessageBatch",
        {"queueName": "@small", "sendMessageBatchRequestEntryList": [{"entryId": "1", "messageBody": "m" * 11}]},
        34,
    ),
    Row("receiveMessage", {"queueName": "@again", "attributeName": "a", "attributeValue": TEXT}, about="with a filter"),
    Row("receiveMessage", {"queueName": "@again", "attributeName": "a"}, 2, "half a filter"),
    Row("receiveMessage", {**_Q, "tagName": "none"}, 2),
    Row("receiveMessage", {"queueName": "none"}, 6),
    Row(
        "receiveMessage",
        {"queueName": "@topics", "attributeName": "a", "attributeValue": TEXT},
        1,
        "a filter on topics",
    ),
    Row("changeMessageVisibilitySeconds", {**_Q, "receiptHandle": "none", "invisibilitySeconds": 1}, 11),
    Row(
        "changeMessageVisibilitySeconds",
        {**_Q, "receiptHandle": "@message", "invisibilitySeconds": 1},
        11,
        "the id of a message",
    ),
    Row("changeMessageVisibilitySecondsBatch", {**_Q, **_CHANGED}),
    Row("deleteMessage", {**_Q, "receiptHandle": "@handle"}),
    Row("deleteMessage", {**_Q, "receiptHandle": "@ended"}, about="its delivery is over"),
    Row("deleteMessage", {**_Q, "receiptHandle": "@message"}, 11, "the id of a message"),
    Row("deleteMessage", {"queueName": "@source", "receiptHandle": "@handle"}, 11, "of another queue"),
    Row("deleteMessageBatch", {**_Q, **_HANDLES}),
    Row("deleteMessageBatch", {**_Q, "deleteMessageBatchRequestEntryList": [{"receiptHandle": "h"}] * 2}, 12),
    Row("deadMessage", {"queueName": "@source", "receiptHandle": "@handle of source"}),
    Row("deadMessage", {**_Q, "receiptHandle": "@handle"}, 1, "without a policy"),
    Row("deadMessage", {"queueName": "@dead", "receiptHandle": "h"}, 1, "on a dead-letter queue"),
    Row(
        "deadMessageBatch",
        {"queueName": "@source", "deadMessageBatchRequestEntryList": [{"receiptHandle": "@handle of source"}]},
    ),
    Row("peekMessage", {**_Q, "peekMessageArg": {"receiptHandle": "@message"}}),
    Row("peekMessage", {**_Q, "peekMessageArg": {"receiptHandle": "@handle"}}, about="by a handle"),
    Row("peekMessage", {**_Q, "peekMessageArg": {"receiptHandle": "h"}}, 11),
    Row("peekMessage", {**_Q, "peekMessageArg": {}}, 35),
    Row("peekMessage", {**_Q, "peekMessageArg": {"receiptHandle": "h", "receiptHandleList": ["h"]}}, 35),
    Row("deletePeekMessage", {**_Q, "receiptHandle": "@message"}),
    Row("deletePeekMessage", {**_Q, "receiptHandle": "@handle"}, 1, "it is leased"),
    Row("deletePeekMessage", {**_Q, "receiptHandle": "@given back"}, 1, "it was received"),
    Row("deletePeekMessage", {**_Q, "receiptHandle": "@acked"}, 11, "it is acked"),
    Row("deletePeekMessage", {**_Q, "receiptHandle": "h"}, 11),
    Row("deletePeekMessageBatch", {**_Q, "deletePeekMessageBatchEntryList": [{"receiptHandle": "@message"}]}),
    Row("deletePeekMessageBatch", {**_Q, "deletePeekMessageBatchEntryList": [{"receiptHandle": "h"}] * 2}, 12),
    Row("setUserInfo", {"developerId": "somebody", "userName": "A", "email": "a@example.com", "sms": "1"}),
    Row("setUserInfo", {"developerId": "somebody", "userName": "x" * 201}, 2),
    Row("setUserInfo", {"developerId": "somebody", "email": "a\nb"}, 2),
    Row("getUserInfo", {}),
    Row("getUserQuota", {"developerId": "somebody"}),
    Row("getUserUsedQuota", {}),
]

# Methods whose cases are in files of their own.
ELSEWHERE: Final = frozenset({
    "queryMetric", "addQueueAlertPolicy", "deleteQueueAlertPolicy", "listQueueAlertPolicies", "addTagAlertPolicy",
    "deleteTagAlertPolicy",
    "listTagAlertPolicies", "setQueueDailyStatisticsState", "getQueueDailyStatisticsState",
})  # fmt: skip

# Codes that no row here causes, and why.
NOT_CAUSED: Final[dict[ErrorCode, str]] = {
    ErrorCode.QUEUE_DELETED_RECENTLY: "a name may be used again at once",
    ErrorCode.QUEUE_INUSE: "another change of the queue has to last for 10 s: tests/integration/test_control.py",
    ErrorCode.QUEUE_URI_CONFLICT: "of the original service alone",
    ErrorCode.INVALID_INDEX_ID: "a wrong handle is 11 to every client",
    ErrorCode.PERMISSION_DENIED: "needs signed requests: test_permissions.py",
    ErrorCode.INTERNAL_ERROR: "Kafka or Redis has to be away: tests/acceptance/test_bad_days.py by the native API",
    ErrorCode.PARTITION_NOT_EXIST: "of the original service alone",
    ErrorCode.PARTITION_NOT_RUNNING: "of the original service alone",
    ErrorCode.QUEUE_NOT_CACHED: "a rebuild has to last: tests/integration/test_rebuild.py",
    ErrorCode.PARTITION_NOT_SERVING: "20,000 long polls have to wait: tests/acceptance/test_overload.py",
    ErrorCode.TTRANSPORT_ERROR: "clients make it of a broken connection",
    ErrorCode.QUOTA_NOT_EXIST: "of the original service alone",
    ErrorCode.QUOTA_LOCK_FAILED: "of the original service alone",
    ErrorCode.UNKNOWN: "of the original service alone",
}
