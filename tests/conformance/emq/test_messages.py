"""Messages by EMQ's own Python client: send, receive, settle, peek, and what is refused."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import pytest

from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Galaxy, Refused
from tests.conformance.emq.thrift_client import ThriftClient
from tests.services import Up


def send(galaxy: Galaxy, queue: str, body: str, **more: Any) -> dict[str, Any]:
    sent: dict[str, Any] = galaxy.call("sendMessage", queueName=queue, messageBody=body, **more)
    return sent


def receive(galaxy: Galaxy, queue: str, most: int = 10, wait_s: int = 2, **more: Any) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = galaxy.call(
        "receiveMessage", queueName=queue, maxReceiveMessageNumber=most, maxReceiveMessageWaitSeconds=wait_s, **more
    )
    return got


def delete(galaxy: Galaxy, queue: str, *messages: dict[str, Any]) -> dict[str, Any]:
    entries = [{"receiptHandle": one["receiptHandle"]} for one in messages]
    done: dict[str, Any] = galaxy.call(
        "deleteMessageBatch", queueName=queue, deleteMessageBatchRequestEntryList=entries
    )
    return done


def test_a_message_is_sent_received_and_deleted(galaxy: Galaxy, queue: str) -> None:
    before = time.time() * 1000
    sent = send(galaxy, queue, "hello")
    assert sent["bodyLength"] == 5 and sent["bodyMd5"] == hashlib.md5(b"hello").hexdigest()
    assert abs(sent["sendTimestamp"] - before) < 5_000
    (got,) = receive(galaxy, queue)
    assert (got["messageID"], got["messageBody"]) == (sent["messageID"], "hello")
    shown = got["attributes"]
    assert shown["receiveCount"] == "1" and shown["messageLength"] == "5" and shown["md5OfBody"] == sent["bodyMd5"]
    assert int(shown["sendTimestamp"]) == sent["sendTimestamp"] <= int(shown["receiveTimestamp"])
    assert shown["firstReceiveTimestamp"] == shown["receiveTimestamp"] and shown["senderId"] == "anonymous"
    assert galaxy.call("deleteMessage", queueName=queue, receiptHandle=got["receiptHandle"]) is None
    state = galaxy.call("getQueueInfo", queueName=queue)["queueState"]
    assert state["approximateMessageNumber"] == 0
    # A handle whose delivery is over is silently fine.
    galaxy.call("deleteMessage", queueName=queue, receiptHandle=got["receiptHandle"])


def test_attributes_come_back_with_their_types(galaxy: Galaxy, queue: str) -> None:
    given = {"color": {"type": "string", "stringValue": "red"}, "size": {"type": "STRING.Number", "stringValue": "7"}}
    send(galaxy, queue, "m", messageAttributes=given)
    (got,) = receive(galaxy, queue)
    assert got["messageAttributes"] == given


def test_a_batch_is_all_or_none(galaxy: Galaxy, queue: str) -> None:
    entries = [{"entryId": str(n), "messageBody": f"body {n}"} for n in range(10)]
    sent = galaxy.call("sendMessageBatch", queueName=queue, sendMessageBatchRequestEntryList=entries)
    assert [entry["entryId"] for entry in sent["successful"]] == [str(n) for n in range(10)]
    got = receive(galaxy, queue, 100)
    assert [one["messageBody"] for one in got] == [f"body {n}" for n in range(10)]
    assert delete(galaxy, queue, *got)["successful"] == [one["receiptHandle"] for one in got]
    wrong = [*entries[:2], {"entryId": "x", "messageBody": "late", "delaySeconds": 901}]
    told = galaxy.call("sendMessageBatch", checked=False, queueName=queue, sendMessageBatchRequestEntryList=wrong)
    assert "successful" not in told and {entry["id"]: entry["reason"]["errorCode"] for entry in told["failed"]} == {
        "0": 1,
        "1": 1,
        "x": 2,
    }
    assert receive(galaxy, queue, wait_s=0) == []


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([], 35),
        ([{"entryId": "", "messageBody": "m"}], 35),
        ([{"entryId": "a", "messageBody": "m"}, {"entryId": "a", "messageBody": "n"}], 12),
    ],
)
def test_a_batch_of_a_wrong_shape_is_refused(
    galaxy: Galaxy, queue: str, entries: list[dict[str, str]], code: int
) -> None:
    with pytest.raises(Refused) as refused:
        galaxy.call("sendMessageBatch", checked=False, queueName=queue, sendMessageBatchRequestEntryList=entries)
    assert refused.value.code == code


def test_a_lease_is_changed_and_a_message_comes_again(galaxy: Galaxy, queue: str) -> None:
    send(galaxy, queue, "m", invisibilitySeconds=600)
    (got,) = receive(galaxy, queue)
    assert receive(galaxy, queue, wait_s=0) == []
    galaxy.call(
        "changeMessageVisibilitySeconds", queueName=queue, receiptHandle=got["receiptHandle"], invisibilitySeconds=0
    )
    (again,) = receive(galaxy, queue)
    assert again["messageID"] == got["messageID"] and again["receiptHandle"] != got["receiptHandle"]
    assert again["attributes"]["receiveCount"] == "2"
    entries = [
        {"receiptHandle": again["receiptHandle"], "invisibilitySeconds": 100},
        {"receiptHandle": "none", "invisibilitySeconds": 1},
    ]
    told = galaxy.call(
        "changeMessageVisibilitySecondsBatch", queueName=queue, changeMessageVisibilityRequestEntryList=entries
    )
    assert told["successful"] == [again["receiptHandle"]]
    assert [(one["id"], one["reason"]["errorCode"]) for one in told["failed"]] == [("none", 11)]


def test_a_delay_is_kept(galaxy: Galaxy, queue: str) -> None:
    began = time.monotonic()
    send(galaxy, queue, "later", delaySeconds=1)
    assert receive(galaxy, queue, wait_s=0) == []
    (got,) = receive(galaxy, queue, wait_s=5)
    assert got["messageBody"] == "later" and time.monotonic() - began >= 1


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"messageBody": ""}, 10),
        ({"delaySeconds": -1}, 2),
        ({"delaySeconds": 901}, 2),
        ({"invisibilitySeconds": 1}, 2),
        ({"invisibilitySeconds": 43_201}, 2),
        ({"priority": 0}, 2),
        ({"priority": 17}, 2),
        ({"messageBody": "x" * 262_145}, 34),
        ({"messageAttributes": {"a": {"type": "string"}}}, 2),
        ({"messageAttributes": {"a": {"type": "number", "stringValue": "1"}}}, 2),
        ({"messageAttributes": {"a": {"type": "empty"}}}, 2),
        ({"messageAttributes": {"DLQ.sourceQueue": {"type": "string", "stringValue": "q"}}}, 2),
        ({"messageAttributes": {"a b": {"type": "string", "stringValue": "q"}}}, 2),
        ({"queueName": "anonymous/none"}, 6),
        ({"queueName": "somebody/else"}, 6),
        ({"queueName": ""}, 5),
    ],
)
def test_a_wrong_send_is_refused_and_stores_nothing(
    galaxy: Galaxy, queue: str, more: dict[str, Any], code: int
) -> None:
    with pytest.raises(Refused) as refused:
        galaxy.call("sendMessage", **{"checked": False, "queueName": queue, "messageBody": "m", **more})
    assert refused.value.code == code and refused.value.id == "12345678"
    assert galaxy.call("getQueueInfo", queueName=queue)["queueState"]["approximateMessageNumber"] == 0


@pytest.mark.parametrize(
    "more", [{"maxReceiveMessageNumber": 0}, {"maxReceiveMessageNumber": 101}, {"maxReceiveMessageWaitSeconds": 21}]
)
def test_a_wrong_receive_is_refused(galaxy: Galaxy, queue: str, more: dict[str, int]) -> None:
    with pytest.raises(Refused) as refused:
        galaxy.call("receiveMessage", checked=False, queueName=queue, **more)
    assert refused.value.code == 2


@pytest.mark.parametrize("method", ["deleteMessage", "deadMessage"])
def test_a_handle_of_nobody_is_refused(galaxy: Galaxy, queue: str, method: str) -> None:
    with pytest.raises(Refused) as refused:
        galaxy.call(method, checked=False, queueName=queue, receiptHandle="garbage")
    assert refused.value.code in (1, 11)


def test_a_dead_message_goes_to_the_dead_letter_queue(galaxy: Galaxy, queue: str, name: str) -> None:
    dead = galaxy.call("createQueue", queueName=f"{name}_dead", deadLetterQueue=True)["queueName"]
    policy = {"dlqName": dead, "maxReceiveTime": 2}
    assert (
        galaxy.call("setQueueRedrivePolicy", checked=False, queueName=queue, redrivePolicy=policy)["redrivePolicy"]
        == policy
    )
    sent = send(galaxy, queue, "m")
    (got,) = receive(galaxy, queue)
    galaxy.call("deadMessage", queueName=queue, receiptHandle=got["receiptHandle"])
    (died,) = receive(galaxy, dead, wait_s=5)
    assert died["messageBody"] == "m" and died["messageID"] != sent["messageID"]
    assert died["messageAttributes"] == {"DLQ.sourceQueue": {"type": "STRING", "stringValue": queue}}
    shown = died["attributes"]
    assert (shown["sourceQueueName"], shown["originalMessageID"], shown["originalReceiveCount"]) == (
        queue,
        sent["messageID"],
        "1",
    )
    assert int(shown["deadTimestamp"]) >= sent["sendTimestamp"]
    with pytest.raises(Refused) as refused:
        galaxy.call("deadMessage", queueName=dead, receiptHandle=died["receiptHandle"])
    assert refused.value.code == 1
    with pytest.raises(Refused) as refused:
        galaxy.call(
            "setQueueRedrivePolicy",
            checked=False,
            queueName=dead,
            redrivePolicy={"dlqName": queue, "maxReceiveTime": 1},
        )
    assert refused.value.code == 1


@pytest.fixture
def topics(galaxy: Galaxy, name: str) -> str:
    """The full name of a new topic queue."""
    made: str = galaxy.call("createQueue", queueName=f"{name}_topics", topicQueue=True)["queueName"]
    return made


def test_one_message_of_a_topic_is_in_flight_at_a_time_and_they_come_in_order(galaxy: Galaxy, topics: str) -> None:
    for number in range(3):
        for topic in ("a", "b"):
            send(galaxy, topics, f"{topic}{number}", topic=topic)
    seen: list[str] = []
    for _ in range(3):
        got = receive(galaxy, topics, 100)
        assert sorted(one["attributes"]["topic"] for one in got) == ["a", "b"]
        assert receive(galaxy, topics, 100, wait_s=0) == []
        seen += sorted(one["messageBody"] for one in got)
        delete(galaxy, topics, *got)
    assert seen == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_the_first_message_of_a_topic_comes_again_before_the_next(galaxy: Galaxy, topics: str) -> None:
    for number in range(2):
        send(galaxy, topics, str(number), topic="t")
    (got,) = receive(galaxy, topics)
    galaxy.call(
        "changeMessageVisibilitySeconds", queueName=topics, receiptHandle=got["receiptHandle"], invisibilitySeconds=0
    )
    (again,) = receive(galaxy, topics)
    assert again["messageBody"] == "0" and again["attributes"]["receiveCount"] == "2"


def test_messages_without_a_topic_have_no_order_in_a_topic_queue(galaxy: Galaxy, topics: str) -> None:
    for number in range(5):
        send(galaxy, topics, str(number))
    got = receive(galaxy, topics, 100)
    assert sorted(one["messageBody"] for one in got) == list("01234")
    assert all("topic" not in one["attributes"] for one in got)


def test_a_batch_without_a_topic_is_independent_messages(galaxy: Galaxy, topics: str) -> None:
    entries = [{"entryId": str(number), "messageBody": str(number)} for number in range(30)]
    told = galaxy.call("sendMessageBatch", queueName=topics, sendMessageBatchRequestEntryList=entries)
    assert len(told["successful"]) == 30
    got = receive(galaxy, topics, 100)
    assert sorted(one["messageBody"] for one in got) == sorted(map(str, range(30)))
    assert all("topic" not in one["attributes"] for one in got)

    galaxy.call("sendMessageBatch", queueName=topics, sendMessageBatchRequestEntryList=entries, topic="t")
    assert [one["messageBody"] for one in receive(galaxy, topics, 100)] == ["0"]


def test_a_peek_does_not_show_what_was_deleted(galaxy: Galaxy, queue: str, up: Up | Running) -> None:
    ids = [send(galaxy, queue, str(number))["messageID"] for number in range(3)]
    client = ThriftClient(up.endpoint, "compact")
    client.call("deletePeekMessage", queueName=queue, receiptHandle=ids[0])
    (got, other) = receive(galaxy, queue)
    delete(galaxy, queue, got)

    def peek(**arg: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.call("peekMessage", queueName=queue, peekMessageArg=arg)
        return found

    spans = [peek(partitionTimeIntervalAndMaxNum={"maxNum": 200, "partitionId": partition}) for partition in range(4)]
    assert [one["messageID"] for span in spans for one in span] == [other["messageID"]]
    listed = {one["messageID"]: "e" in one for one in peek(receiptHandleList=ids)}
    assert listed == {one: one != other["messageID"] for one in ids}
    with pytest.raises(Refused):
        peek(receiptHandle=ids[0])

    galaxy.call("createTag", queueName=queue, tagName="audit", startTimestamp=0)
    delete(galaxy, queue, other)
    (held,) = peek(receiptHandle=other["messageID"])
    assert held["messageID"] == other["messageID"], "the other tag has it still"
    client.close()


def test_a_topic_queue_has_no_policy_and_is_no_dead_letter_queue(galaxy: Galaxy, topics: str, queue: str) -> None:
    assert galaxy.call("getQueueInfo", queueName=topics)["topicQueue"] is True
    for source, target in ((topics, queue), (queue, topics)):
        with pytest.raises(Refused) as refused:
            galaxy.call(
                "setQueueRedrivePolicy",
                checked=False,
                queueName=source,
                redrivePolicy={"dlqName": target, "maxReceiveTime": 1},
            )
        assert refused.value.code == 1
    with pytest.raises(Refused) as refused:
        send(galaxy, topics, "m", topic="t", delaySeconds=1)
    assert refused.value.code == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "string", "stringValue": "red"}, ["1", "4"]),
        ({"type": "string.Tone", "stringValue": "red"}, ["2"]),
        ({"type": "empty"}, ["1", "2", "3", "4"]),
    ],
    ids=["equal", "another type", "there"],
)
def test_a_receive_may_have_a_filter_of_its_own(
    galaxy: Galaxy, queue: str, value: dict[str, str], expected: list[str]
) -> None:
    colours = {
        "1": {"type": "string", "stringValue": "red"},
        "2": {"type": "string.Tone", "stringValue": "red"},
        "3": {"type": "string", "stringValue": "blue"},
        "4": {"type": "string", "stringValue": "red"},
    }
    galaxy.call("sendMessage", queueName=queue, messageBody="0")
    for body, colour in colours.items():
        galaxy.call("sendMessage", queueName=queue, messageBody=body, messageAttributes={"colour": colour})
    got = galaxy.call("receiveMessage", queueName=queue, attributeName="colour", attributeValue=value)
    assert [one["messageBody"] for one in got] == expected
    rest = galaxy.call("receiveMessage", queueName=queue)
    assert sorted(one["messageBody"] for one in [*got, *rest]) == ["0", "1", "2", "3", "4"]
    assert {one["attributes"]["receiveCount"] for one in rest} == {"1"}
