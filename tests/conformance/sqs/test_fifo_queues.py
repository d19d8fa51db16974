"""FIFO queues as queues: names, attributes, kinds; and what their sends must name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.sqs.conftest import (
    EXISTS,
    HIGH,
    INVALID,
    MakeFifo,
    Refused,
    counts,
    put,
    receive_all,
    take,
    text,
)

BAD_NAME = ("InvalidAttributeName", "InvalidAttributeName", 400)
BAD_VALUE = ("InvalidAttributeValue", "InvalidAttributeValue", 400)
MISSING = ("MissingParameter", "MissingRequiredParameterException", 400)
UNSUPPORTED = ("AWS.SimpleQueueService.UnsupportedOperation", "UnsupportedOperation", 400)
FIFO_NAMES = ["FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"]


def attributes(sqs: Any, url: str) -> dict[str, str]:
    return dict(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=FIFO_NAMES).get("Attributes", {}))


# CreateQueue, GetQueueAttributes, SetQueueAttributes


def test_a_fifo_queue_shows_its_attributes_and_their_defaults(sqs: Any, fifo: str, queue: str) -> None:
    expected = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoThroughputLimit": "perQueue",
    }

    assert attributes(sqs, fifo) == expected
    assert expected.items() <= sqs.get_queue_attributes(QueueUrl=fifo, AttributeNames=["All"])["Attributes"].items()
    assert attributes(sqs, queue) == {}


def test_what_a_fifo_queue_is_made_with_is_shown(sqs: Any, make_fifo: MakeFifo) -> None:
    url = make_fifo(ContentBasedDeduplication="true", **HIGH)

    assert attributes(sqs, url) == {"FifoQueue": "true", "ContentBasedDeduplication": "true", **HIGH}
    assert make_fifo(ContentBasedDeduplication="true", **HIGH) == make_fifo() == url


@pytest.mark.parametrize(
    ("suffix", "given"),
    [
        ("", {"FifoQueue": "true"}),
        (".fifo", {}),
        (".fifo", {"FifoQueue": "false"}),
        (".fifo.fifo", {"FifoQueue": "true"}),
        (".FIFO", {"FifoQueue": "true"}),
        ("x" * 75 + ".fifo", {"FifoQueue": "true"}),
    ],
)
def test_name_and_kind_must_agree(sqs: Any, name: str, refused: Refused, suffix: str, given: dict[str, str]) -> None:
    assert refused(sqs.create_queue, QueueName=name + suffix, Attributes=given) == INVALID


def test_the_name_of_a_fifo_queue_has_eighty_characters_with_its_end(sqs: Any, name: str, refused: Refused) -> None:
    longest = name.ljust(75, "x")
    made = sqs.create_queue(QueueName=f"{longest}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]

    assert made.endswith(f"/{longest}.fifo") and sqs.get_queue_url(QueueName=f"{longest}.fifo")["QueueUrl"] == made
    assert refused(sqs.create_queue, QueueName=f"{longest}x.fifo", Attributes={"FifoQueue": "true"}) == INVALID


@pytest.mark.parametrize("attribute", FIFO_NAMES)
def test_an_attribute_of_fifo_queues_is_unknown_to_a_standard_one(
    sqs: Any, queue: str, refused: Refused, name: str, attribute: str
) -> None:
    value = {"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}.get(attribute, "false")

    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes={attribute: value}) == BAD_NAME
    assert refused(sqs.create_queue, QueueName=f"{name}-b", Attributes={attribute: value}) == BAD_NAME


@pytest.mark.parametrize(
    "given",
    [
        {"ContentBasedDeduplication": "maybe"},
        {"DeduplicationScope": "group"},
        {"FifoThroughputLimit": "none"},
        {"FifoThroughputLimit": "perMessageGroupId"},
        {"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "queue"},
    ],
)
def test_a_bad_value_of_a_fifo_attribute_is_refused(
    sqs: Any, name: str, make_fifo: MakeFifo, refused: Refused, given: dict[str, str]
) -> None:
    fifo = {"FifoQueue": "true"}
    assert refused(sqs.create_queue, QueueName=f"{name}.fifo", Attributes={**fifo, **given}) == BAD_VALUE
    assert refused(sqs.set_queue_attributes, QueueUrl=make_fifo(), Attributes=given) == BAD_VALUE


def test_a_fifo_queue_stays_one(sqs: Any, fifo: str, refused: Refused) -> None:
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"FifoQueue": "true", "VisibilityTimeout": "7"})

    assert refused(sqs.set_queue_attributes, QueueUrl=fifo, Attributes={"FifoQueue": "false"}) == BAD_VALUE


@pytest.mark.parametrize("given", [{"ContentBasedDeduplication": "true"}, {"DeduplicationScope": "messageGroup"}, HIGH])
def test_create_again_with_other_fifo_attributes_is_refused(
    sqs: Any, fifo: str, name: str, refused: Refused, given: dict[str, str]
) -> None:
    assert refused(sqs.create_queue, QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true", **given}) == EXISTS


def test_high_throughput_is_set_and_taken_back(sqs: Any, fifo: str, refused: Refused) -> None:
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes=HIGH)
    assert attributes(sqs, fifo).items() >= HIGH.items()
    assert refused(sqs.set_queue_attributes, QueueUrl=fifo, Attributes={"DeduplicationScope": "queue"}) == BAD_VALUE
    back = {"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue"}
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes=back)

    assert attributes(sqs, fifo).items() >= back.items()


def test_the_scope_can_be_changed_only_while_the_queue_is_empty(sqs: Any, fifo: str, refused: Refused) -> None:
    put(sqs, fifo, "a", "1")

    assert (
        refused(sqs.set_queue_attributes, QueueUrl=fifo, Attributes={"DeduplicationScope": "messageGroup"})
        == UNSUPPORTED
    )
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"ContentBasedDeduplication": "true"})
    assert attributes(sqs, fifo)["ContentBasedDeduplication"] == "true"


# SendMessage


def test_a_send_tells_its_sequence_number_and_a_receive_shows_it(sqs: Any, either: str) -> None:
    sent = put(sqs, either, "a", "1", "2", "3")
    got = take(sqs, either)

    numbers = [one["SequenceNumber"] for one in sent]
    assert all(number.isdigit() and len(number) == 20 for number in numbers) and numbers == sorted(set(numbers))
    assert [m["Attributes"]["SequenceNumber"] for m in got] == numbers
    assert [m["Attributes"]["MessageDeduplicationId"] for m in got] == ["a.1", "a.2", "a.3"]
    assert {m["Attributes"]["MessageGroupId"] for m in got} == {"a"}
    assert [m["MessageId"] for m in got] == [one["MessageId"] for one in sent]


def test_a_send_needs_a_group(sqs: Any, fifo: str, refused: Refused) -> None:
    assert refused(sqs.send_message, QueueUrl=fifo, MessageBody="x", MessageDeduplicationId="d") == MISSING


def test_a_send_needs_a_deduplication_id_or_a_queue_that_makes_one(sqs: Any, fifo: str, refused: Refused) -> None:
    assert refused(sqs.send_message, QueueUrl=fifo, MessageBody="x", MessageGroupId="g") == INVALID
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"ContentBasedDeduplication": "true"})
    sqs.send_message(QueueUrl=fifo, MessageBody="x", MessageGroupId="g")

    (got,) = take(sqs, fifo)
    assert (
        got["Attributes"]["MessageDeduplicationId"]
        == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    )


@pytest.mark.parametrize("parameter", ["MessageGroupId", "MessageDeduplicationId"])
@pytest.mark.parametrize("bad", ["a b", "ä", "x" * 129, "a\n"])
def test_an_id_has_up_to_128_letters_digits_and_marks(
    sqs: Any, fifo: str, refused: Refused, parameter: str, bad: str
) -> None:
    good = {"MessageGroupId": "!g~", "MessageDeduplicationId": "x" * 128}

    assert refused(sqs.send_message, QueueUrl=fifo, MessageBody="x", **{**good, parameter: bad}) == INVALID
    sqs.send_message(QueueUrl=fifo, MessageBody="x", **good)


def test_a_message_has_no_delay_of_its_own_but_that_of_its_queue(
    sqs: Any, make_fifo: MakeFifo, refused: Refused
) -> None:
    url = make_fifo(DelaySeconds="1", ContentBasedDeduplication="true")

    assert refused(sqs.send_message, QueueUrl=url, MessageBody="x", MessageGroupId="g", DelaySeconds=5) == INVALID
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g", DelaySeconds=0)
    assert counts(sqs, url) == (0, 0, 1)
    assert [m["Body"] for m in receive_all(sqs, url, 1)] == ["x"]


# SendMessageBatch


def entry(number: int, group: str, **more: Any) -> dict[str, Any]:
    return {
        "Id": f"e{number}",
        "MessageBody": f"b{number}",
        "MessageGroupId": group,
        "MessageDeduplicationId": f"d{number}",
        **more,
    }


def test_a_batch_of_many_groups_keeps_the_order_of_each(sqs: Any, either: str) -> None:
    found = sqs.send_message_batch(QueueUrl=either, Entries=[entry(n, "abc"[n % 3]) for n in range(10)])
    got = take(sqs, either)

    assert {one["Id"] for one in found["Successful"]} == {f"e{n}" for n in range(10)} and "Failed" not in found
    sent = {one["MessageId"]: (one["Id"], one["SequenceNumber"]) for one in found["Successful"]}
    assert {m["MessageId"]: (f"e{m['Body'][1:]}", m["Attributes"]["SequenceNumber"]) for m in got} == sent
    for number, group in enumerate("abc"):
        mine = [m["Body"] for m in got if m["Attributes"]["MessageGroupId"] == group]
        assert mine == [f"b{n}" for n in range(number, 10, 3)]


def test_bad_entries_of_a_fifo_batch_fail_alone(sqs: Any, make_fifo: MakeFifo) -> None:
    url = make_fifo(MaximumMessageSize="1024", **HIGH)
    bad = [
        entry(1, "a b"),
        entry(2, "b", DelaySeconds=1),
        entry(3, "c", MessageBody="\x00"),
        entry(4, "d", MessageBody="x" * 1025),
    ]
    bad += [entry(5, "e", MessageAttributes={"AWS.x": text("v")})]
    found = sqs.send_message_batch(QueueUrl=url, Entries=[entry(0, "a"), *bad, entry(6, "a"), entry(7, "b")])

    assert {one["Id"] for one in found["Successful"]} == {"e0", "e6", "e7"}
    codes = {one["Id"]: one["Code"] for one in found["Failed"]}
    assert codes == {f"e{n}": "InvalidMessageContents" if n == 3 else INVALID[0] for n in range(1, 6)}
    assert sorted(m["Body"] for m in take(sqs, url)) == ["b0", "b6", "b7"]


@pytest.mark.parametrize("lacking", ["MessageGroupId", "MessageDeduplicationId"])
def test_a_batch_with_an_entry_that_lacks_an_id_is_refused_as_a_whole(
    sqs: Any, either: str, refused: Refused, lacking: str
) -> None:
    last = entry(1, "b")
    del last[lacking]

    assert refused(sqs.send_message_batch, QueueUrl=either, Entries=[entry(0, "a"), last]) == INVALID
    assert counts(sqs, either) == (0, 0, 0)
