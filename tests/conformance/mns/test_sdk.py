"""The unmodified SDK of MNS, told the endpoint alone: every call that it offers, and a message that
goes through four clients.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import httpx
import pytest

from tests.conformance.conftest import Running
from tests.conformance.emq.thrift_client import ThriftClient
from tests.conformance.mns.official import Failed, Official, Refused
from tests.services import Up


@pytest.fixture
def made(sdk: Official, name: str) -> str:
    """A queue whose leases last 30 s."""
    sdk.queue(name, "create", {"vis_timeout": 30})
    return name


def refused(sdk: Official, queue: str, method: str, *arguments: Any) -> str:
    """The type of the error that a call ends with."""
    with pytest.raises(Refused) as found:
        sdk.queue(queue, method, *arguments)
    return found.value.type


# Queues


def test_a_queue_is_made_once_and_again_when_it_is_equal(sdk: Official, up: Up | Running, name: str) -> None:
    url = sdk.queue(name, "create", {"vis_timeout": 2, "polling_wait_sec": 0})

    assert url == f"{up.endpoint}/queues/{name}"
    assert sdk.queue(name, "create", {"vis_timeout": 2, "polling_wait_sec": 0}) == url
    assert sdk.queue(name, "create", {}) == url
    assert refused(sdk, name, "create", {"vis_timeout": 3}) == "QueueAlreadyExist"


def test_the_retention_of_a_queue_counts_from_the_send(sdk: Official, up: Up | Running, name: str) -> None:
    sdk.queue(name, "create", {"msg_ttl": 600})
    assert httpx.get(f"{up.endpoint}/v1/queues/{name}").json()["retention_from"] == "send"

    httpx.post(f"{up.endpoint}/v1/queues", json={"name": f"{name}-other"}).raise_for_status()
    sdk.queue(f"{name}-other", "set_attributes", {"msg_ttl": 600})
    assert httpx.get(f"{up.endpoint}/v1/queues/{name}-other").json()["retention_from"] == "due", (
        "it is for who made the queue to say"
    )


def test_attributes_are_set_one_by_one(sdk: Official, name: str) -> None:
    sdk.queue(
        name, "create", {"vis_timeout": 2, "max_msg_size": 2048, "msg_ttl": 600, "delay_sec": 7, "polling_wait_sec": 3}
    )
    began = int(time.time())
    sdk.queue(name, "set_attributes", {"vis_timeout": 5, "logging_enabled": True})
    found = sdk.queue(name, "get_attributes")

    assert {field: found[field] for field in ("visibility_timeout", "maximum_message_size",
                                              "message_retention_period")} == {
        "visibility_timeout": 5, "maximum_message_size": 2048, "message_retention_period": 600,
    }  # fmt: skip
    assert (found["delay_seconds"], found["polling_wait_seconds"], found["logging_enabled"]) == (7, 3, True)
    assert began - 60 < found["create_time"] <= found["last_modify_time"] <= time.time() + 1
    assert found["queue_name"] == name
    sdk.queue(name, "set_attributes", {"logging_enabled": False})
    assert sdk.queue(name, "get_attributes")["logging_enabled"] is False


def test_a_list_comes_in_pages_and_ends(sdk: Official, up: Up | Running, name: str) -> None:
    for letter in "abc":
        sdk.queue(f"{name}-{letter}", "create", {})
    found: list[str] = []
    marker = ""
    while not found or marker:
        urls, marker = sdk.account("list_queue", f"{name}-", 1, marker)
        assert len(urls) == 1
        found += urls

    assert found == [f"{up.endpoint}/queues/{name}-{letter}" for letter in "abc"]
    assert sdk.account("list_queue", f"{name}-none") == [[], ""]
    (first, *_) = sdk.account("list_with_meta", f"{name}-")
    assert (first["QueueName"], first["VisibilityTimeout"], len(first)) == (f"{name}-a", "30", 13)


def test_a_deleted_queue_is_gone(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x"})
    sdk.queue(made, "delete")

    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("send_message", ({"body": "x"},)), ("batch_send_message", ([{"body": "x"}],)), ("receive_message", (1,)),
        ("batch_receive_message", (2, 1)), ("peek_message", ()), ("batch_peek_message", (2,)), ("get_attributes", ()),
        ("set_attributes", ({"vis_timeout": 5},)), ("delete", ()), ("delete_message", ("x",)),
        ("batch_delete_message", (["x"],)),
        ("change_message_visibility", ("x", 5)),
    ]  # fmt: skip
    assert {method: refused(sdk, made, method, *arguments) for method, arguments in calls} == dict.fromkeys(
        (method for method, _ in calls), "QueueNotExist"
    )


# Messages


def test_a_message_comes_as_it_was_sent(sdk: Official, made: str) -> None:
    began = time.time() * 1000
    sent = sdk.queue(made, "send_message", {"body": "hello"})
    got = sdk.queue(made, "receive_message", 3)

    assert sent["message_body_md5"] == got["message_body_md5"] == "0733351879B2FA9BD05C7CA3061529C0"
    assert (got["message_id"], got["message_body"], got["dequeue_count"], got["priority"]) == (
        sent["message_id"],
        "hello",
        1,
        8,
    )
    assert began - 2000 < got["enqueue_time"] <= got["first_dequeue_time"] <= time.time() * 1000 + 2000
    assert got["next_visible_time"] == got["first_dequeue_time"] + 30_000


@pytest.mark.parametrize("text", ["hello", "zw\u00f6lf <&\"'> \U0001f600", "a\tb\nc", " x ", "]]>", "&lt;"])
def test_a_text_comes_as_it_was_sent(sdk: Official, made: str, text: str) -> None:
    sdk.queue(made, "send_message", {"body": text}, encoding=False)

    assert sdk.queue(made, "receive_message_with_str_body", 2, encoding=False)["message_body"] == text


def test_the_digest_is_of_the_text_on_the_wire(sdk: Official, made: str) -> None:
    sent = sdk.queue(made, "send_message", {"body": "hello"}, encoding=False)

    assert sent["message_body_md5"] == "5D41402ABC4B2A76B9719D911017C592"


def test_properties_of_all_types_come_as_they_were_sent(sdk: Official, made: str) -> None:
    properties = {
        "a": ["STRING", "zw\u00f6lf"],
        "b.c-d_e": ["NUMBER", "-1.5"],
        "f": ["BOOLEAN", "true"],
        "g": ["BINARY", "bytes"],
    }
    system = {"traceparent": "00-1-2-01", "tracestate": "a=b", "baggage": "c=d"}
    sdk.queue(made, "send_message", {"body": "x", "properties": properties, "system": system})
    peeked = sdk.queue(made, "peek_message")
    got = sdk.queue(made, "receive_message", 2)

    assert peeked["user_properties"] == got["user_properties"] == properties
    assert got["system_properties"] == {name: ["STRING", value] for name, value in system.items()}


def test_a_group_comes_as_it_was_sent(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x", "group": "customer-7"})

    assert sdk.queue(made, "receive_message", 2)["message_group_id"] == "customer-7"


def test_a_batch_is_sent_in_its_order(sdk: Official, made: str) -> None:
    sent = sdk.queue(made, "batch_send_message", [{"body": str(number)} for number in range(16)])
    got = sdk.queue(made, "batch_receive_message", 16, 2)

    assert [one["message_body"] for one in got] == [str(number) for number in range(16)]
    assert [one["message_id"] for one in got] == [one["message_id"] for one in sent]


def test_of_a_batch_only_what_is_wrong_fails(sdk: Official, made: str) -> None:
    with pytest.raises(Refused) as found:
        sdk.queue(
            made,
            "batch_send_message",
            [{"body": "a"}, {"body": "b" * 60_000}, {"body": "c", "priority": 17}, {"body": "d"}],
        )

    assert found.value.type == "InvalidArgument"
    assert [sorted(one) for one in found.value.sub] == [
        ["MessageBodyMD5", "MessageId"], ["ErrorCode", "ErrorMessage"], ["ErrorCode", "ErrorMessage"],
        ["MessageBodyMD5", "MessageId"],
    ]  # fmt: skip
    assert [one["message_body"] for one in sdk.queue(made, "batch_receive_message", 16, 1)] == ["a", "d"]


def test_the_first_priority_comes_first_whenever_it_was_sent(sdk: Official, made: str) -> None:
    for priority in (16, 8, 1, None, 2):
        sdk.queue(made, "send_message", {"body": str(priority), "priority": priority})
    peeked = [one["message_body"] for one in sdk.queue(made, "batch_peek_message", 16)]
    got = [sdk.queue(made, "receive_message", 1) for _ in range(5)]

    assert [one["message_body"] for one in got] == peeked == ["1", "2", "8", "None", "16"]
    assert [one["priority"] for one in got] == [1, 2, 8, 8, 16]


def test_a_peek_changes_nothing(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x"})
    for _ in range(3):
        peeked = sdk.queue(made, "peek_message_with_str_body")
    got = sdk.queue(made, "receive_message", 1)

    assert (peeked["dequeue_count"], peeked["receipt_handle"], peeked["message_body"]) == (0, "", "x")
    assert peeked["first_dequeue_time"] == peeked["enqueue_time"] == got["enqueue_time"]
    assert (got["message_id"], got["dequeue_count"]) == (peeked["message_id"], 1)
    assert refused(sdk, made, "peek_message") == "MessageNotExist"


def test_a_peek_sees_what_is_active_alone(sdk: Official, made: str) -> None:
    sdk.queue(made, "batch_send_message", [{"body": "a"}, {"body": "b"}, {"body": "c", "delay": 60}])
    sdk.queue(made, "receive_message", 1)
    found = sdk.queue(made, "batch_peek_message_with_str_body", 16)

    assert [one["message_body"] for one in found] == ["b"]
    counts = sdk.queue(made, "get_attributes")
    assert (counts["active_messages"], counts["inactive_messages"], counts["delay_messages"]) == (1, 1, 1)


def test_a_delayed_message_is_due_by_itself(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x", "delay": 1})

    assert refused(sdk, made, "receive_message", 0) == "MessageNotExist"
    assert sdk.queue(made, "receive_message", 5)["message_body"] == "x"


def test_the_sender_of_a_delayed_message_may_take_it_back_or_bring_it_forward(sdk: Official, made: str) -> None:
    back, forward = (
        sdk.queue(made, "send_message", {"body": body, "delay": 600})["receipt_handle"] for body in ("back", "forward")
    )
    assert sdk.queue(made, "send_message", {"body": "now"})["receipt_handle"] in (None, "")
    assert sdk.queue(made, "get_attributes")["delay_messages"] == 2

    sdk.queue(made, "delete_message", back)
    assert refused(sdk, made, "delete_message", back) == "MessageNotExist"
    later = sdk.queue(made, "change_message_visibility", forward, 2)
    assert later["receipt_handle"] not in (None, "", forward)
    got = [sdk.queue(made, "receive_message", 10)["message_body"] for _ in range(2)]
    assert got == ["now", "forward"]
    assert refused(sdk, made, "change_message_visibility", later["receipt_handle"], 5) == "MessageNotExist"
    assert refused(sdk, made, "delete_message", later["receipt_handle"]) == "MessageNotExist"
    assert sdk.queue(made, "get_attributes")["delay_messages"] == 0


def test_a_delay_of_seven_days_is_taken(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x", "delay": 604_800})

    assert sdk.queue(made, "get_attributes")["delay_messages"] == 1
    assert refused(sdk, made, "send_message", {"body": "x", "delay": 604_801}) == "InvalidArgument"


# Handles


def test_a_handle_is_replaced_by_a_change_and_used_once(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x"})
    got = sdk.queue(made, "receive_message", 2)
    changed = sdk.queue(made, "change_message_visibility", got["receipt_handle"], 60)

    assert changed["receipt_handle"] != got["receipt_handle"]
    assert int(changed["next_visible_time"]) > got["next_visible_time"]
    for handle, method in ((got, "delete_message"), (got, "change_message_visibility")):
        arguments = (handle["receipt_handle"],) if method == "delete_message" else (handle["receipt_handle"], 60)
        assert refused(sdk, made, method, *arguments) == "MessageNotExist"
    sdk.queue(made, "delete_message", changed["receipt_handle"])
    assert refused(sdk, made, "delete_message", changed["receipt_handle"]) == "MessageNotExist"
    assert refused(sdk, made, "delete_message", "nonsense") == "ReceiptHandleError"


def test_a_handle_is_over_when_the_message_is_visible_again(sdk: Official, made: str) -> None:
    sdk.queue(made, "send_message", {"body": "x"})
    got = sdk.queue(made, "receive_message", 2)
    changed = sdk.queue(made, "change_message_visibility", got["receipt_handle"], 1)
    time.sleep(1.2)

    assert refused(sdk, made, "delete_message", changed["receipt_handle"]) == "MessageNotExist"
    assert refused(sdk, made, "change_message_visibility", changed["receipt_handle"], 60) == "MessageNotExist"
    again = sdk.queue(made, "receive_message", 2)
    assert (again["message_id"], again["dequeue_count"]) == (got["message_id"], 2)
    assert (again["enqueue_time"], again["first_dequeue_time"]) == (got["enqueue_time"], got["first_dequeue_time"])
    assert again["receipt_handle"] not in (got["receipt_handle"], changed["receipt_handle"])


def test_of_a_batch_of_handles_only_what_failed_is_told(sdk: Official, made: str) -> None:
    sdk.queue(made, "batch_send_message", [{"body": letter} for letter in "abc"])
    handles = [one["receipt_handle"] for one in sdk.queue(made, "batch_receive_message", 16, 2)]
    sdk.queue(made, "delete_message", handles[0])
    with pytest.raises(Refused) as found:
        sdk.queue(made, "batch_delete_message", [*handles, "nonsense"])

    assert [(one["ErrorCode"], one["ReceiptHandle"]) for one in found.value.sub] == [
        ("MessageNotExist", handles[0]), ("ReceiptHandleError", "nonsense"),
    ]  # fmt: skip
    assert len(found.value.id) == 24
    assert sdk.queue(made, "get_attributes")["inactive_messages"] == 0


def test_all_handles_of_a_batch_may_be_good(sdk: Official, made: str) -> None:
    sdk.queue(made, "batch_send_message", [{"body": letter} for letter in "abc"])
    sdk.queue(
        made, "batch_delete_message", [one["receipt_handle"] for one in sdk.queue(made, "batch_receive_message", 16, 2)]
    )

    assert refused(sdk, made, "receive_message", 0) == "MessageNotExist"


# Waits


def test_a_receive_waits_for_what_is_sent(sdk: Official, up: Up | Running, made: str) -> None:
    other = Official(up.endpoint)
    try:
        with ThreadPoolExecutor(1) as pool:
            began = time.monotonic()
            waiting = pool.submit(other.queue, made, "receive_message", 30)
            time.sleep(0.5)
            sdk.queue(made, "send_message", {"body": "x"})
            assert waiting.result(10)["message_body"] == "x"
        assert time.monotonic() - began < 8
    finally:
        other.close()


@pytest.mark.parametrize(("queue_s", "asked_s", "least_s"), [(0, 1, 0.9), (1, -1, 0.9), (20, 0, 0)])
def test_a_wait_that_is_asked_for_beats_that_of_the_queue(
    sdk: Official, name: str, queue_s: int, asked_s: int, least_s: float
) -> None:
    sdk.queue(name, "create", {"polling_wait_sec": queue_s})
    began = time.monotonic()

    assert refused(sdk, name, "receive_message", asked_s) == "MessageNotExist"
    assert least_s <= time.monotonic() - began < least_s + 3


@pytest.mark.parametrize(("method", "arguments"), [
    ("receive_message", (31,)), ("batch_receive_message", (17, 1)), ("batch_receive_message", (0, 1)),
    ("batch_peek_message", (17,)),
    ("send_message", ({"body": "x", "priority": 17},)), ("send_message", ({"body": "x", "priority": 0},)),
    ("send_message", ({"body": "x" * 60_000},)), ("change_message_visibility", ("x", 0)),
    ("set_attributes", ({"vis_timeout": 43_201},)), ("set_attributes", ({"polling_wait_sec": 31},)),
    ("batch_send_message", ([{"body": "x"}] * 17,)), ("batch_send_message", ([{"body": "x" * 40_000}] * 2,)),
    ("batch_delete_message", (["x"] * 17,)),
])  # fmt: skip
def test_a_value_out_of_its_range_is_told(sdk: Official, made: str, method: str, arguments: tuple[Any, ...]) -> None:
    assert refused(sdk, made, method, *arguments) == "InvalidArgument"


# The rest of the SDK


def test_the_account_has_no_bucket_for_logs(sdk: Official) -> None:
    assert sdk.account("get_attributes") == {"logging_bucket": ""}
    sdk.account("set_attributes", {"logging_bucket": ""})
    with pytest.raises(Refused, match="InvalidArgument"):
        sdk.account("set_attributes", {"logging_bucket": "logs"})


def test_topics_are_refused_in_words_that_the_sdk_understands(sdk: Official) -> None:
    for method, arguments in (
        ("create", ({},)),
        ("get_attributes", ()),
        ("set_attributes", ({},)),
        ("delete", ()),
        ("list_subscription", ()),
    ):
        with pytest.raises(Refused, match="InvalidRequestURL"):
            sdk.topic("news", method, *arguments)
    with pytest.raises(Refused, match="InvalidRequestURL"):
        sdk.topic("news", "publish_message", {"body": "x"})
    for method, arguments in (("get_attributes", ()), ("unsubscribe", ())):
        with pytest.raises(Refused, match="InvalidRequestURL"):
            sdk.subscription("news", "me", method, *arguments)
    with pytest.raises(Refused, match="InvalidRequestURL"):
        sdk.subscription("news", "me", "subscribe", {"endpoint": "http://127.0.0.1:1/"})
    for method in ("list_topic", "open_service"):
        with pytest.raises(Refused, match="InvalidRequestURL"):
            sdk.account(method)


def test_a_tag_is_a_queue_to_the_sdk(sdk: Official, made: str) -> None:
    sdk.queue(f"{made}@billing", "create", {})
    sdk.queue(f"{made}@billing", "send_message", {"body": "x"})
    default, billing = sdk.queue(made, "receive_message", 2), sdk.queue(f"{made}@billing", "receive_message", 2)

    assert default["message_id"] == billing["message_id"]
    sdk.queue(f"{made}@billing", "delete_message", billing["receipt_handle"])
    assert [sdk.queue(at, "get_attributes")["inactive_messages"] for at in (made, f"{made}@billing")] == [1, 0]
    sdk.queue(f"{made}@billing", "delete")
    assert refused(sdk, f"{made}@billing", "peek_message") == "QueueNotExist"
    assert refused(sdk, f"{made}@billing", "set_attributes", {"vis_timeout": 5}) == "InvalidArgument"


def test_a_text_of_another_client_is_read_without_encoding(sdk: Official, up: Up | Running, made: str) -> None:
    httpx.post(
        f"{up.endpoint}/v1/queues/{made}/messages", json={"messages": [{"body": "no Base64!"}]}
    ).raise_for_status()

    with pytest.raises(Failed):
        sdk.queue(made, "peek_message")
    assert sdk.queue(made, "peek_message", encoding=False)["message_body"] == "no Base64!"


def test_a_message_goes_through_four_clients(sdk: Official, up: Up | Running, made: str) -> None:
    """Sent by boto3, received by the SDK of MNS, its lease changed natively, read by EMQ's client
    when that has lapsed.
    """
    sqs = boto3.client(
        "sqs", endpoint_url=up.endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    url = sqs.get_queue_url(QueueName=made)["QueueUrl"]
    sent = sqs.send_message(QueueUrl=url, MessageBody="zw\u00f6lf")["MessageId"]
    got = sdk.queue(made, "receive_message_with_str_body", 2, encoding=False)
    entry = {"handle": got["receipt_handle"], "lease_seconds": 1}
    changed = httpx.post(f"{up.endpoint}/v1/queues/{made}/extend", json={"entries": [entry]}).json()["results"]
    assert changed[0]["status"] == "ok"
    assert refused(sdk, made, "delete_message", got["receipt_handle"]) == "MessageNotExist"
    emq = ThriftClient(up.endpoint, "binary")
    try:
        (again,) = emq.call("receiveMessage", queueName=made, maxReceiveMessageNumber=1, maxReceiveMessageWaitSeconds=5)
    finally:
        emq.close()
    native = httpx.get(f"{up.endpoint}/v1/queues/{made}/messages/{sent}").json()

    assert {sent, got["message_id"], again["messageID"], native["id"]} == {sent}
    assert (got["message_body"], again["messageBody"], native["body"]) == ("zw\u00f6lf",) * 3
    assert (got["dequeue_count"], again["attributes"]["receiveCount"], native["receive_count"]) == (1, "2", 2)
    assert {got["enqueue_time"], int(again["attributes"]["sendTimestamp"]), native["sent_at_ms"]} == {
        native["sent_at_ms"]
    }
    times = {
        got["first_dequeue_time"],
        int(again["attributes"]["firstReceiveTimestamp"]),
        native["first_received_at_ms"],
    }
    assert len(times) == 1
