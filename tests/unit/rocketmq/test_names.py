"""Names, types and expressions: what RocketMQ calls a topic, a group, a message's type."""

from __future__ import annotations

import pytest

from facade.dialects.rocketmq.messages import ordering
from facade.dialects.rocketmq.queues import expressions, kinds
from facade.dialects.rocketmq.queues.names import dead_letter_queue_of, group_of, topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, FilterType, MessageType
from schemas.filters import matches
from schemas.records import Attribute, QueueRecord
from tests.unit.records import queue_record

RECORD = queue_record()
FIFO = queue_record(fifo=True)


@pytest.mark.parametrize("name", ["orders", "a", "A-b_9", "_x", "orders.fifo", "%DLQ%billing", "x" * 127])
def test_a_topic_is_called_as_its_queue(name: str) -> None:
    assert topic_of(pb.Resource(name=name)) == name


@pytest.mark.parametrize("name", ["", "-a", "a b", "a|b", "%RETRY%g", "%DLQ%", "ö", "x" * 128, "a/b", "a\n"])
def test_other_topics_are_refused(name: str) -> None:
    with pytest.raises(RocketError) as refused:
        topic_of(pb.Resource(name=name))
    assert refused.value.code == Code.ILLEGAL_TOPIC


@pytest.mark.parametrize("name", ["", "-g", "a.b", "%g", "x" * 81, "g\n"])
def test_other_groups_are_refused(name: str) -> None:
    assert group_of(pb.Resource(name="GID_billing-1")) == "GID_billing-1"
    with pytest.raises(RocketError) as refused:
        group_of(pb.Resource(name=name))
    assert refused.value.code == Code.ILLEGAL_CONSUMER_GROUP


def test_namespaces_are_refused() -> None:
    for read, code in ((topic_of, Code.ILLEGAL_TOPIC), (group_of, Code.ILLEGAL_CONSUMER_GROUP)):
        with pytest.raises(RocketError) as refused:
            read(pb.Resource(name="orders", resource_namespace="prod"))
        assert refused.value.code == code


def test_a_group_has_a_dead_letter_queue_for_topics_of_each_kind() -> None:
    assert (dead_letter_queue_of("g", fifo=False), dead_letter_queue_of("g", fifo=True)) == ("dlq.g", "dlq.g.fifo")


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        (pb.SystemProperties(), MessageType.NORMAL),
        (pb.SystemProperties(message_type=MessageType.DELAY), MessageType.NORMAL),
        (pb.SystemProperties(message_group="g"), MessageType.FIFO),
        (pb.SystemProperties(message_type=MessageType.TRANSACTION), MessageType.TRANSACTION),
        (pb.SystemProperties(delivery_timestamp={"seconds": 1}), MessageType.DELAY),
    ],
)
def test_a_message_is_what_it_has(properties: pb.SystemProperties, kind: MessageType) -> None:
    assert kinds.type_of(properties) == kind


@pytest.mark.parametrize(
    "properties",
    [
        pb.SystemProperties(message_type=MessageType.TRANSACTION, message_group="g"),
        pb.SystemProperties(message_type=MessageType.TRANSACTION, delivery_timestamp={"seconds": 1}),
        pb.SystemProperties(priority=0),
        pb.SystemProperties(lite_topic="x"),
        pb.SystemProperties(message_group="g", delivery_timestamp={"seconds": 1}),
    ],
)
def test_what_is_not_served_is_refused(properties: pb.SystemProperties) -> None:
    with pytest.raises(RocketError) as refused:
        kinds.type_of(properties)
    assert refused.value.code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE


def test_a_topic_takes_what_its_queue_does() -> None:
    def noted(word: str) -> QueueRecord:
        note = {kinds.TYPE_NOTE: word}
        return queue_record("q", owner="a", tags=RECORD.tags, user_attributes=note)

    assert (
        kinds.types_of(RECORD)
        == (MessageType.NORMAL, MessageType.DELAY, MessageType.TRANSACTION)
        == kinds.types_of(noted("MIXED"))
    )
    assert kinds.types_of(FIFO) == (MessageType.FIFO,)
    assert kinds.types_of(noted("delay")) == (MessageType.DELAY,)
    kinds.check_type(RECORD, "orders", MessageType.DELAY)
    with pytest.raises(RocketError) as refused:
        kinds.check_type(FIFO, "orders", MessageType.NORMAL)
    assert refused.value.code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "*"), ("*", "*"), (" * ", "*"), ("b||a", "a||b"), (" a || a||", "a"), ("a||*", "*"), ("röt", "röt")],
)
def test_an_expression_has_one_form(text: str, expected: str) -> None:
    assert expressions.text_of(pb.FilterExpression(type=FilterType.TAG, expression=text)) == expected


@pytest.mark.parametrize(
    "expression",
    [
        pb.FilterExpression(type=FilterType.SQL, expression="a > 1"),
        pb.FilterExpression(expression="a|b"),
        pb.FilterExpression(expression="a\tb"),
        pb.FilterExpression(expression="||".join(f"t{n}" for n in range(21))),
    ],
)
def test_other_expressions_are_refused(expression: pb.FilterExpression) -> None:
    with pytest.raises(RocketError) as refused:
        expressions.text_of(expression)
    assert refused.value.code == Code.ILLEGAL_FILTER_EXPRESSION


@pytest.mark.parametrize("number", [1, 10, 11, 20])
def test_a_filter_wants_each_of_its_tags_and_no_other(number: int) -> None:
    text = expressions.text_of(pb.FilterExpression(expression="||".join(f"t{n}" for n in range(number))))
    wanted = expressions.filter_of(text)

    assert wanted is not None and len(wanted.conditions) <= 20
    assert all(matches(wanted, {"TAGS": Attribute("String", b"t%d" % n)}) for n in range(number))
    assert not matches(wanted, {"TAGS": Attribute("String", b"t%d" % number)}) and not matches(wanted, {})
    assert all(matches(wanted, {"TAGS": Attribute(word, b"t0")}) for word in ("string", "STRING"))


def test_everything_has_no_filter() -> None:
    assert expressions.filter_of(expressions.ALL) is None


@pytest.mark.parametrize("group", ["a", "utf8:x", "a b", "grün", "x" * 63, "utf8:", "~t"])
def test_a_message_group_comes_back(group: str) -> None:
    stored = ordering.stored(group)
    assert stored.isascii() and stored.isprintable() and " " not in stored and len(stored) <= 128
    assert ordering.shown(stored) == group
    assert ordering.shown("utf8:%%%") == "utf8:%%%"  # of another dialect


@pytest.mark.parametrize("group", ["", "  ", "x" * 64, "ü" * 32])
def test_other_message_groups_are_refused(group: str) -> None:
    with pytest.raises(RocketError) as refused:
        ordering.stored(group)
    assert refused.value.code == Code.ILLEGAL_MESSAGE_GROUP


def test_no_field_of_the_protocol_asks_for_broadcasting() -> None:
    """SOFAStack forbids it for ordered messages: were there a field, it would be refused."""
    fields = [field.full_name for message in pb.DESCRIPTOR.message_types_by_name.values() for field in message.fields]
    assert len(fields) > 100
    assert [name for name in fields if "broadcast" in name.lower() or "model" in name.lower()] == []
