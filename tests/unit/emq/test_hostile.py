"""Bodies that mean harm: each ends in a call or in BadThrift, in little time and memory, and the
process lives.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.Thrift import TType

from facade.dialects.emq.wire.enums import ApplicationError
from facade.dialects.emq.wire.protocols import NAME_CHARACTERS, BadThrift, decode_call
from facade.dialects.emq.wire.services import MESSAGE_SERVICE, QUEUE_SERVICE, SERVICES
from tests.unit.emq.hostile import head, rich
from tests.unit.emq.values import TYPES, listing, mapping, message, number, struct, text

ROOT = Path(__file__).parents[3]
CEILING_MS = 1000  # 50 on a machine of its own; this one may be shared


@pytest.fixture(scope="module")
def report() -> Any:
    """What came of all bodies of `hostile`."""
    command = [sys.executable, "-m", "tests.unit.emq.hostile"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_no_body_ends_in_anything_but_a_call_or_a_refusal(report: Any) -> None:
    assert report["counts"].keys() == {"cut", "damaged", "noise", "deep", "large"}
    assert sum(report["counts"].values()) > 30_000


def test_half_a_megabyte_takes_little_time(report: Any) -> None:
    milliseconds, label = report["slowest_ms"]

    assert milliseconds < CEILING_MS, label


def test_no_body_takes_much_more_memory_than_its_size(report: Any) -> None:
    ratio, label = report["peak_of_large"]
    small, damage = report["peak_bytes_of_small"]

    assert ratio < 45, label
    assert small < 100_000, damage
    assert report["resident_mb"] < 250


def refused(protocol: str, body: bytes, service: Any = MESSAGE_SERVICE) -> BadThrift:
    with pytest.raises(BadThrift) as caught:
        decode_call(TYPES[protocol], body, service)
    return caught.value


@pytest.mark.parametrize("protocol", TYPES)
@pytest.mark.parametrize(
    "elements",
    [
        listing(TType.I32, number(1)),
        listing(TType.STRING, text("x")),
        listing(TType.LIST, listing(TType.STRUCT, struct())),
        listing(TType.MAP, mapping(TType.STRING, TType.STRING, (text("x"), text("y")))),
    ],
)
def test_elements_of_another_type_are_refused(protocol: str, elements: Any) -> None:
    request = struct((1, TType.STRING, text("q")), (2, TType.LIST, elements))
    error = refused(protocol, message(protocol, "sendMessageBatch", struct((1, TType.STRUCT, request))))

    assert (error.name, error.seqid, error.code) == ("sendMessageBatch", 7, ApplicationError.PROTOCOL_ERROR)


@pytest.mark.parametrize("protocol", TYPES)
@pytest.mark.parametrize(
    "entries",
    [
        mapping(TType.I32, TType.STRUCT, (number(1), struct((1, TType.STRING, text("x"))))),
        mapping(TType.STRING, TType.STRING, (text("x"), text("y"))),
        mapping(TType.STRING, TType.I32, (text("x"), number(1))),
    ],
)
def test_keys_and_entries_of_another_type_are_refused(protocol: str, entries: Any) -> None:
    request = struct((1, TType.STRING, text("q")), (2, TType.STRING, text("b")), (5, TType.MAP, entries))

    assert refused(protocol, message(protocol, "sendMessage", struct((1, TType.STRUCT, request)))).name == "sendMessage"


@pytest.mark.parametrize(
    "raw", [b"\xff", b"\xc3", b"ok\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbf\xbd\xfe"]
)
@pytest.mark.parametrize("protocol", ["binary", "compact"])
def test_strings_that_are_not_in_utf_8_are_refused_with_their_fields(protocol: str, raw: bytes) -> None:
    def write(library: Any) -> None:
        library.writeBinary(raw)

    attributes = mapping(TType.STRING, TType.STRUCT, (write, struct((1, TType.STRING, text("s")))))
    queue, body = (1, TType.STRING, text("q")), (2, TType.STRING, text("b"))

    def message_of(*fields: Any) -> str:
        return refused(protocol, message(protocol, "sendMessage", struct((1, TType.STRUCT, struct(*fields))))).message

    assert message_of((1, TType.STRING, write), body) == "SendMessageRequest.queueName is not in UTF-8"
    assert message_of(queue, (2, TType.STRING, write)) == "SendMessageRequest.messageBody is not in UTF-8"
    assert message_of(queue, body, (5, TType.MAP, attributes)) == "SendMessageRequest.messageAttributes is not in UTF-8"
    assert (
        refused(protocol, message(protocol, "getQueueMeta", struct((1, TType.STRING, write))), QUEUE_SERVICE).name
        == "getQueueMeta"
    )


def test_bodies_of_json_that_are_not_in_utf_8_are_refused() -> None:
    good = b'[1,"getQueueMeta",1,0,{"1":{"str":"NAME"}}]'

    assert decode_call(TYPES["json"], good, QUEUE_SERVICE).argument == "NAME"
    for wrong in (b"\xff", b"\\ud800", b"\\udc00x", b"\xed\xa0\x80", b"\x00", b"\n"):
        assert "not JSON" in refused("json", good.replace(b"NAME", wrong), QUEUE_SERVICE).message


@pytest.mark.parametrize("protocol", TYPES)
def test_a_bad_utf_8_in_bytes_and_in_unknown_fields_is_no_harm(protocol: str) -> None:
    call = decode_call(TYPES[protocol], rich(protocol), MESSAGE_SERVICE)
    entry = call.argument.send_message_batch_request_entry_list[0]

    assert entry.message_body == "grün"
    assert entry.message_attributes["b"].binary_value == b"\xff\xfe"


def test_what_follows_a_message_is_refused_as_such() -> None:
    for protocol in ("binary", "compact"):
        error = refused(protocol, rich(protocol) + b"\0")

        assert (error.message, error.name) == ("bytes follow the message", "sendMessageBatch")
    assert refused("json", rich("json") + b"[]").name is None
    assert decode_call(TYPES["json"], b" " + rich("json") + b"\n", MESSAGE_SERVICE).seqid == 7


def test_a_message_that_ends_too_early_is_refused_as_such() -> None:
    for protocol in ("binary", "compact"):
        error = refused(protocol, rich(protocol)[:-1])

        assert (error.message, error.name, error.seqid) == (
            "the message can't be read: it ends too early",
            "sendMessageBatch",
            7,
        )
        assert refused(protocol, b"").message == "the head of the message can't be read: it ends too early"


@pytest.mark.parametrize(
    ("argument", "what"),
    [
        ('{"1":{"str":1}}', "queueName"),
        ('{"1":{"str":null}}', "queueName"),
        ('{"1":{}}', "queueName"),
        ('{"1":{"str":"q","i32":1}}', "queueName"),
        ('{"1":"q"}', "queueName"),
        ("[]", "SendMessageRequest"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"3":{"i32":2147483648}}', "delaySeconds"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"3":{"i32":-2147483649}}', "delaySeconds"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"3":{"i32":1.5}}', "delaySeconds"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"3":{"i32":true}}', "delaySeconds"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",2,{}]}}', "messageAttributes"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",-1,{}]}}', "messageAttributes"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",0]}}', "messageAttributes"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":{}}}', "messageAttributes"),
        (
            '{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",1,{"a":{"1":{"str":"b"},"3":{"str":"a*=="}}}]}}',
            "binaryValue",
        ),
        (
            '{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",1,{"a":{"1":{"str":"b"},"3":{"str":"a"}}}]}}',
            "binaryValue",
        ),
        (
            '{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","rec",1,{"a":{"1":{"str":"b"},"3":{"str":"A*A=="}}}]}}',
            "binaryValue",
        ),
        ('{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["i32","rec",1,{"a":{"1":{"str":"b"}}}]}}', "messageAttributes"),
        ('{"1":{"str":"q"},"2":{"str":"b"},"5":{"map":["str","str",1,{"a":{"1":{"str":"b"}}}]}}', "messageAttributes"),
    ],
)
def test_json_of_another_form_is_refused_with_its_field(argument: str, what: str) -> None:
    error = refused("json", f'[1,"sendMessage",1,7,{{"1":{{"rec":{argument}}}}}]'.encode())

    assert what in error.message
    assert (error.name, error.seqid) == ("sendMessage", 7)


ENTRY = '{"1":{"str":"1"},"2":{"str":"b"}}'
LISTS = [
    f'["str",1,{ENTRY}]',
    f"[1,1,{ENTRY}]",
    f'["rec",1,{ENTRY},{ENTRY}]',
    '["rec",2,{}]',
    '["rec",-1]',
    '["rec",2147483647,{}]',
    '["rec","1",{}]',
    '["rec",1.0,{}]',
    '["rec"]',
    "[]",
    "{}",
]
NO_MESSAGES = [
    b"{}",
    b"[]",
    b"1",
    b'[2,"a",1,0,{}]',
    b'[true,"a",1,0,{}]',
    b'[1,"a",1,0]',
    b'[1,"a",1,0,{},0]',
    b"[1,1,1,0,{}]",
]


@pytest.mark.parametrize("items", LISTS)
def test_a_list_of_json_has_the_size_and_the_type_that_it_says(items: str) -> None:
    error = refused(
        "json", f'[1,"sendMessageBatch",1,7,{{"1":{{"rec":{{"1":{{"str":"q"}},"2":{{"lst":{items}}}}}}}}}]'.encode()
    )

    assert "sendMessageBatchRequestEntryList" in error.message


@pytest.mark.parametrize("body", NO_MESSAGES)
@pytest.mark.parametrize("end", [b"", b" "])
def test_json_that_is_no_message_is_refused(body: bytes, end: bytes) -> None:
    assert "must be [1, name" in refused("json", body + end).message


@pytest.mark.parametrize("protocol", TYPES)
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_bytes_are_a_call_or_refused(protocol: str, data: st.DataObject) -> None:
    service = data.draw(st.sampled_from(list(SERVICES.values())))
    start = data.draw(st.sampled_from([b"", head(protocol), rich(protocol)[: data.draw(st.integers(0, 200))]]))
    body = start + data.draw(st.binary(max_size=100))
    name = None
    try:
        decode_call(TYPES[protocol], body, service)
    except BadThrift as error:
        name = error.name

    assert name is None or len(name) <= NAME_CHARACTERS
