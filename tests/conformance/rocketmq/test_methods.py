"""Each method by raw gRPC: answers that the Python client does not look at, and codes."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from facade.dialects.rocketmq.messages.recall import RecallHandle
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.rocketmq_pb2 import (
    AddressScheme,
    ClientType,
    Code,
    DigestType,
    FilterType,
    MessageType,
    Permission,
)
from tests.conformance.rocketmq.conftest import Native
from tests.conformance.rocketmq.raw import Raw, connected, receiving, sending
from tests.services import Up


@pytest.fixture
def raw(endpoints: str) -> Iterator[Raw]:
    with connected(endpoints) as raw:
        yield raw


def handles_of(answers: list[pb.ReceiveMessageResponse]) -> list[str]:
    return [one.message.system_properties.receipt_handle for one in answers if one.HasField("message")]


def test_a_route_says_where_the_client_has_reached_us(raw: Raw, topic: str, endpoints: str) -> None:
    reached = pb.Endpoints(
        scheme=AddressScheme.DOMAIN_NAME,
        addresses=[pb.Address(host="mq.example", port=81), pb.Address(host="b", port=2)],
    )
    answer = raw.ask("QueryRoute", pb.QueryRouteRequest(topic=pb.Resource(name=topic), endpoints=reached))
    (queue,) = answer.message_queues
    assert (answer.status.code, queue.permission, queue.broker.id, queue.topic.name) == (
        Code.OK,
        Permission.READ_WRITE,
        0,
        topic,
    )
    assert list(queue.accept_message_types) == [MessageType.NORMAL, MessageType.DELAY, MessageType.TRANSACTION]
    assert [(one.host, one.port) for one in queue.broker.endpoints.addresses] == [
        ("mq.example", 81)
    ]  # a client can't read two names

    own = raw.ask("QueryRoute", pb.QueryRouteRequest(topic=pb.Resource(name=topic))).message_queues[0].broker.endpoints
    assert own.scheme == AddressScheme.IPv4 and f"{own.addresses[0].host}:{own.addresses[0].port}" == endpoints


@pytest.mark.parametrize(
    "reached",
    [
        pb.Endpoints(addresses=[pb.Address(host="a", port=1)]),
        pb.Endpoints(scheme=AddressScheme.IPv4, addresses=[pb.Address(host="", port=1)]),
        pb.Endpoints(scheme=AddressScheme.IPv4, addresses=[pb.Address(host="a", port=0)]),
        pb.Endpoints(scheme=AddressScheme.IPv4, addresses=[pb.Address(host="a", port=1)] * 17),
    ],
)
def test_a_route_to_nowhere_is_refused(raw: Raw, topic: str, reached: pb.Endpoints) -> None:
    assert (
        raw.ask("QueryRoute", pb.QueryRouteRequest(topic=pb.Resource(name=topic), endpoints=reached)).status.code
        == 40001
    )


def test_an_assignment_is_the_same_queue_each_time(raw: Raw, topic: str) -> None:
    request = pb.QueryAssignmentRequest(topic=pb.Resource(name=topic), group=pb.Resource(name="g"))
    first, second = raw.ask("QueryAssignment", request), raw.ask("QueryAssignment", request)
    assert first == second and len(first.assignments) == 1


def test_a_queue_of_sqs_that_is_fifo_is_called_without_its_suffix(raw: Raw, name: str, native: Native) -> None:
    native("POST", "/v1/queues", {"name": f"{name}.fifo", "fifo": True, "content_dedup": True})
    answer = raw.ask("QueryRoute", pb.QueryRouteRequest(topic=pb.Resource(name=name)))
    assert list(answer.message_queues[0].accept_message_types) == [MessageType.FIFO]


def test_a_batch_is_all_or_none(raw: Raw, topic: str) -> None:
    request = sending(topic, b"a", b"b", b"c")
    answer = raw.ask("SendMessage", request)
    assert [entry.message_id for entry in answer.entries] == [
        one.system_properties.message_id for one in request.messages
    ]
    assert len({entry.transaction_id for entry in answer.entries}) == 3
    bad = sending(topic, b"d", b"")
    assert raw.ask("SendMessage", bad).status.code == Code.MESSAGE_BODY_EMPTY
    mixed = sending(topic, b"e", b"f")
    mixed.messages[1].topic.name = "other"
    assert raw.ask("SendMessage", mixed).status.code == Code.MESSAGE_CORRUPTED
    assert raw.ask("SendMessage", pb.SendMessageRequest()).status.code == Code.MESSAGE_CORRUPTED

    raw_bodies = [one.message.body for one in raw.received(receiving(topic, wait_s=2)) if one.HasField("message")]
    more = [one.message.body for one in raw.received(receiving(topic, wait_s=1)) if one.HasField("message")]
    assert sorted(raw_bodies + more) == [b"a", b"b", b"c"]


def test_an_ordered_message_that_is_sent_again_is_there_once(raw: Raw, ordered: str) -> None:
    request = sending(ordered, b"m", message_group="g")
    first, second = raw.ask("SendMessage", request), raw.ask("SendMessage", request)
    assert first.entries[0].transaction_id == second.entries[0].transaction_id
    answers = raw.received(receiving(ordered, wait_s=2))
    assert [one.message.system_properties.message_group for one in answers if one.HasField("message")] == ["g"]


@pytest.mark.parametrize(
    ("digest", "code"),
    [
        (pb.Digest(type=DigestType.CRC32, checksum="E8B7BE43"), Code.OK),
        (pb.Digest(type=DigestType.MD5, checksum="0cc175b9c0f1b6a831c399e269772661"), Code.OK),
        (pb.Digest(type=DigestType.SHA1, checksum="86F7E437FAA5A7FCE15D1DDCB9EAEAEA377667B8"), Code.OK),
        (pb.Digest(type=DigestType.CRC32, checksum="00000000"), Code.MESSAGE_CORRUPTED),
        (pb.Digest(type=DigestType.SHA1, checksum=""), Code.MESSAGE_CORRUPTED),
    ],
)
def test_a_body_that_came_otherwise_than_it_was_sent_is_refused(
    raw: Raw, topic: str, digest: pb.Digest, code: int
) -> None:
    assert raw.ask("SendMessage", sending(topic, b"a", body_digest=digest)).status.code == code


def test_a_receive_says_a_status_messages_and_its_time(raw: Raw, topic: str) -> None:
    raw.ask("SendMessage", sending(topic, b"a", body_encoding=2))
    status, message, at = raw.received(receiving(topic, wait_s=5))
    assert (status.status.code, at.HasField("delivery_timestamp")) == (Code.OK, True)
    properties = message.message.system_properties
    assert (properties.delivery_attempt, properties.body_encoding, properties.body_digest.checksum) == (
        1,
        2,
        "0CC175B9C0F1B6A831C399E269772661",
    )
    assert (
        properties.receipt_handle
        and properties.HasField("queue_offset")
        and properties.invisible_duration.seconds == 15
    )
    (nothing,) = raw.received(receiving(topic))
    assert nothing.status.code == Code.MESSAGE_NOT_FOUND


@pytest.mark.parametrize("seconds", [0, 9, 43_201])
def test_an_invisible_duration_has_bounds(raw: Raw, topic: str, seconds: int) -> None:
    (answer,) = raw.received(receiving(topic, invisible_duration={"seconds": seconds}))
    assert answer.status.code == Code.ILLEGAL_INVISIBLE_TIME


def test_acks_are_answered_one_by_one(raw: Raw, topic: str) -> None:
    raw.ask("SendMessage", sending(topic, b"a", b"b"))
    handles: list[str] = []
    while len(handles) < 2:
        handles += handles_of(raw.received(receiving(topic, wait_s=2)))

    def ack(*handles: str) -> pb.AckMessageResponse:
        entries = [pb.AckMessageEntry(message_id="m", receipt_handle=handle) for handle in handles]
        names = {"group": pb.Resource(name="raw"), "topic": pb.Resource(name=topic)}
        answer: pb.AckMessageResponse = raw.ask("AckMessage", pb.AckMessageRequest(entries=entries, **names))
        return answer

    mixed = ack(handles[0], "no handle")
    assert mixed.status.code == Code.MULTIPLE_RESULTS
    assert [entry.status.code for entry in mixed.entries] == [Code.OK, Code.INVALID_RECEIPT_HANDLE]
    assert ack("").status.code == Code.INVALID_RECEIPT_HANDLE
    assert ack().status.code == Code.BAD_REQUEST
    assert ack(*handles).status.code == Code.OK  # one of them again


def test_a_change_has_bounds_and_a_handle(raw: Raw, topic: str) -> None:
    raw.ask("SendMessage", sending(topic, b"a"))
    (handle,) = handles_of(raw.received(receiving(topic, wait_s=5)))

    def change(seconds: int, handle: str = handle) -> Any:
        names = {"group": pb.Resource(name="raw"), "topic": pb.Resource(name=topic)}
        request = pb.ChangeInvisibleDurationRequest(
            receipt_handle=handle, invisible_duration={"seconds": seconds}, **names
        )
        return raw.ask("ChangeInvisibleDuration", request)

    assert change(-1).status.code == change(43_201).status.code == Code.ILLEGAL_INVISIBLE_TIME
    assert change(5, "").status.code == Code.INVALID_RECEIPT_HANDLE
    answer = change(43_200)
    assert (answer.status.code, answer.receipt_handle) == (Code.OK, handle)
    assert change(0).status.code == Code.OK
    assert len(handles_of(raw.received(receiving(topic, wait_s=5)))) == 1
    assert change(5).status.code == Code.INVALID_RECEIPT_HANDLE


def test_a_message_is_forwarded_to_the_dead_letter_queue_of_its_group(raw: Raw, topic: str) -> None:
    raw.ask("SendMessage", sending(topic, b"a"))
    (handle,) = handles_of(raw.received(receiving(topic, group="forwarding", wait_s=5)))
    names = {"group": pb.Resource(name="forwarding"), "topic": pb.Resource(name=topic)}
    request = pb.ForwardMessageToDeadLetterQueueRequest(receipt_handle=handle, message_id="m", **names)
    assert raw.ask("ForwardMessageToDeadLetterQueue", request).status.code == Code.OK
    answers = raw.received(receiving("%DLQ%forwarding", group="dead", wait_s=10))
    (letter,) = [one.message for one in answers if one.HasField("message")]
    assert letter.topic.name == "%DLQ%forwarding" and letter.system_properties.dead_letter_queue.topic == topic
    assert raw.ask("ForwardMessageToDeadLetterQueue", request).status.code == Code.INVALID_RECEIPT_HANDLE


def test_what_a_client_holds_that_goes_is_received_by_others_at_once(raw: Raw, topic: str) -> None:
    raw.ask("SendMessage", sending(topic, b"a", b"b"))
    first: list[str] = []
    while len(first) < 2:
        first += handles_of(raw.received(receiving(topic, wait_s=2, auto_renew=True)))
    names = {"group": pb.Resource(name="raw"), "topic": pb.Resource(name=topic)}
    kept = pb.ChangeInvisibleDurationRequest(receipt_handle=first[0], invisible_duration={"seconds": 60}, **names)
    assert raw.ask("ChangeInvisibleDuration", kept).status.code == Code.OK  # this one is the client's own now
    assert raw.ask("NotifyClientTermination", pb.NotifyClientTerminationRequest()).status.code == Code.OK

    (message,) = [one.message for one in raw.received(receiving(topic, wait_s=5)) if one.HasField("message")]
    assert message.system_properties.delivery_attempt == 2
    (nothing,) = raw.received(receiving(topic, wait_s=1))
    assert nothing.status.code == Code.MESSAGE_NOT_FOUND


def told(raw: Raw, settings: pb.Settings) -> pb.TelemetryCommand:
    done = threading.Event()

    def requests() -> Iterator[bytes]:
        yield pb.TelemetryCommand(settings=settings).SerializeToString()
        done.wait(20)

    try:
        command: pb.TelemetryCommand = pb.TelemetryCommand.FromString(next(raw.telemetry(requests())))
        return command
    finally:
        done.set()


def test_a_producer_hears_its_settings(raw: Raw) -> None:
    command = told(
        raw, pb.Settings(client_type=ClientType.PRODUCER, publishing=pb.Publishing(topics=[pb.Resource(name="orders")]))
    )
    assert command.status.code == Code.OK
    assert command.settings.publishing.max_body_size == 4_000_000 and command.settings.publishing.validate_message_type
    assert command.settings.backoff_policy.max_attempts == 3 and command.settings.HasField("metric")


def test_a_consumer_hears_its_settings_and_is_subscribed(raw: Raw, topic: str, native: Native) -> None:
    def subscription(*topics: str, expression: str = "*") -> pb.Settings:
        wanted = pb.FilterExpression(type=FilterType.TAG, expression=expression)
        entries = [pb.SubscriptionEntry(topic=pb.Resource(name=one), expression=wanted) for one in topics]
        return pb.Settings(
            client_type=ClientType.PUSH_CONSUMER,
            subscription=pb.Subscription(group=pb.Resource(name="told"), subscriptions=entries),
        )

    command = told(raw, subscription(topic, "no_such_topic"))
    shown = command.settings
    assert (command.status.code, shown.subscription.fifo, shown.subscription.receive_batch_size) == (Code.OK, False, 32)
    assert shown.subscription.long_polling_timeout.seconds == 20 and shown.backoff_policy.max_attempts == 3
    assert [one.seconds for one in shown.backoff_policy.customized_backoff.next][:4] == [1, 5, 10, 30]
    (tag,) = [tag for tag in native("GET", f"/v1/queues/{topic}/tags")["tags"] if tag["name"] == "told"]
    assert tag["redrive_policy"] == {"dead_letter_queue": "dlq.told", "max_receive_count": 3, "stopped": ""}
    assert native("GET", "/v1/queues/dlq.told")["retention_from"] == "send"

    assert told(raw, subscription(topic, expression="red")).status.code == Code.ILLEGAL_FILTER_EXPRESSION


def test_settings_that_are_none_end_the_stream(raw: Raw) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        told(raw, pb.Settings(client_type=ClientType.PRODUCER))
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_half_message_is_alone_and_ends_once(raw: Raw, topic: str) -> None:
    half = {"message_type": MessageType.TRANSACTION}
    assert raw.ask("SendMessage", sending(topic, b"a", b"b", **half)).status.code == Code.BAD_REQUEST
    grouped = sending(topic, b"a", message_group="g", **half)
    assert raw.ask("SendMessage", grouped).status.code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    late = sending(topic, b"a", orphaned_transaction_recovery_duration={"seconds": 3601}, **half)
    assert raw.ask("SendMessage", late).status.code == Code.BAD_REQUEST
    sent = raw.ask("SendMessage", sending(topic, b"a", orphaned_transaction_recovery_duration={"seconds": 600}, **half))
    (entry,) = sent.entries

    def end(resolution: int, transaction: str = entry.transaction_id) -> int:
        names = {"topic": pb.Resource(name=topic), "message_id": entry.message_id}
        request = pb.EndTransactionRequest(transaction_id=transaction, **names)
        request.resolution = resolution  # type: ignore[assignment]
        code: int = raw.ask("EndTransaction", request).status.code
        return code

    for wrong in ("", "x" * 129, "nothing"):
        assert end(1, wrong) == Code.INVALID_TRANSACTION_ID
    assert end(0) == Code.OK
    (nothing,) = raw.received(receiving(topic))
    assert nothing.status.code == Code.MESSAGE_NOT_FOUND
    assert [end(1), end(1), end(2)] == [Code.OK, Code.OK, Code.INVALID_TRANSACTION_ID]
    assert [one.message.body for one in raw.received(receiving(topic, wait_s=5)) if one.HasField("message")] == [b"a"]


@pytest.mark.parametrize("handle", ["", "!", "djE=", "\xff", "x" * 3000])
def test_what_is_no_recall_handle_is_refused(raw: Raw, topic: str, handle: str) -> None:
    request = pb.RecallMessageRequest(topic=pb.Resource(name=topic), recall_handle=handle)
    assert raw.ask("RecallMessage", request).status.code == Code.BAD_REQUEST
    request.recall_handle = RecallHandle("other", 1, "id", "m").text()
    assert raw.ask("RecallMessage", request).status.code == Code.BAD_REQUEST
    for due_ms in (1, 2**40):  # of no message of ours
        request.recall_handle = RecallHandle(topic, due_ms, "00000000-0000-8000-8000-000000000000", "m").text()
        assert raw.ask("RecallMessage", request).status.code == Code.MESSAGE_NOT_FOUND


@pytest.mark.parametrize(
    "method", ["PullMessage", "UpdateOffset", "GetOffset", "QueryOffset", "SyncLiteSubscription", "Nothing"]
)
def test_methods_that_are_not_served_are_unimplemented(raw: Raw, method: str) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        raw.unary(method, b"")
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_requests_are_counted_by_method_and_code(rocketmq_up: Up, raw: Raw, topic: str) -> None:
    for _ in range(20):
        raw.ask("Heartbeat", pb.HeartbeatRequest())
    end = time.monotonic() + 20
    while time.monotonic() < end:  # each scrape is answered by one of the two workers
        with urllib.request.urlopen(f"{rocketmq_up.endpoint}/metrics", timeout=10) as reply:
            said = reply.read().decode()
            if re.search(r'leaseway_requests_total\{status="20000",verb="rocketmq.Heartbeat"[,}]', said):
                return
    raise AssertionError("no worker counts heartbeats")


def test_a_timed_message_is_due_when_its_topic_allows(raw: Raw, topic: str, native: Native) -> None:
    native("PATCH", f"/v1/queues/{topic}", {"max_delay_seconds": 3600})
    now = int(time.time())
    assert (
        raw.ask("SendMessage", sending(topic, b"m", delivery_timestamp={"seconds": now + 3000})).status.code == Code.OK
    )
    for after_s, says in ((4000, "max_delay_ms"), (4 * 86_400, "LEASEWAY_ROCKETMQ_MAX_DELAY_S")):
        answer = raw.ask("SendMessage", sending(topic, b"m", delivery_timestamp={"seconds": now + after_s}))
        assert (answer.status.code, says in answer.status.message) == (Code.ILLEGAL_DELIVERY_TIME, True)


@pytest.mark.parametrize(("most", "bound"), [(4_016_384, 4_000_000), (262_144, 245_760), (1000, 500)])
def test_a_topic_keeps_bodies_up_to_the_bound_that_settings_announce(
    raw: Raw, native: Native, name: str, most: int, bound: int
) -> None:
    native("POST", "/v1/queues", {"name": name, "partitions": 1, "max_message_bytes": most})
    publishing = pb.Publishing(topics=[pb.Resource(name=name)])
    assert told(raw, pb.Settings(publishing=publishing)).settings.publishing.max_body_size == bound
    assert raw.ask("SendMessage", sending(name, b"x" * (bound + 1))).status.code == Code.MESSAGE_BODY_TOO_LARGE
    properties = {"born_host": "h" * 50, "keys": ["k" * min(bound // 4, 16_000)]}
    assert raw.ask("SendMessage", sending(name, b"x" * bound, **properties)).status.code == Code.OK
    (message,) = [one.message for one in raw.received(receiving(name, wait_s=10)) if one.HasField("message")]
    assert message.body == b"x" * bound and message.system_properties.born_host == "h" * 50
    shown = json.dumps(native("POST", f"/v1/queues/{name}/receive", {"max": 1, "wait_seconds": 10}))
    assert "__BORNHOST" in shown and "h" * 50 not in shown
