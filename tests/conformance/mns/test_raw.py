"""MNS by hand: statuses, headers, elements in their order, and every row of the table of errors
that a request can cause.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.mns.raw import NAMESPACE, VERSION, Raw
from tests.services import Up

ATTRIBUTES = [
    "QueueName", "CreateTime", "LastModifyTime", "DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod",
    "VisibilityTimeout",
    "PollingWaitSeconds", "ActiveMessages", "InactiveMessages", "DelayMessages", "LoggingEnabled",
]  # fmt: skip
RECEIVED = [
    "MessageId", "MessageBodyMD5", "MessageBody", "ReceiptHandle", "EnqueueTime", "FirstDequeueTime", "NextVisibleTime",
    "DequeueCount",
    "Priority",
]  # fmt: skip
BODY = "<Message><MessageBody>x</MessageBody></Message>"


def stale(raw: Raw, queue: str) -> str:
    """The handle of a message that was deleted."""
    raw.send(queue, "x")
    handle = raw.receive(queue).text("ReceiptHandle")
    raw.done("DELETE", f"/queues/{queue}/messages?ReceiptHandle={handle}", status=204)
    return handle


# Shapes


def test_a_new_queue_is_201_and_an_equal_one_204_both_with_its_place(raw: Raw, name: str) -> None:
    for status in (201, 204):
        reply = raw.done(
            "PUT", f"/queues/{name}", "<Queue><VisibilityTimeout>7</VisibilityTimeout></Queue>", status=status
        )
        assert dict(reply.headers)["location"] == f"{raw.endpoint}/queues/{name}"
        assert reply.body == b""
        assert reply.header("content-type") == "text/xml;charset=utf-8"


@pytest.mark.parametrize(
    "body", ["", "<Queue/>", '<Queue xmlns="http://mns.aliyuncs.com/doc/v1/"></Queue>', "<Queue><New>1</New></Queue>"]
)
def test_a_queue_without_attributes_has_the_defaults(raw: Raw, name: str, body: str) -> None:
    raw.done("PUT", f"/queues/{name}", body, status=201)
    reply = raw.done("GET", f"/queues/{name}")

    assert reply.names == ATTRIBUTES
    assert [reply.text(element) for element in ATTRIBUTES[3:]] == [
        "0",
        "65536",
        "345600",
        "30",
        "0",
        "0",
        "0",
        "0",
        "False",
    ]
    assert reply.root.tag == f"{NAMESPACE}Queue"


def test_a_reply_says_its_id_in_small_letters(raw: Raw, queue: str) -> None:
    ids = {raw.done("GET", f"/queues/{queue}").header("x-mns-request-id") for _ in range(20)}

    assert len(ids) == 20
    assert all(re.fullmatch("[0-9A-F]{24}", one) for one in ids)


@pytest.mark.parametrize("word", ["True", "true", "TRUE", "False", "false"])
def test_logging_is_said_in_any_case(raw: Raw, name: str, word: str) -> None:
    raw.done("PUT", f"/queues/{name}", f"<Queue><LoggingEnabled>{word}</LoggingEnabled></Queue>", status=201)

    assert raw.done("GET", f"/queues/{name}").text("LoggingEnabled") == word.capitalize()
    raw.done("PUT", f"/queues/{name}", "<Queue/>", status=204)


def test_what_is_not_named_is_not_compared_and_not_changed(raw: Raw, name: str) -> None:
    raw.done(
        "PUT",
        f"/queues/{name}",
        "<Queue><DelaySeconds>5</DelaySeconds><VisibilityTimeout>7</VisibilityTimeout></Queue>",
        status=201,
    )
    raw.done("PUT", f"/queues/{name}", "<Queue><DelaySeconds>5</DelaySeconds></Queue>", status=204)
    raw.done("PUT", f"/queues/{name}?Metaoverride=TRUE", "<Queue><DelaySeconds>0</DelaySeconds></Queue>", status=204)
    reply = raw.done("GET", f"/queues/{name}")

    assert (reply.text("DelaySeconds"), reply.text("VisibilityTimeout")) == ("0", "7")


def test_a_list_ends_without_a_marker(raw: Raw, name: str) -> None:
    for letter in "ab":
        raw.done("PUT", f"/queues/{name}-{letter}", status=201)
    asked = {**VERSION, "x-mns-prefix": f"{name}-", "x-mns-ret-number": "1"}
    first = raw.ask("GET", "/queues", headers=asked)
    last = raw.ask("GET", "/queues", headers={**asked, "x-mns-marker": first.text("NextMarker")})
    none = raw.ask("GET", "/queues", headers={**asked, "x-mns-prefix": f"{name}-none"})

    assert (first.names, last.names, none.names) == (["Queue", "NextMarker"], ["Queue"], [])
    assert first.text("Queue", "QueueURL").count("/") == 4
    assert b"NextMarker" not in last.body + none.body
    meta = raw.ask("GET", "/queues", headers={**asked, "x-mns-with-meta": "true"})
    assert [part.tag.removeprefix(NAMESPACE) for part in meta.root[0]] == ["QueueURL", *ATTRIBUTES]


def test_a_sent_message_is_201_with_id_and_digest(raw: Raw, queue: str) -> None:
    reply = raw.send(queue, "hello")

    assert reply.names == ["MessageId", "MessageBodyMD5"]
    assert reply.text("MessageBodyMD5") == "5D41402ABC4B2A76B9719D911017C592"
    assert raw.send(queue, "x", "<MessageGroupId>g</MessageGroupId>").names == [
        "MessageId",
        "MessageBodyMD5",
        "MessageGroupId",
    ]


def test_a_received_message_has_its_elements_in_order(raw: Raw, queue: str) -> None:
    raw.send(queue, "a")
    raw.send(queue, "b", "<MessageGroupId>g</MessageGroupId>")
    first, second = raw.receive(queue), raw.receive(queue)

    assert (first.names, second.names) == (RECEIVED, [*RECEIVED, "MessageGroupId"])
    assert int(first.text("NextVisibleTime")) - int(first.text("FirstDequeueTime")) == 30_000


def test_a_peeked_message_has_no_handle_and_no_time_to_come(raw: Raw, queue: str) -> None:
    raw.send(queue, "a")
    one = raw.done("GET", f"/queues/{queue}/messages?peekonly=true")
    some = raw.done("GET", f"/queues/{queue}/messages?numOfMessages=16&peekonly=TRUE")

    shown = [element for element in RECEIVED if element not in ("ReceiptHandle", "NextVisibleTime")]
    assert one.names == [part.tag.removeprefix(NAMESPACE) for part in some.root[0]] == shown
    assert (some.root.tag, one.text("DequeueCount")) == (f"{NAMESPACE}Messages", "0")


def test_a_batch_receive_is_a_list_also_of_one(raw: Raw, queue: str) -> None:
    raw.send(queue, "a")
    reply = raw.done("GET", f"/queues/{queue}/messages?numOfMessages=2&waitseconds=1")

    assert (reply.root.tag, reply.names) == (f"{NAMESPACE}Messages", ["Message"])


def test_a_change_of_visibility_tells_handle_and_time(raw: Raw, queue: str) -> None:
    raw.send(queue, "a")
    got = raw.receive(queue)
    began = time.time() * 1000
    reply = raw.done("PUT", f"/queues/{queue}/messages?receiptHandle={got.text('ReceiptHandle')}&visibilityTimeout=60")

    assert (reply.root.tag, reply.names) == (f"{NAMESPACE}ChangeVisibility", ["ReceiptHandle", "NextVisibleTime"])
    assert abs(int(reply.text("NextVisibleTime")) - began - 60_000) < 3000
    assert re.fullmatch("[A-Za-z0-9_=-]+", reply.text("ReceiptHandle"))


def test_a_handle_may_be_escaped(raw: Raw, queue: str) -> None:
    raw.send(queue, "a")
    handle = "".join(f"%{ord(character):02X}" for character in raw.receive(queue).text("ReceiptHandle"))

    raw.done("DELETE", f"/queues/{queue}/messages?ReceiptHandle={handle}", status=204)


def test_an_error_has_four_elements(raw: Raw, name: str) -> None:
    reply = raw.ask("GET", f"/queues/{name}")

    assert (reply.root.tag, reply.names) == (f"{NAMESPACE}Error", ["Code", "Message", "RequestId", "HostId"])
    assert reply.text("RequestId") == reply.header("x-mns-request-id")
    assert reply.text("HostId") == raw.endpoint
    assert reply.header("content-type") == "text/xml;charset=utf-8"


def test_a_carriage_return_comes_back(raw: Raw, queue: str) -> None:
    raw.send(queue, "a&#13;\nb&#13;")

    assert raw.receive(queue).text("MessageBody") == "a\r\nb\r"


def test_expect_100_is_answered(raw: Raw, queue: str) -> None:
    reply = raw.ask("POST", f"/queues/{queue}/messages", BODY, {**VERSION, "Expect": "100-continue"})

    assert reply.status == 201


def test_a_curl_needs_no_header(raw: Raw, queue: str) -> None:
    assert raw.ask("POST", f"/queues/{queue}/messages", BODY, {}).status == 201
    assert raw.ask("GET", f"/queues/{queue}/messages", headers={}).status == 200


# Queues and messages of other dialects


def test_binary_bodies_of_others_are_in_base64_and_bad_characters_replaced(
    raw: Raw, up: Up | Running, queue: str
) -> None:
    sent = [{"body_base64": "AP8="}, {"body": "a\u0001b"}]
    httpx.post(f"{up.endpoint}/v1/queues/{queue}/messages", json={"messages": sent}).raise_for_status()

    assert [raw.receive(queue).text("MessageBody") for _ in sent] == ["AP8=", "a\ufffdb"]


def test_a_queue_of_others_has_no_priority_and_takes_one(raw: Raw, up: Up | Running, name: str) -> None:
    httpx.post(f"{up.endpoint}/v1/queues", json={"name": name, "partitions": 1}).raise_for_status()
    for priority in (16, 1):
        raw.send(name, str(priority), f"<Priority>{priority}</Priority>")

    assert [raw.receive(name).text("MessageBody") for _ in range(2)] == ["16", "1"]


def test_a_queue_of_mns_has_priority_for_others(raw: Raw, up: Up | Running, queue: str) -> None:
    info = httpx.get(f"{up.endpoint}/v1/queues/{queue}").json()

    assert (info["priority"], info["partitions"]) == (True, 16)


def test_a_dead_letter_is_in_its_queue_and_says_its_first_id(raw: Raw, up: Up | Running, queue: str) -> None:
    raw.done("PUT", f"/queues/{queue}-dead", status=201)
    policy = {"redrive_policy": {"dead_letter_queue": f"{queue}-dead", "max_receive_count": 1}}
    httpx.patch(f"{up.endpoint}/v1/queues/{queue}", json=policy).raise_for_status()
    sent = raw.send(queue, "x").text("MessageId")
    handle = raw.receive(queue).text("ReceiptHandle")
    raw.done("PUT", f"/queues/{queue}/messages?ReceiptHandle={handle}&VisibilityTimeout=1")
    time.sleep(1.2)
    assert raw.ask("GET", f"/queues/{queue}/messages?peekonly=true").code == "MessageNotExist", (
        "a peek shows what dies next"
    )
    assert raw.ask("GET", f"/queues/{queue}/messages").code == "MessageNotExist"
    letter = raw.receive(f"{queue}-dead", 5)

    assert letter.text("MessageBody") == "x"
    assert letter.text("SystemProperties", "SystemPropertyValue", "Value") == sent
    httpx.post(f"{up.endpoint}/v1/queues/{queue}-dead/redrive", json={}).raise_for_status()


def test_a_fifo_queue_of_others_wants_a_group_and_keeps_its_order(raw: Raw, up: Up | Running, name: str) -> None:
    httpx.post(f"{up.endpoint}/v1/queues", json={"name": f"{name}.fifo", "fifo": True}).raise_for_status()
    assert raw.ask("POST", f"/queues/{name}.fifo/messages", BODY).code == "InvalidArgument"
    for text in "ab":
        raw.send(f"{name}.fifo", text, "<MessageGroupId>g</MessageGroupId>")
    peeked = raw.done("GET", f"/queues/{name}.fifo/messages?peekonly=true&numOfMessages=16")
    first = raw.receive(f"{name}.fifo")

    assert peeked.texts("Message", "MessageBody") == ["a", "b"]
    assert (first.text("MessageBody"), first.text("MessageGroupId")) == ("a", "g")
    assert raw.ask("GET", f"/queues/{name}.fifo/messages?peekonly=true").code == "MessageNotExist"
    raw.done("DELETE", f"/queues/{name}.fifo/messages?ReceiptHandle={first.text('ReceiptHandle')}", status=204)
    assert raw.receive(f"{name}.fifo").text("MessageBody") == "b"


# Errors: method, target with {q} for a queue and {h} for the handle of a deleted message, body,
# status and code.

ERRORS: dict[str, tuple[str, str, str, int, str]] = {
    "no such queue: get": ("GET", "/queues/none", "", 404, "QueueNotExist"),
    "no such queue: set": ("PUT", "/queues/none?metaoverride=true", "<Queue/>", 404, "QueueNotExist"),
    "no such queue: delete": ("DELETE", "/queues/none", "", 404, "QueueNotExist"),
    "no such queue: send": ("POST", "/queues/none/messages", BODY, 404, "QueueNotExist"),
    "no such queue: batch": ("POST", "/queues/none/messages", f"<Messages>{BODY}</Messages>", 404, "QueueNotExist"),
    "no such queue: receive": ("GET", "/queues/none/messages", "", 404, "QueueNotExist"),
    "no such queue: peek": ("GET", "/queues/none/messages?peekonly=true", "", 404, "QueueNotExist"),
    "no such tag": ("GET", "/queues/{q}@none/messages", "", 404, "QueueNotExist"),
    "nothing to receive": ("GET", "/queues/{q}/messages", "", 404, "MessageNotExist"),
    "nothing to receive in a batch": ("GET", "/queues/{q}/messages?numOfMessages=3", "", 404, "MessageNotExist"),
    "nothing to peek": ("GET", "/queues/{q}/messages?peekonly=true", "", 404, "MessageNotExist"),
    "nothing to peek in a batch": ("GET", "/queues/{q}/messages?peekonly=true&numOfMessages=3", "", 404,
                                   "MessageNotExist"),
    "deleted twice": ("DELETE", "/queues/{q}/messages?ReceiptHandle={h}", "", 404, "MessageNotExist"),
    "changed after delete": ("PUT", "/queues/{q}/messages?ReceiptHandle={h}&VisibilityTimeout=5", "", 404,
                             "MessageNotExist"),
    "malformed handle": ("DELETE", "/queues/{q}/messages?ReceiptHandle=nonsense", "", 400, "ReceiptHandleError"),
    "malformed handle changed": ("PUT", "/queues/{q}/messages?ReceiptHandle=A&VisibilityTimeout=5", "", 400,
                                 "ReceiptHandleError"),
    "altered handle": ("DELETE", "/queues/{q}/messages?ReceiptHandle={h}A", "", 400, "ReceiptHandleError"),
    "no handle": ("DELETE", "/queues/{q}/messages", "", 400, "MissingReceiptHandle"),
    "empty handle": ("DELETE", "/queues/{q}/messages?ReceiptHandle=", "", 400, "MissingReceiptHandle"),
    "no handle to change": ("PUT", "/queues/{q}/messages?VisibilityTimeout=5", "", 400, "MissingReceiptHandle"),
    "no timeout": ("PUT", "/queues/{q}/messages?ReceiptHandle={h}", "", 400, "MissingVisibilityTimeout"),
    "timeout of 0": ("PUT", "/queues/{q}/messages?ReceiptHandle={h}&VisibilityTimeout=0", "", 400, "InvalidArgument"),
    "timeout too long": ("PUT", "/queues/{q}/messages?ReceiptHandle={h}&VisibilityTimeout=43201", "", 400,
                         "InvalidArgument"),
    "timeout of words": ("PUT", "/queues/{q}/messages?ReceiptHandle={h}&VisibilityTimeout=x", "", 400,
                         "InvalidArgument"),
    "wait too long": ("GET", "/queues/{q}/messages?waitseconds=31", "", 400, "InvalidArgument"),
    "wait below 0": ("GET", "/queues/{q}/messages?waitseconds=-1", "", 400, "InvalidArgument"),
    "no number of messages": ("GET", "/queues/{q}/messages?numOfMessages=", "", 400, "InvalidArgument"),
    "too many messages": ("GET", "/queues/{q}/messages?numOfMessages=17", "", 400, "InvalidArgument"),
    "too many to peek": ("GET", "/queues/{q}/messages?peekonly=true&numOfMessages=17", "", 400, "InvalidArgument"),
    "empty body": ("POST", "/queues/{q}/messages", "<Message><MessageBody></MessageBody></Message>", 400,
                   "InvalidArgument"),
    "no body of a message": ("POST", "/queues/{q}/messages", "<Message/>", 400, "InvalidArgument"),
    "body too large": (
        "POST", "/queues/{q}/messages", f"<Message><MessageBody>{'x' * 65_537}</MessageBody></Message>", 400,
        "InvalidArgument",
    ),
    "priority 17": (
        "POST", "/queues/{q}/messages", BODY.replace("</Message>", "<Priority>17</Priority></Message>"), 400,
        "InvalidArgument",
    ),
    "delay below 0": (
        "POST", "/queues/{q}/messages", BODY.replace("</Message>", "<DelaySeconds>-1</DelaySeconds></Message>"), 400,
        "InvalidArgument",
    ),
    "group too long": (
        "POST", "/queues/{q}/messages", BODY.replace("</Message>",
                                                     f"<MessageGroupId>{'g' * 129}</MessageGroupId></Message>"), 400,
        "InvalidArgument",
    ),
    "empty batch": ("POST", "/queues/{q}/messages", "<Messages/>", 400, "InvalidArgument"),
    "batch of 17": ("POST", "/queues/{q}/messages", f"<Messages>{BODY * 17}</Messages>", 400, "InvalidArgument"),
    "batch of others": ("POST", "/queues/{q}/messages", "<Messages><Queue/></Messages>", 400, "MalformedXML"),
    "no XML": ("POST", "/queues/{q}/messages", "hello", 400, "MalformedXML"),
    "no message": ("POST", "/queues/{q}/messages", "", 400, "MalformedXML"),
    "a queue as a message": ("POST", "/queues/{q}/messages", "<Queue/>", 400, "MalformedXML"),
    "a message as a queue": ("PUT", "/queues/new", BODY, 400, "MalformedXML"),
    "handles of none": ("DELETE", "/queues/{q}/messages", "<ReceiptHandles/>", 400, "InvalidArgument"),
    "handles of another root": ("DELETE", "/queues/{q}/messages", "<Handles/>", 400, "MalformedXML"),
    "queue of other attributes": (
        "PUT", "/queues/{q}", "<Queue><VisibilityTimeout>31</VisibilityTimeout></Queue>", 409, "QueueAlreadyExist",
    ),
    "name of bad characters": ("PUT", "/queues/a_b", "<Queue/>", 400, "InvalidQueueName"),
    "name that begins with a hyphen": ("PUT", "/queues/-a", "<Queue/>", 400, "InvalidQueueName"),
    "no name": ("PUT", "/queues/", "<Queue/>", 400, "InvalidRequestURL"),
    "name too long": ("PUT", f"/queues/{'a' * 121}", "<Queue/>", 400, "QueueNameLengthError"),
    "timeout out of range": ("PUT", "/queues/new", "<Queue><VisibilityTimeout>0</VisibilityTimeout></Queue>", 400,
                             "InvalidArgument"),
    "size out of range": ("PUT", "/queues/new", "<Queue><MaximumMessageSize>1023</MaximumMessageSize></Queue>", 400,
                          "InvalidArgument"),
    "retention out of range": (
        "PUT", "/queues/new", "<Queue><MessageRetentionPeriod>59</MessageRetentionPeriod></Queue>", 400,
        "InvalidArgument",
    ),
    "delay out of range": ("PUT", "/queues/new", "<Queue><DelaySeconds>604801</DelaySeconds></Queue>", 400,
                           "InvalidArgument"),
    "polling out of range": ("PUT", "/queues/new", "<Queue><PollingWaitSeconds>31</PollingWaitSeconds></Queue>", 400,
                             "InvalidArgument"),
    "logging of words": ("PUT", "/queues/new", "<Queue><LoggingEnabled>maybe</LoggingEnabled></Queue>", 400,
                         "InvalidArgument"),
    "attributes of a tag": ("PUT", "/queues/{q}@t?metaoverride=true", "<Queue/>", 400, "InvalidArgument"),
    "unknown path": ("GET", "/buckets", "", 400, "InvalidRequestURL"),
    "unknown method": ("PATCH", "/queues/{q}", "", 400, "InvalidRequestURL"),
    "topics": ("PUT", "/topics/news", "<Topic/>", 400, "InvalidRequestURL"),
    "bad query": ("GET", "/queues/{q}/messages?numOfMessages=%zz", "", 400, "InvalidQueryString"),
    "query twice": ("GET", "/queues/{q}/messages?waitseconds=1&waitseconds=2", "", 400, "InvalidQueryString"),
    "a bucket for logs": ("PUT", "/?accountmeta=true", "<Account><LoggingBucket>b</LoggingBucket></Account>", 400,
                          "InvalidArgument"),
    "no account": ("PUT", "/?accountmeta=true", "<Queue/>", 400, "MalformedXML"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "target", "body", "status", "code"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_its_status_and_code(
    raw: Raw, queue: str, method: str, target: str, body: str, status: int, code: str
) -> None:
    handle = stale(raw, queue) if "{h}" in target else ""
    reply = raw.ask(method, target.replace("{q}", queue).replace("{h}", handle), body)

    assert (reply.status, reply.code) == (status, code)
    assert raw.done("GET", f"/queues/{queue}").text("ActiveMessages") == "0"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-mns-version": "2014-07-08"}, "InvalidVersionHeader"),
        ({**VERSION, "Content-MD5": "bm90IHRoYXQ="}, "InvalidDegist"),
        ({**VERSION, "x-mns-ret-number": "0"}, "InvalidArgument"),
        ({**VERSION, "x-mns-marker": "?"}, "InvalidArgument"),
        ({**VERSION, "Sec-Fetch-Site": "cross-site"}, "AccessDenied"),
    ],
)
def test_a_header_that_is_wrong_has_its_code(raw: Raw, headers: dict[str, str], code: str) -> None:
    assert raw.ask("GET", "/queues", headers=headers).code == code


def test_a_quota_that_is_used_up_is_too_many_requests(raw: Raw, up: Up | Running, queue: str) -> None:
    httpx.patch(f"{up.endpoint}/v1/queues/{queue}", json={"write_qps": 1}).raise_for_status()
    replies = [raw.ask("POST", f"/queues/{queue}/messages", BODY) for _ in range(10)]
    refused = [reply for reply in replies if reply.status != 201]

    assert {(reply.status, reply.code) for reply in refused} == {(429, "TooManyRequests")}
    assert refused[0].header("retry-after") == "1"


def test_a_handle_of_another_queue_is_malformed(raw: Raw, queue: str) -> None:
    raw.done("PUT", f"/queues/{queue}-other", status=201)
    raw.send(queue, "x")
    handle = raw.receive(queue).text("ReceiptHandle")

    assert raw.ask("DELETE", f"/queues/{queue}-other/messages?ReceiptHandle={handle}").code == "ReceiptHandleError"
    raw.done("DELETE", f"/queues/{queue}/messages?ReceiptHandle={handle}", status=204)


def test_a_handle_of_another_dialect_counts(raw: Raw, up: Up | Running, queue: str) -> None:
    raw.send(queue, "x")
    answer: Any = json.loads(
        httpx.post(f"{up.endpoint}/v1/queues/{queue}/receive", json={"max": 1, "wait_seconds": 2}).text
    )
    handle = answer["messages"][0]["handle"]
    changed = raw.done("PUT", f"/queues/{queue}/messages?ReceiptHandle={handle}&VisibilityTimeout=60").text(
        "ReceiptHandle"
    )

    raw.done("DELETE", f"/queues/{queue}/messages?ReceiptHandle={changed}", status=204)


def test_a_body_of_ten_megabytes_is_refused(raw: Raw, queue: str) -> None:
    body = f"<Message><MessageBody>{'x' * 10_000_000}</MessageBody></Message>"

    assert raw.ask("POST", f"/queues/{queue}/messages", body).code == "MalformedXML"
    assert raw.ask("POST", f"/queues/{queue}/messages", b"x" * 17_000_000).status == 400
