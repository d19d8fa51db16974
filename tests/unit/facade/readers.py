"""All that reads bytes of strangers, with the worst inputs of each and the largest size of them.

`test_linear` takes the time of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from engine.errors import EngineError
from engine.move.tasks.selection import chosen_offsets
from engine.outgoing.post import target_of
from engine.rules.queue import Ids, Queue
from facade.called import base_of
from facade.dialect import Refusal
from facade.dialects.emq import signature as emq_signature
from facade.dialects.emq.wire.protocols import decode_call
from facade.dialects.emq.wire.services import MESSAGE_SERVICE
from facade.dialects.mns import signature as mns_signature
from facade.dialects.mns.messages import delayed, properties
from facade.dialects.mns.wire import query, replies, xml
from facade.dialects.native.exchange import BODY_BYTES
from facade.dialects.native.operations import OPERATIONS
from facade.dialects.native.wire.shapes import SendBody
from facade.dialects.native.wire.translate import entries_of
from facade.dialects.rocketmq import signature as rocketmq_signature
from facade.dialects.rocketmq.messages import ordering
from facade.dialects.rocketmq.messages import properties as rocketmq_properties
from facade.dialects.rocketmq.queues import expressions
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.sqs import paths, signature
from facade.dialects.sqs.actions import ACTIONS
from facade.dialects.sqs.messages.attributes import Wanted, incoming
from facade.dialects.sqs.messages.batches import by_id
from facade.dialects.sqs.queues import filters, policies, redrive, tags
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.wire import forms
from facade.dialects.sqs.wire import xml as sqs_xml
from facade.dialects.sqs.wire.errors import SqsError
from facade.dialects.sqs.wire.limits import LIMITS, REQUEST_BYTES
from facade.dialects.sqs.wire.shapes import AttributeValue, OutgoingEntry
from facade.http.asgi import check_media_type, credentials
from facade.http.bounds.peers import address_of
from facade.http.decode import check_values, decode_json, decode_query
from facade.http.front import LONG_BYTES
from facade.http.problem import ProblemError
from facade.http.sockets.request import scope_of
from schemas.identity import BadIdentity
from schemas.records import Attribute, Message
from schemas.wire import UndecodableRecord, decode, encode
from tests.unit.records import queue_record

HEAD = 65_000
NATIVE = 16_777_216
RECORD = 1_100_000
AWS = LIMITS["aws"]
PLACE = Place("http://127.0.0.1:9400", "000000000000", "us-east-1")
REFUSALS: tuple[type[Exception], ...] = (
    ProblemError,
    Refusal,
    EngineError,
    RocketError,
    SqsError,
    BadIdentity,
    UndecodableRecord,
    msgspec.DecodeError,
    ValueError,
)
EMQ = 524_288
ROCKETMQ = 4_900_000


class Reader(NamedTuple):
    """`read` takes what `make` makes of a size; `most` is the largest that it is given."""

    name: str
    most: int
    make: Callable[[int], Any]
    read: Callable[[Any], Any]

    @property
    def is_long(self) -> bool:
        """Whether its largest input is read off the event loop."""
        return self.most > LONG_BYTES


def filled(start: bytes, unit: bytes, end: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: start + unit * ((size - len(start) - len(end)) // len(unit)) + end


def texts(start: str, unit: str, end: str = "") -> Callable[[int], str]:
    return lambda size: filled(start.encode(), unit.encode(), end.encode())(size).decode()


def numbered(start: bytes, unit: bytes, end: bytes) -> Callable[[int], bytes]:
    """Of units that differ."""
    return lambda size: (
        start + b"".join(unit % number for number in range((size - len(start)) // (len(unit) + 2))) + end
    )


def of_json(unit: bytes) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    """Bodies in JSON whose values are of a list that is called so."""
    yield "objects", filled(b'{"%s":[' % unit, b"{},", b"{}]}")
    yield "lists", filled(b'{"%s":' % unit, b"[", b"")
    yield "numbers", filled(b'{"%s":[' % unit, b"1,", b"1]}")
    yield "digits", filled(b'{"%s":' % unit, b"1", b"}")
    yield "fraction", filled(b'{"%s":0.' % unit, b"1", b"}")
    yield "escapes", filled(b'{"%s":"' % unit, rb"\u00e9", b'"}')
    yield "quotes", filled(b'{"%s":"' % unit, rb"\"", b'"}')
    yield "backslashes", filled(b'{"%s":"' % unit, rb"\\", b'"}')
    yield "JSON in a string", filled(b'{"%s":"' % unit, rb"[\"a\",", b'"}')
    yield "short strings", filled(b'{"%s":[' % unit, b'"",', b'""]}')
    yield "keys", numbered(b'{"%s":{' % unit, b'"%x":0,', b'"":0}}')
    yield "a long key", filled(b'{"', b"a", b'":0}')
    yield "an unknown key with words", filled(b'{"', b" - at `$ Expected `x`, got `", b'":0}')
    yield "spaces", filled(b"", b" ", b"")
    yield "an open string", filled(b'"', b"a", b"")


FORMS = {
    "escapes": filled(b"a=", b"%C3%A9"),
    "every other": filled(b"a=", b"a%41"),
    "no escapes": filled(b"a=", b"%"),
    "half escapes": filled(b"a=", b"%4"),
    "backslashes": filled(b"a=%41", b"\\"),
    "pluses": filled(b"a=", b"+"),
    "fields": filled(b"", b"&a=1"),
    "empty fields": filled(b"", b"&"),
    "levels": filled(b"a", b".a", b"=1"),
    "numbers": numbered(b"Action=SendMessageBatch", b"&SendMessageBatchRequestEntry.%d.Id=1", b""),
    "attributes": numbered(b"Action=SendMessage", b"&MessageAttribute.%d.Name=a", b""),
}
XML = {
    "open tags": filled(b"", b"<a" * 2045 + b">"),
    "nested open": filled(b"", b"<a"),
    "elements": filled(b"<Message>", b"<a/>"),
    "levels": filled(b"", b"<a>"),
    "attributes": numbered(b"<a ", b"a%x='' ", b"/>"),
    "attributes with ends": numbered(b"<a ", b"a%x='>' ", b"/>"),
    "namespaces": numbered(b"<a ", b"xmlns:a%x='u' ", b"/>"),
    "text": filled(b"<Message><MessageBody>", b"a", b"</MessageBody></Message>"),
    "references": filled(b"<Message><MessageBody>", b"&lt;", b"</MessageBody></Message>"),
    "lines": filled(b"<Message><MessageBody>", b"\n", b"</MessageBody></Message>"),
    "data": filled(b"<Message><MessageBody><![CDATA[", b"<b ", b"]]></MessageBody></Message>"),
    "ends of data": filled(b"<Message><![CDATA[", b"]]", b""),
    "comment": filled(b"<!--", b"- ", b"-->"),
    "comments": filled(b"", b"<!---->", b"<a/>"),
    "instructions": filled(b"", b"<?a?>", b"<a/>"),
    "type": filled(b"<!DOCTYPE a [", b"<!ENTITY a ''>", b"]>"),
    "name": filled(b"<", b"a", b"/>"),
    "reference": filled(b"<a>&", b"a", b";</a>"),
}


def thrift(start: bytes, unit: bytes) -> Callable[[int], bytes]:
    return filled(start, unit)


def native_messages(size: int) -> bytes:
    return b'{"messages":[{"body":"a","attributes":{"a":{"type":"number","value":"%s"}}}]}' % (
        b"0" * (size - 80) + b"x"
    )


def decoding(shape: Any) -> Callable[[bytes], Any]:
    decoder = msgspec.json.Decoder(shape)
    return lambda body: decode_json(decoder, body)


def calling(kind: str) -> Callable[[bytes], Any]:
    return lambda body: decode_call(f"application/x-thrift-{kind}".encode(), body, MESSAGE_SERVICE)


def wrapped(make: Callable[[int], Any], wrap: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda size: wrap(make(size))


def send(body: bytes) -> Any:
    return entries_of(decode_json(SEND, body).messages)


def sqs_json(action: str) -> Callable[[bytes], Any]:
    decoder = ACTIONS[action].decoder

    def read(body: bytes) -> Any:
        check_values(body)
        return decoder.decode(body)

    return read


def sqs_form(body: bytes) -> Any:
    tree = forms.parse(b"", body)
    return forms.struct_of(ACTIONS["SendMessageBatch"].body, tree, "SendMessageBatch")


def mns(body: bytes) -> Any:
    return properties.incoming(xml.parse(body))


def signed(authorization: bytes, query: bytes = b"") -> signature.Asked:
    headers = [(b"host", b"a"), (b"x-amz-date", b"20260101T000000Z"), (b"authorization", authorization)]
    return signature.Asked("POST", b"/", query, headers)


def sqs_signature(asked: signature.Asked) -> Any:
    signature.claimed_scope(dict(asked.headers)[b"authorization"], asked.query)
    claim = signature.claim_of(asked)
    return None if claim is None else claim.fits("secret", b"")


def scope_of_path(path: bytes) -> Any:
    return scope_of([0, [], 0, b"GET", path, b"", [], b""], None, None, "http", {})


def scope(**given: Any) -> Any:
    return {"scheme": "http", "client": ("127.0.0.1", 1), "server": None, **given}


def rocketmq_message(properties: bytes) -> bytes:
    """A message with these system properties, which come twice: the second time with an id."""
    size, length = len(properties), b""
    while size > 127:
        length, size = length + bytes((size & 127 | 128,)), size >> 7
    message: bytes = pb.Message(system_properties=OF_MESSAGE).SerializeToString()
    return b"\x1a" + length + bytes((size,)) + properties + message


OF_MESSAGE = pb.SystemProperties(message_id="i")
OPERATIONS_WITH_QUERY = [operation.query for operation in OPERATIONS if operation.query is not None]
IDS = Ids("secret")
QUEUE = Queue(
    queue_record("q", incarnation='a' * 12, owner='', created_at_ms=0, modified_at_ms=0),
    "lw",
)  # fmt: skip
SEND = msgspec.json.Decoder(SendBody)
AUTHORIZATION = b"AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/sqs/aws4_request, SignedHeaders="
READERS = [
    *(Reader(f"native send: {name}", NATIVE, make, send) for name, make in of_json(b"messages")),
    Reader("native send: a number", NATIVE, native_messages, send),
    *(
        Reader(
            f"native {operation.name}: {name}",
            BODY_BYTES,
            make,
            decoding(operation.body),
        )
        for operation in OPERATIONS
        if operation.name in ("redrive", "create_queue", "receive", "ack")
        for name, make in of_json(b"filter")
    ),
    *(
        Reader(f"SQS JSON send: {name}", AWS.json_bytes, make, sqs_json("SendMessageBatch"))
        for name, make in of_json(b"Entries")
    ),
    *(
        Reader(f"SQS JSON create: {name}", REQUEST_BYTES, make, sqs_json("CreateQueue"))
        for name, make in of_json(b"Attributes")
    ),
    *(Reader(f"SQS form: {name}", AWS.form_bytes, make, sqs_form) for name, make in FORMS.items()),
    *(
        Reader(
            f"SQS number: {unit!r}",
            1_048_576,
            texts("", unit, "x"),
            lambda text: incoming({"a": AttributeValue("Number", text)}),
        )
        for unit in ("0", "1", "0.", "1e1", "+", "٣")
    ),
    *(
        Reader(
            f"SQS number in 400: {unit!r}",
            400,
            texts("", unit, "x"),
            lambda text: incoming({"a": AttributeValue("Number", text)}),
        )
        for unit in ("0", "1", "00.")
    ),
    Reader(
        "SQS attribute name", 1_048_576, texts("a", "."), lambda text: incoming({text: AttributeValue("String", "a")})
    ),
    Reader("SQS data type", 1_048_576, texts("String.", "a."), lambda text: incoming({"a": AttributeValue(text, "a")})),
    Reader(
        "SQS batch",
        10_000,
        lambda size: [OutgoingEntry(id=f"a{n}") for n in range(size)],
        lambda entries: by_id("SendMessage", entries, 10),
    ),
    Reader(
        "SQS attribute names of a receive",
        REQUEST_BYTES,
        lambda size: [f"{number}.*" for number in range(size // 9)],
        lambda names: [Wanted(names).of({f"a{n}" * 60: Attribute("String", b"a") for n in range(10)})],
    ),
    *(
        Reader(f"SQS policy: {name}", REQUEST_BYTES, make, lambda text: policies.grants_of(text, PLACE, "q"))
        for name, make in {
            "long": texts('{"Statement":"', "a", '"}'),
            "levels": texts("", "[", ""),
        }.items()
    ),
    *(
        Reader(f"SQS policy of actions: {name}", 8000, make, lambda text: policies.grants_of(text, PLACE, "q"))
        for name, make in {
            "stars": texts('{"Statement":{"Effect":"Allow","Principal":"*","Action":["sqs:', "*a", '"]}}'),
            "stars alone": texts('{"Statement":{"Effect":"Allow","Principal":"*","Action":["sqs:', "*", 'z"]}}'),
            "marks": texts('{"Statement":{"Effect":"Allow","Principal":"*","Action":["sqs:', "*?", '"]}}'),
            "many": lambda size: numbered(
                b'{"Statement":{"Effect":"Allow","Principal":"*","Action":[', b'"sqs:*%x*",', b'"sqs:*"]}}'
            )(size).decode(),
            "resources": texts(
                '{"Statement":{"Effect":"Allow","Principal":"*","Action":"*","Resource":"arn:a:sqs:b:c:', "*a", '"}}'
            ),
            "principals": texts(
                '{"Statement":{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::1:user/', "a/", ':"},"Action":"*"}}'
            ),
        }.items()
    ),
    Reader("SQS filter policy", REQUEST_BYTES, texts('{"a":[', '"a",', '"a"]}'), filters.filter_of),
    Reader(
        "SQS redrive policy",
        REQUEST_BYTES,
        texts('{"deadLetterTargetArn":"', ":", '","maxReceiveCount":1}'),
        lambda text: redrive.policy_of(text, PLACE),
    ),
    *(
        Reader(f"SQS URL: {unit}", REQUEST_BYTES, texts("http://a/", unit), PLACE.of_url)
        for unit in ("/", "1", "1/", "@", ".", "%")
    ),
    *(
        Reader(f"SQS path: {unit}", HEAD, texts("/1", unit), lambda text: (paths.is_own(text), paths.of_queue(text)))
        for unit in ("/", "1", "1/a")
    ),
    *(
        Reader(
            f"SQS signature: {unit!r}",
            HEAD,
            wrapped(filled(start, unit, b", Signature=a"), signed),
            sqs_signature,
        )
        for start, unit in (
            (b"AWS4-HMAC-SHA256 ", b"Credential="),
            (b"AWS4-HMAC-SHA256 ", b"Credential=a"),
            (b"AWS4-HMAC-SHA256 Credential=", b"/"),
            (b"AWS4-HMAC-SHA256 ", b","),
            (AUTHORIZATION, b"host;"),
            (AUTHORIZATION, b";"),
        )
    ),
    *(
        Reader(
            f"SQS signature in a query: {unit!r}",
            HEAD,
            wrapped(filled(b"X-Amz-Algorithm=AWS4-HMAC-SHA256", unit), lambda query: signed(b"", query)),
            sqs_signature,
        )
        for unit in (b"&X-Amz-Credential=", b"&X-Amz-Credential=a%2F", b"&a=%41", b"&")
    ),
    *(Reader(f"MNS XML: {name}", xml.MAX_BYTES, make, mns) for name, make in XML.items()),
    *(
        Reader(f"MNS query: {unit!r}", HEAD, filled(b"", unit), query.parse)
        for unit in (b"&a=%41", b"%41", b"%", b"&", b"=")
    ),
    *(
        Reader(
            f"MNS signature: {unit!r}",
            HEAD,
            wrapped(filled(b"MNS ", unit), lambda value: [(b"authorization", value), (b"date", b"x")]),
            lambda headers: (mns_signature.claimed_key_id(headers[0][1]), mns_signature.claim_of("GET", b"/", headers)),
        )
        for unit in (b" ", b"a", b"a:", b":")
    ),
    Reader(
        "MNS date",
        HEAD,
        lambda size: [(b"authorization", b"MNS a:" + b"a" * 27 + b"="), (b"date", filled(b"Thu, ", b"1 ")(size))],
        lambda headers: mns_signature.claim_of("GET", b"/", headers),
    ),
    *(
        Reader(
            f"EMQ {kind}: {name}",
            EMQ,
            make,
            calling(kind),
        )
        for kind, start in (
            ("compact", b"\x82\x21\x01\x10sendMessageBatch"),
            ("binary", b"\x80\x01\x00\x01\x00\x00\x00\x10sendMessageBatch\x00\x00\x00\x01"),
        )
        for name, make in {
            "structs": thrift(start, b"\x1c"),
            "lists": thrift(start, b"\x19"),
            "zeros": thrift(start, b"\x00"),
            "binary structs": thrift(start, b"\x0c\x00\x01"),
        }.items()
    ),
    *(
        Reader(
            f"EMQ JSON: {name}",
            EMQ,
            make,
            lambda body: decode_call(b"application/x-thrift-json", body, MESSAGE_SERVICE),
        )
        for name, make in of_json(b"a")
    ),
    Reader(
        "EMQ JSON digits",
        EMQ,
        filled(b'[1,"sendMessage",1,', b"1", b",{}]"),
        lambda body: decode_call(b"application/x-thrift-json", body, MESSAGE_SERVICE),
    ),
    *(
        Reader(f"EMQ signature: {unit!r}", HEAD, filled(b"Galaxy-V2 ", unit), emq_signature.claimed_key_id)
        for unit in (b" ", b"a", b"a:")
    ),
    *(
        Reader(
            f"RocketMQ signature: {unit!r}",
            HEAD,
            wrapped(texts("MQv2-HMAC-SHA1 ", unit), lambda value: {"authorization": value, "x-mq-date-time": value}),
            rocketmq_signature.claim_of,
        )
        for unit in ("Credential=", "a=b,", ",", "=", "/")
    ),
    *(
        Reader(
            f"RocketMQ expression: {unit!r}",
            RECORD,
            wrapped(texts("", unit), lambda text: pb.FilterExpression(expression=text)),
            expressions.text_of,
        )
        for unit in ("a||", "|", " ", "a")
    ),
    *(
        Reader(
            f"RocketMQ message: {name}",
            ROCKETMQ,
            make,
            lambda body: rocketmq_properties.attributes_of(pb.Message.FromString(body)),
        )
        for name, make in {
            "keys": lambda size: rocketmq_message(b"\x12\x01a" * (size // 3)),
            "a key": lambda size: rocketmq_message(pb.SystemProperties(keys=["a" * size]).SerializeToString()),
            "a tag": lambda size: rocketmq_message(pb.SystemProperties(tag="a" * size).SerializeToString()),
            "an id": lambda size: rocketmq_message(pb.SystemProperties(message_id="a" * size).SerializeToString()),
            "a host": lambda size: rocketmq_message(pb.SystemProperties(born_host="a" * size).SerializeToString()),
        }.items()
    ),
    Reader("RocketMQ group", ROCKETMQ, texts("", "utf8:"), ordering.stored),
    Reader("MNS handle", HEAD, texts("D", "0", "-"), delayed.message_of),
    Reader("SQS reply", RECORD, texts("", "\x01"), lambda text: sqs_xml.error("Sender", "a", text, "")),
    Reader("MNS reply", xml.MAX_BYTES, texts("", "\x01"), lambda text: replies.document("a", [("b", text)])),
    Reader("SQS tags", REQUEST_BYTES, texts("", " ."), lambda text: tags.checked("q", {"a": text})),
    *(Reader(f"id: {unit!r}", AWS.json_bytes, texts("", unit), IDS.read_id) for unit in ("-", "0", "4")),
    *(Reader(f"handle: {unit!r}", AWS.json_bytes, texts("", unit), IDS.read_handle) for unit in ("-", "A", "=")),
    *(
        Reader(f"path: {unit!r}", HEAD, filled(b"/", unit), scope_of_path)
        for unit in (b"%41", b"%", b"/", b"?", b"../")
    ),
    *(
        Reader(
            f"media type: {unit!r}", HEAD, filled(b"a", unit), lambda value: check_media_type({b"content-type": value})
        )
        for unit in (b";", b";charset=a", b" ")
    ),
    Reader("Basic", HEAD, filled(b"Basic ", b"YTph"), lambda value: credentials({b"authorization": value})),
    *(
        Reader(
            f"forwarded for: {unit!r}",
            HEAD,
            filled(b"", unit),
            lambda value: address_of(scope(), {b"x-forwarded-for": value}, trusted=True),
        )
        for unit in (b",", b"1.1.1.1,", b":", b"[", b" ")
    ),
    *(
        Reader(
            f"forwarded host: {unit!r}",
            HEAD,
            filled(b"", unit),
            lambda value: base_of(scope(), {b"x-forwarded-host": value, b"x-forwarded-port": value}, trusted=True),
        )
        for unit in (b"a", b"a:", b"1", b"[")
    ),
    *(
        Reader(f"query: {unit!r}", HEAD, filled(b"", unit), lambda text: decode_query(OPERATIONS_WITH_QUERY[0], text))
        for unit in (b"&a=%41", b"%41", b"&", b"limit=1&")
    ),
    Reader("webhook", 1_048_576, texts("http://", "[:"), target_of),
    Reader(
        "ids of a task",
        10_000,
        lambda size: [f"aaaaaaaaaaaa/0/{number}" for number in range(size)],
        lambda ids: chosen_offsets(QUEUE, ids, IDS),
    ),
    *(
        Reader(f"record of Kafka: {name}", RECORD, make, decode)
        for name, make in {
            "zeros": lambda size: encode(Message(b""))[:5] + bytes(size),
            "lengths": lambda size: encode(Message(b""))[:5] + b"\x02" * size,
            "ones": lambda size: encode(Message(b""))[:5] + b"\xff" * size,
        }.items()
    ),
]
