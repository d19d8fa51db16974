"""What a hostile client sends: XML that expands, is deep, wide, of another encoding or namespace;
query strings and headers that say nothing. Each is a 4xx, changes nothing, and takes little memory.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from facade.dialects.mns.wire import query, xml
from facade.dialects.mns.wire.errors import MnsError
from tests.unit.facade.double import RecordingEngine
from tests.unit.mns.by_hand import VERSION, ask

MESSAGE = "<Message><MessageBody>x</MessageBody></Message>"
LAUGHS = (
    '<!DOCTYPE z [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]><Message><MessageBody>&i;</MessageBody></Message>"
)
QUADRATIC = f'<!DOCTYPE z [<!ENTITY a "{"a" * 100_000}">]><Message><MessageBody>{"&a;" * 1000}</MessageBody></Message>'
FILE = '<!DOCTYPE z [<!ENTITY a SYSTEM "file:///etc/hostname">]><Message><MessageBody>&a;</MessageBody></Message>'
PARAMETER = (
    '<!DOCTYPE z [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x"> %a;]><Message><MessageBody>x</MessageBody></Message>'
)

# Large ones are made when a test runs.
BAD: dict[str, bytes | str | Callable[[], str]] = {
    "nothing": "",
    "blank": " \n",
    "no XML": "hello",
    "half": "<Message><MessageBody>x",
    "two roots": MESSAGE + MESSAGE,
    "other end": "<Message></Queue>",
    "laughs": LAUGHS,
    "quadratic": QUADRATIC,
    "file": FILE,
    "parameter": PARAMETER,
    "remote type": f'<!DOCTYPE Message SYSTEM "http://127.0.0.1:1/x">{MESSAGE}',
    "type alone": f"<!DOCTYPE Message>{MESSAGE}",
    "unknown entity": "<Message><MessageBody>&nbsp;</MessageBody></Message>",
    "deep": lambda: "<Message>" + "<a>" * 100_000 + "</a>" * 100_000 + "</Message>",
    "nine deep": f"<Message><MessageBody>x</MessageBody>{'<a>' * 8}{'</a>' * 8}</Message>",
    "wide": lambda: "<Message>" + "<a/>" * 200_000 + "</Message>",
    "utf-16": MESSAGE.encode("utf-16"),
    "latin-1": "<Message><MessageBody>\xe9</MessageBody></Message>".encode("latin-1"),
    "declared latin-1": (
        '<?xml version="1.0" encoding="iso-8859-1"?><Message><MessageBody>\xe9</MessageBody></Message>'
    ).encode("latin-1"),
    "zero": "<Message><MessageBody>\0</MessageBody></Message>",
    "control": "<Message><MessageBody>\x01</MessageBody></Message>",
    "control as a reference": "<Message><MessageBody>&#1;</MessageBody></Message>",
    "surrogate": b"<Message><MessageBody>\xed\xa0\x80</MessageBody></Message>",
    "10 MB": lambda: "<Message><MessageBody>" + "a" * 10_000_000 + "</MessageBody></Message>",
    "10 MB of elements": lambda: "<Message>" + "<a/>" * 2_500_000 + "</Message>",
    "10 MB of an attribute": lambda: '<Message a="' + "a" * 10_000_000 + '"/>',
    "4 MB of attributes": lambda: "<Message " + " ".join(f"a{n}=''" for n in range(330_000)) + "/>",
    "4 MB of namespaces": lambda: "<Message " + " ".join(f"xmlns:a{n}='u'" for n in range(200_000)) + "/>",
    "4 MB of an instruction": lambda: "<?x " + "a" * 4_000_000 + "?><Message/>",
    "10 MB of a name": lambda: f"<{'a' * 10_000_000}/>",
    "another namespace": "<Message "
    'xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><MessageBody>x</MessageBody></Message>',
    "another namespace within": '<Message><MessageBody xmlns="urn:x">x</MessageBody></Message>',
    "unbound prefix": "<m:Message><MessageBody>x</MessageBody></m:Message>",
    "another root": "<Queue/>",
    "body twice": "<Message><MessageBody>x</MessageBody><MessageBody>y</MessageBody></Message>",
    "body of elements": "<Message><MessageBody><x/></MessageBody></Message>",
    "JSON": '{"MessageBody": "x"}',
    "bad Base64": "<Message><MessageBody>x</MessageBody><UserProperties><PropertyValue><Name>a</Name><Value>!</Value>"
    "<Type>BINARY</Type></PropertyValue></UserProperties></Message>",
    "number of words": "<Message><MessageBody>x</MessageBody><Priority>high</Priority></Message>",
    "long number": "<Message><MessageBody>x</MessageBody><Priority>" + "1" * 5000 + "</Priority></Message>",
    "number of other digits": "<Message><MessageBody>x</MessageBody><Priority>\u0663</Priority></Message>",
}


def body_of(name: str) -> bytes:
    given = BAD[name]
    made = given if isinstance(given, bytes | str) else given()
    return made.encode() if isinstance(made, str) else made


@pytest.mark.parametrize("name", BAD)
async def test_a_body_that_is_wrong_is_refused_and_sends_nothing(name: str) -> None:
    engine = RecordingEngine()
    answer = await ask(engine, "POST", "/queues/orders/messages", body_of(name))

    assert 400 <= answer.status < 500
    assert answer.text("Code") in ("MalformedXML", "InvalidArgument")
    assert len(answer.body) < 2000
    assert engine.calls == []


@pytest.mark.parametrize(
    "name",
    [
        "laughs",
        "quadratic",
        "deep",
        "wide",
        "10 MB",
        "10 MB of elements",
        "10 MB of a name",
        "4 MB of attributes",
        "4 MB of namespaces",
    ],
)
def test_a_bomb_takes_no_memory_beyond_its_bytes(name: str) -> None:
    body = body_of(name)
    tracemalloc.start()
    try:
        with pytest.raises(MnsError):
            xml.parse(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


@pytest.mark.parametrize(
    "namespace", ["", ' xmlns="http://mns.aliyuncs.com/doc/v1"', ' xmlns="http://mns.aliyuncs.com/doc/v1/"']
)
@pytest.mark.parametrize("prolog", ["", '<?xml version="1.0" encoding="utf-8"?>', "\ufeff"])
def test_the_three_namespaces_of_clients_are_one(namespace: str, prolog: str) -> None:
    root = xml.parse(f"{prolog}<Message{namespace}><MessageBody>zw\xf6lf &lt;&#13;</MessageBody></Message>".encode())

    assert (root.name, root.value("MessageBody"), root.value("Priority")) == ("Message", "zw\xf6lf <\r", None)


def test_the_largest_message_takes_memory_by_its_bytes() -> None:
    """The largest that is read, of characters that are written as references."""
    body = f"<Message><MessageBody>{'&lt;' * 270_000}</MessageBody></Message>".encode()
    tracemalloc.start()
    try:
        root = xml.parse(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert root.value("MessageBody") == "<" * 270_000
    assert peak < 12 * len(body)


def test_a_prefix_of_the_namespace_is_read() -> None:
    root = xml.parse(
        b'<m:Message xmlns:m="http://mns.aliyuncs.com/doc/v1/"><m:MessageBody><![CDATA[<&>]]></m:MessageBody></m:Message>'
    )

    assert root.value("MessageBody") == "<&>"


@pytest.mark.parametrize(
    "target",
    [
        "/queues/orders/messages?ReceiptHandle=%zz",
        "/queues/orders/messages?ReceiptHandle=%",
        "/queues/orders/messages?ReceiptHandle=%ff",
        "/queues/orders/messages?ReceiptHandle=a&receipthandle=b",
    ],
)
async def test_a_query_that_can_not_be_read_is_refused(target: str) -> None:
    with pytest.raises(MnsError) as refused:
        query.parse(target.partition("?")[2].encode())
    assert refused.value.code.word == "InvalidQueryString"


def test_a_query_is_read_in_any_case_and_a_plus_stays() -> None:
    assert query.parse(b"ReceiptHandle=a+b/c==&VISIBILITYTIMEOUT=%31&&x") == {
        "receipthandle": "a+b/c==",
        "visibilitytimeout": "1",
        "x": "",
    }


@pytest.mark.parametrize(
    ("headers", "target"),
    [
        ({**VERSION, "x-mns-marker": "!!!"}, "/queues"),
        ({**VERSION, "x-mns-marker": "A"}, "/queues"),
        ({**VERSION, "x-mns-ret-number": "0"}, "/queues"),
        ({**VERSION, "x-mns-ret-number": "1001"}, "/queues"),
        ({**VERSION, "x-mns-ret-number": "9" * 5000}, "/queues"),
        ({"x-mns-version": "2015-06-06 "  * 100}, "/queues"),
        ({**VERSION, "content-md5": "A" * 5000}, "/queues"),
        ({**VERSION, "sec-fetch-site": "cross-site"}, "/queues"),
        ({"origin": "http://elsewhere.example"}, "/queues/orders/messages"),
    ],
)  # fmt: skip
async def test_a_header_that_is_wrong_is_refused(headers: dict[str, str], target: str) -> None:
    engine = RecordingEngine()
    answer = await ask(engine, "GET", target, headers=headers)

    assert 400 <= answer.status < 500
    assert engine.calls == []
    assert len(answer.body) < 2000
