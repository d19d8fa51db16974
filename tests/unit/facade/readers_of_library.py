"""What the native library reads of hot requests, with the worst inputs of each reader;
`test_linear` takes the time of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.plane import library as lib
from tests.unit.facade.readers import Reader, filled, numbered, of_json
from tests.unit.facade.test_plane_formats import answers
from tests.unit.facade.test_plane_replies import REPLY

# SMALL_BYTES and SEND_BYTES of native/src/http/plain.rs: what is longer goes to Python as it came.
BODY_BYTES = 256 * 1024
SEND_BYTES = 2 * 1024 * 1024
_ID = b"0" * 36
_CALLS = {
    "binary": b"\x80\x01\x00\x01\x00\x00\x00\x10sendMessageBatch\x00\x00\x00\x01",
    "compact": b"\x82\x21\x01\x10sendMessageBatch",
}
# The argument, its queue, and the list of its entries, which is as long as it can be.
_LISTS = {
    "binary": b"\x0c\x00\x01\x0b\x00\x01\x00\x00\x00\x01q\x0f\x00\x02\x0c\x7f\xff\xff\xff",
    "compact": b"\x1c\x18\x01q\x19\xfc\xff\xff\xff\xff\x07",
}
_JSON = b'[1,"sendMessageBatch",1,1,{"1":{"rec":'


def calling(verb: int, media: bytes = b"") -> Callable[[bytes], Any]:
    """Reads a request as the plane does, and writes the answer if it takes it."""
    return lambda body: next(answers([[REPLY, verb, media, body, [], [_ID] * 100, 0, []]]))


def sent(protocol: str) -> dict[str, Callable[[int], bytes]]:
    """Bodies in a protocol that is no text."""
    call = _CALLS[protocol]
    return {
        **{
            f"bytes {unit!r}": filled(call, unit)
            for unit in (b"\x00", b"\x1c", b"\x19", b"\xff", b"\x0c\x00\x01", b"\x18\x01a")
        },
        **{
            f"entries of {unit!r}": filled(call + _LISTS[protocol], unit)
            for unit in (b"\x00", b"\x18\x01a\x18\x01a\x00")
        },
    }


READERS = [
    *(
        Reader(
            f"library EMQ {protocol}: {name}",
            BODY_BYTES,
            make,
            calling(lib.EMQ_SEND_BATCH, f"application/x-thrift-{protocol}".encode()),
        )
        for protocol in _CALLS
        for name, make in sent(protocol).items()
    ),
    *(
        Reader(f"library EMQ JSON: {name}", BODY_BYTES, make, calling(lib.EMQ_SEND_BATCH, b"application/x-thrift-json"))
        for name, make in {
            **dict(of_json(b"a")),
            "structs": filled(_JSON, b'{"1":{"rec":'),
            "a queue": filled(_JSON + b'{"1":{"str":"', b"q", b'"}}}}]'),
            "escapes in a queue": filled(_JSON + b'{"1":{"str":"', rb"\u00e9", b'"}}}}]'),
            "entries": numbered(
                _JSON + b'{"1":{"str":"q"},"2":{"lst":["rec",9999', b',{"1":{"str":"%x"},"2":{"str":"b"}}', b"]}}}}]"
            ),
            "digits": filled(b'[1,"sendMessageBatch",1,', b"1", b",{}]"),
        }.items()
    ),
    *(Reader(f"library SQS: {name}", SEND_BYTES, make, calling(lib.SEND_BATCH)) for name, make in of_json(b"Entries")),
    *(
        Reader(f"library native: {name}", SEND_BYTES, make, calling(lib.NATIVE_SEND))
        for name, make in of_json(b"messages")
    ),
]
