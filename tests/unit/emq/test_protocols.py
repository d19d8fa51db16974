"""Calls and answers: bytes written by hand, heads, content types, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

from facade.dialects.emq.wire.enums import ApplicationError
from facade.dialects.emq.wire.protocols import (
    NAME_CHARACTERS,
    BadThrift,
    ThriftCall,
    base_type,
    decode_call,
    encode_application_exception,
    encode_exception,
    encode_reply,
    is_thrift,
)
from facade.dialects.emq.wire.services import MESSAGE_SERVICE, QUEUE_SERVICE, STATISTICS_SERVICE
from facade.dialects.emq.wire.structs.message import (
    DeleteMessageRequest,
    MessageAttribute,
    ReceiveMessageResponse,
    SendMessageRequest,
)
from facade.dialects.emq.wire.structs.queue import CreateQueueRequest
from facade.dialects.emq.wire.structs.shared import GalaxyEmqServiceException, Version
from facade.dialects.emq.wire.structs.statistics import SetQueueDailyStatisticsStateRequest
from tests.unit.emq.by_hand import CALLS, DONE, ENABLED, RECEIVED, THROWN
from tests.unit.emq.values import LIBRARY, TYPES, listing, mapping, message, number, struct, text


def refused(body: bytes, protocol: str = "binary", service: Any = MESSAGE_SERVICE) -> BadThrift:
    with pytest.raises(BadThrift) as caught:
        decode_call(TYPES[protocol], body, service)
    return caught.value


@pytest.mark.parametrize("protocol", TYPES)
def test_a_call_written_by_hand_is_read(protocol: str) -> None:
    call = decode_call(TYPES[protocol], CALLS[protocol], MESSAGE_SERVICE)
    enabled = decode_call(TYPES[protocol], ENABLED[protocol], STATISTICS_SERVICE)

    assert (call.method, call.seqid) == (MESSAGE_SERVICE.methods["deleteMessage"], 1)
    assert call.argument == DeleteMessageRequest(queue_name="q", receipt_handle="h")
    assert (enabled.seqid, enabled.argument) == (0, SetQueueDailyStatisticsStateRequest(queue_name="q", enabled=True))


@pytest.mark.parametrize("protocol", TYPES)
def test_answers_are_the_bytes_written_by_hand(protocol: str) -> None:
    deletion = ThriftCall(MESSAGE_SERVICE.methods["deleteMessage"], 1, None)
    attributes = {"x": MessageAttribute(type="B", binary_value=b"\xff\0")}
    received = ReceiveMessageResponse(
        message_id="m", receipt_handle="h", message_body="é", attributes={"a": "b"}, message_attributes=attributes
    )
    error = GalaxyEmqServiceException(error_code=6, err_msg="gone")

    assert encode_reply(TYPES[protocol], deletion, None) == DONE[protocol]
    assert encode_exception(TYPES[protocol], deletion, error) == THROWN[protocol]
    assert (
        encode_reply(TYPES[protocol], ThriftCall(MESSAGE_SERVICE.methods["receiveMessage"], -2, None), [received])
        == RECEIVED[protocol]
    )


@pytest.mark.parametrize("protocol", TYPES)
def test_calls_without_a_struct_are_read(protocol: str) -> None:
    version = decode_call(TYPES[protocol], message(protocol, "getServiceVersion", struct()), STATISTICS_SERVICE)
    meta = decode_call(
        TYPES[protocol], message(protocol, "getQueueMeta", struct((1, TType.STRING, text("CI1/q")))), QUEUE_SERVICE
    )
    of_client = struct((1, TType.STRUCT, struct((1, TType.I32, number(2)), (4, TType.STRING, text("20200101")))))
    client = decode_call(TYPES[protocol], message(protocol, "validClientVersion", of_client), MESSAGE_SERVICE)

    assert version.argument is None
    assert meta.argument == "CI1/q"
    assert client.argument == Version(major=2, date="20200101")


@pytest.mark.parametrize("protocol", TYPES)
def test_what_a_method_must_answer_is_checked(protocol: str) -> None:
    methods = MESSAGE_SERVICE.methods
    with pytest.raises(ValueError, match="deleteMessage answers nothing"):
        encode_reply(TYPES[protocol], ThriftCall(methods["deleteMessage"], 0, None), [])
    with pytest.raises(ValueError, match="receiveMessage answers something"):
        encode_reply(TYPES[protocol], ThriftCall(methods["receiveMessage"], 0, None), None)


@pytest.mark.parametrize(
    ("content_type", "base"),
    [
        (b"application/x-thrift-binary; charset=utf-8", b"application/x-thrift-binary"),
        (b" Application/X-Thrift-Binary ;x", b"application/x-thrift-binary"),
        (b"APPLICATION/X-THRIFT-COMPACT", b"application/x-thrift-compact"),
        (b"application/x-thrift-json;charset=UTF-8", b"application/x-thrift-json"),
        (b"application/x-thrift", b"application/x-thrift"),
        (b"application/x-Thrift;", b"application/x-thrift"),
    ],
)
def test_a_content_type_has_any_case_and_parameters(content_type: bytes, base: bytes) -> None:
    protocol = next((name for name, one in TYPES.items() if one == base), "json")
    call = decode_call(content_type, CALLS[protocol], MESSAGE_SERVICE)

    assert is_thrift(content_type)
    assert base_type(content_type) == base
    assert encode_reply(content_type, call, None) == DONE[protocol]


@pytest.mark.parametrize(
    "content_type", [b"", b"application/json", b"application/x-thrift-simple", b"application/x-thrift-binary2", b"\xff"]
)
def test_another_content_type_is_no_thrift(content_type: bytes) -> None:
    assert not is_thrift(content_type)
    with pytest.raises(BadThrift, match="Content-Type") as caught:
        decode_call(content_type, CALLS["binary"], MESSAGE_SERVICE)
    assert caught.value.name is None


@pytest.mark.parametrize("protocol", TYPES)
@pytest.mark.parametrize("kind", [TMessageType.REPLY, TMessageType.EXCEPTION, TMessageType.ONEWAY])
def test_what_is_no_call_with_an_answer_is_refused(protocol: str, kind: int) -> None:
    error = refused(message(protocol, "deleteMessage", struct(), kind=kind, seqid=3), protocol)

    assert (error.name, error.seqid, error.code) == ("deleteMessage", 3, ApplicationError.INVALID_MESSAGE_TYPE)


@pytest.mark.parametrize("protocol", TYPES)
def test_an_unknown_method_is_answered_by_its_name(protocol: str) -> None:
    error = refused(message(protocol, "createQueue", struct(), seqid=-5), protocol)
    library = LIBRARY[protocol](TMemoryBuffer(encode_application_exception(TYPES[protocol], error)))
    answer = TApplicationException()

    assert library.readMessageBegin() == ("createQueue", TMessageType.EXCEPTION, -5)
    answer.read(library)
    assert (answer.type, answer.message) == (
        TApplicationException.UNKNOWN_METHOD,
        "MessageService has no method 'createQueue'",
    )


def test_an_answer_without_a_name_is_none() -> None:
    with pytest.raises(ValueError, match="name"):
        encode_application_exception(TYPES["binary"], BadThrift("the head can't be read"))


@pytest.mark.parametrize("protocol", TYPES)
def test_a_name_too_long_to_be_repeated_is_not(protocol: str) -> None:
    longest = refused(message(protocol, "n" * NAME_CHARACTERS, struct()), protocol)
    longer = refused(message(protocol, "n" * (NAME_CHARACTERS + 1), struct()), protocol)

    assert (longest.name, longest.code) == ("n" * NAME_CHARACTERS, ApplicationError.UNKNOWN_METHOD)
    assert (longer.name, longer.seqid) == (None, 0)
    assert "nnn" not in longer.message


@pytest.mark.parametrize("seqid", [0, 1, -1, (1 << 31) - 1, -(1 << 31)])
@pytest.mark.parametrize("protocol", TYPES)
def test_any_number_of_a_call_is_that_of_the_answer(protocol: str, seqid: int) -> None:
    call = decode_call(TYPES[protocol], message(protocol, "getServiceVersion", struct(), seqid=seqid), MESSAGE_SERVICE)
    library = LIBRARY[protocol](TMemoryBuffer(encode_reply(TYPES[protocol], call, Version())))

    assert library.readMessageBegin() == ("getServiceVersion", TMessageType.REPLY, seqid)


def test_a_number_out_of_range_is_refused() -> None:
    compact = bytes.fromhex("8221 ffffffffffffffff7f 0d") + b"deleteMessage\0"

    assert refused(compact, "compact").name is None
    assert refused(b'[1,"deleteMessage",1,2147483648,{}]', "json").name is None


def test_the_old_head_of_the_binary_protocol_is_refused() -> None:
    buffer = TMemoryBuffer()
    library = TBinaryProtocol(buffer, strictWrite=False)
    library.writeMessageBegin("deleteMessage", TMessageType.CALL, 1)
    error = refused(buffer.getvalue() + b"\0")

    assert error.name is None
    assert error.message == "the head of the message can't be read: No protocol version header"


@pytest.mark.parametrize("protocol", TYPES)
def test_a_missing_field_is_named_with_its_struct(protocol: str) -> None:
    def without(*fields: Any) -> str:
        return refused(
            message(protocol, "sendMessageBatch", struct((1, TType.STRUCT, struct(*fields)))), protocol
        ).message

    queue = (1, TType.STRING, text("q"))
    entry = struct((1, TType.STRING, text("1")))
    attribute = mapping(TType.STRING, TType.STRUCT, (text("a"), struct()))
    whole = struct((1, TType.STRING, text("1")), (2, TType.STRING, text("b")), (5, TType.MAP, attribute))

    assert (
        refused(message(protocol, "sendMessageBatch", struct()), protocol).message
        == "sendMessageBatch.request is missing"
    )
    assert without() == "SendMessageBatchRequest.queueName is missing"
    assert without(queue) == "SendMessageBatchRequest.sendMessageBatchRequestEntryList is missing"
    assert (
        without(queue, (2, TType.LIST, listing(TType.STRUCT, entry)))
        == "SendMessageBatchRequestEntry.messageBody is missing"
    )
    assert without(queue, (2, TType.LIST, listing(TType.STRUCT, whole))) == "MessageAttribute.type is missing"


@pytest.mark.parametrize("protocol", TYPES)
def test_unknown_fields_and_fields_of_another_type_are_left_out(protocol: str) -> None:
    strange = struct(
        (-1, TType.STRING, text("x")), (40, TType.LIST, listing(TType.STRUCT, struct((1, TType.I32, number(1)))))
    )
    fields = struct(
        (1, TType.STRING, text("q")),
        (2, TType.STRING, text("body")),
        (3, TType.STRING, text("soon")),  # an i32 in the struct
        (-7, TType.STRING, text("x")),
        (99, TType.STRUCT, strange),
        (98, TType.MAP, mapping(TType.I32, TType.STRING, (number(1), text("x")))),
        (6, TType.STRING, text("topic")),
    )
    call = decode_call(
        TYPES[protocol],
        message(protocol, "sendMessage", struct((1, TType.STRUCT, fields), (2, TType.I32, number(1)))),
        MESSAGE_SERVICE,
    )

    assert call.argument == SendMessageRequest(queue_name="q", message_body="body", topic="topic")


@pytest.mark.parametrize("protocol", TYPES)
def test_a_required_field_of_another_type_is_missing(protocol: str) -> None:
    fields = struct((1, TType.I32, number(1)), (2, TType.STRING, text("h")))
    error = refused(message(protocol, "deleteMessage", struct((1, TType.STRUCT, fields))), protocol)

    assert (error.message, error.name, error.seqid, error.code) == (
        "DeleteMessageRequest.queueName is missing",
        "deleteMessage",
        7,
        ApplicationError.PROTOCOL_ERROR,
    )


def test_an_empty_list_may_have_any_type_of_elements() -> None:
    for protocol in TYPES:
        fields = struct((1, TType.STRING, text("q")), (2, TType.LIST, listing(TType.I32)))
        call = decode_call(
            TYPES[protocol], message(protocol, "sendMessageBatch", struct((1, TType.STRUCT, fields))), MESSAGE_SERVICE
        )

        assert call.argument.send_message_batch_request_entry_list == []


def test_base64_without_padding_is_read() -> None:
    for given in ("/w", "/w=", "/w=="):
        body = (
            '[1,"sendMessage",1,0,{"1":{"rec":{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",1,'
            f'{{"a":{{"1":{{"str":"binary"}},"3":{{"str":"{given}"}}}}}}]}}}}}}}}]'
        )
        call = decode_call(TYPES["json"], body.encode(), MESSAGE_SERVICE)

        assert call.argument.message_attributes["a"].binary_value == b"\xff"


def test_defaults_of_a_call_are_those_of_the_idl() -> None:
    call = decode_call(TYPES["json"], b'[1,"createQueue",1,0,{"1":{"rec":{"1":{"str":"q"}}}}]', QUEUE_SERVICE)

    assert call.argument == CreateQueueRequest(queue_name="q", delete_message_force=True)
