"""Every struct in all three protocols: what one of them writes is read as the same, by us and by
the library's own protocols, both ways.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thrift.Thrift import TApplicationException, TType
from thrift.transport.TTransport import TMemoryBuffer

from facade.dialects.emq.wire.enums import AlertType, ApplicationError, LogicalOperator, Measurement, Permission
from facade.dialects.emq.wire.kinds import Kind, Wire, kind_of, shape_of, wire_name
from facade.dialects.emq.wire.structs.access import QueryPermissionResponse, TimeSeriesData
from facade.dialects.emq.wire.structs.message import MessageAttribute, PeekMessageArg, ReceiveMessageRequest
from facade.dialects.emq.wire.structs.queue import CreateQueueRequest, ListQueueRequest
from facade.dialects.emq.wire.structs.shared import Version
from facade.dialects.emq.wire.structs.statistics import AlertPolicy
from tests.unit.emq.values import CODECS, LIBRARY, STRUCTS, message, oracle, translated, values


def kind(struct: Any) -> Kind:
    return Kind(TType.STRUCT, shape=shape_of(struct))


def read_by_library(protocol: str, body: bytes, struct: Any) -> tuple[Any, Any]:
    library = LIBRARY[protocol](TMemoryBuffer(body))
    head = library.readMessageBegin()
    found = oracle(shape_of(struct))()
    found.read(library)
    library.readMessageEnd()
    return head, found


@pytest.mark.parametrize("struct", STRUCTS.values(), ids=STRUCTS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_struct_is_read_as_it_was_written_by_us_and_by_the_library(struct: Any, data: st.DataObject) -> None:
    shape = shape_of(struct)
    value = data.draw(values(kind(struct)))
    same, after = translated(value, kind(struct)), _with_defaults(value, kind(struct))
    for protocol, codec in CODECS.items():
        written = codec.write("m", 1, -7, value, shape)
        opened = codec.open(written)
        head, found = read_by_library(protocol, written, struct)

        assert (opened.name, opened.kind, opened.seqid) == head == ("m", 1, -7)
        assert codec.read(opened, shape) == after
        assert found == same

        theirs = message(protocol, "m", same.write, seqid=-7)
        assert protocol == "json" or theirs == written
        assert codec.read(codec.open(theirs), shape) == after


def _with_defaults(value: Any, of: Kind) -> Any:
    """A value after it was written: what is None was not, and has its default again."""
    if value is None:
        return None
    if of.shape is not None:
        pairs = ((field, getattr(value, field.attribute)) for field in of.shape.fields)
        return of.shape.make(
            **{field.attribute: _with_defaults(held, field.kind) for field, held in pairs if held is not None}
        )
    if of.key is not None and of.item is not None:
        return {key: _with_defaults(item, of.item) for key, item in value.items()}
    return [_with_defaults(item, of.item) for item in value] if of.item is not None else value


@pytest.mark.parametrize("struct", STRUCTS.values(), ids=STRUCTS)
def test_a_struct_numbers_its_fields_once_each_and_from_one(struct: Any) -> None:
    numbers = [field.number for field in shape_of(struct).fields]

    assert numbers == sorted(set(numbers))
    assert min(numbers) >= 1
    assert all(type(one) is int for one in numbers)


def test_the_tables_have_each_struct_of_the_reference() -> None:
    """102 of the reference, Thrift's own exception, and eight that others are made of."""
    bases = {
        "HandleRequest",
        "HandleEntry",
        "HandleBatchResponse",
        "OfQueue",
        "OfDeveloper",
        "OfQueueAlert",
        "OfTagAlert",
    }
    ours = bases | {"DailyStatisticsState", "ApplicationException"}

    assert ours <= STRUCTS.keys()
    assert len(STRUCTS.keys() - ours) == 102
    assert sum(len(shape_of(STRUCTS[name]).fields) for name in STRUCTS.keys() - ours) == 297 + 2  # QueueTag's 9 and 10


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_number_that_no_enum_has_survives(codec: Any) -> None:
    shape = shape_of(QueryPermissionResponse)
    for permission in (-1, 9, 12, Permission.FULL_CONTROL):
        written = codec.write("m", 2, 0, QueryPermissionResponse(permission=permission), shape)
        found = codec.read(codec.open(written), shape).permission

        assert found == permission
        assert type(found) is int


def test_the_enums_have_the_numbers_of_the_reference() -> None:
    assert [int(one) for one in Permission] == list(range(12))
    assert (
        Permission.ADMIN_QUEUE,
        Permission.PEEK_MESSAGE,
        Permission.DELETE_PEEK_MESSAGE,
        Permission.FULL_CONTROL,
    ) == (8, 9, 10, 11)
    assert [int(one) for one in AlertType] == list(range(9))
    assert (AlertType.DELETE_REQUEST, AlertType.LONG_RECEIVE_REQUEST, AlertType.QUEUE_MESSAGE_NUMBER) == (3, 7, 8)
    assert (LogicalOperator.AND, LogicalOperator.OR) == (0, 1)
    assert (Measurement.LATENCY, Measurement.LATENCY_P999, Measurement.COUNT) == (0, 1, 2)
    assert all(getattr(TApplicationException, one.name) == one for one in ApplicationError)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_what_is_not_sent_is_none_or_the_default(codec: Any) -> None:
    def after(value: Wire) -> Any:
        shape = shape_of(type(value))
        return codec.read(codec.open(codec.write("m", 1, 0, value, shape)), shape)

    received = after(ReceiveMessageRequest(queue_name="q"))
    created = after(CreateQueueRequest(queue_name="q", delete_message_force=None))

    assert (received.max_receive_message_number, received.max_receive_message_wait_seconds, received.tag_name) == (
        None,
        None,
        None,
    )
    assert (created.delete_message_force, created.dead_letter_queue) == (True, None)
    assert after(ListQueueRequest(queue_name_prefix=None)).queue_name_prefix == ""
    assert after(Version(details=None)) == Version(major=1, minor=0, revision=0, date="19700101", details="")
    assert after(PeekMessageArg()) == PeekMessageArg()


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("given", [b"", b"\x00", bytes(range(256)), b"\xff\xfe" * 300])
def test_bytes_come_back_as_they_are(codec: Any, given: bytes) -> None:
    shape = shape_of(MessageAttribute)
    written = codec.write("m", 1, 0, MessageAttribute(type="binary", binary_value=given), shape)

    assert codec.read(codec.open(written), shape).binary_value == given


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize(
    "given", ["", "\x00\x1f\x7f", "\ufffd", "grün 漢字 😀", '"\\/\b\f\n\r\t\u2028', "\ufffd\uffff\ufeff"]
)
def test_strings_come_back_as_they_are(codec: Any, given: str) -> None:
    shape = shape_of(MessageAttribute)
    written = codec.write("m", 1, 0, MessageAttribute(type=given, string_value=given), shape)

    assert codec.read(codec.open(written), shape) == MessageAttribute(type=given, string_value=given)


@pytest.mark.parametrize("protocol", CODECS)
@pytest.mark.parametrize("given", [float("inf"), float("-inf"), float("nan"), -0.0, 5e-324, 1.7976931348623157e308])
def test_doubles_come_back_as_they_are(protocol: str, given: float) -> None:
    codec = CODECS[protocol]
    policy, series = (
        AlertPolicy(type=0, measurement=0, threshold=given),
        TimeSeriesData(data={-(1 << 63): given, 0: 1.0}),
    )
    written = codec.write("m", 2, 0, policy, shape_of(AlertPolicy))
    found = codec.read(codec.open(written), shape_of(AlertPolicy)).threshold
    data = codec.write("m", 2, 0, series, shape_of(TimeSeriesData))

    assert str(found) == str(given)
    assert str(read_by_library(protocol, written, AlertPolicy)[1].threshold) == str(given)
    assert str(codec.read(codec.open(data), shape_of(TimeSeriesData)).data) == str(series.data)


def test_the_names_of_errors_are_those_of_the_idl() -> None:
    assert [wire_name(name) for name in ("queue_name", "message_id", "read_qps_quota", "body_md5", "e")] == [
        "queueName",
        "messageID",
        "readQPSQuota",
        "bodyMd5",
        "e",
    ]


def test_an_annotation_that_is_no_type_of_thrift_is_refused() -> None:
    with pytest.raises(KeyError):
        kind_of(int)
