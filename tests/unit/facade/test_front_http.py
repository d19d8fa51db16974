"""The native front reads HTTP as h11 does, or refuses it: two who read one stream must find the
same requests in it, or a proxy before us and we could be made to disagree.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import h11
import pytest

from facade.http.sockets.library import requests_of

pytestmark = pytest.mark.usefixtures("library")

SEED = 44
STREAMS = 30_000
# What h11 takes and we refuse, as we should: who else reads the stream may read it in another way.
STRICTER = (
    "A line of the head does not end in CR LF.",
    "A header goes on in a second line.",
    "The value of a header has a character that no value has.",
    "The header Content-Length is there twice.",
    "The header Content-Length is no length.",  # "1, 1" and more digits than we count
    "The length of the body is told in two ways, or in one that HTTP/1.0 has not.",
    "The header Host is not a name and a port.",
    "The target of the request is no path.",
    "The request is not HTTP/1.1, but",
    "The body of the request is not in chunks as HTTP/1.1 has them.",
    "A request may have 128 headers.",
    "The request is not HTTP/1.1.",
    "The header Transfer-Encoding is not chunked, once.",  # of two lines
)
# An empty line may stand before a request (RFC 9112, 2.2), which h11 does not take.
EMPTY_LINE = "h11: no request line received"
ENDS = ("", "part", "closed")
METHODS = ["GET", "POST", "PUT", "HEAD", "OPTIONS", "BREW"]
TARGETS = ["/", "/a?b=c", "/a%20b", "http://h/a?b", "/v1/queues/q/messages", "*"]
HEADERS = [
    "A: b",
    "X-Amz-Target: AmazonSQS.SendMessage",
    "Accept:",
    "B:\tc ",
    "Connection: keep-alive",
    "Latin: \xe9",
    "Expect: 100-continue",
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b":",
    b"\0",
    b"0",
    b"f",
    b";",
    b",",
    b"\xff",
    b"\r\n\r\n",
    b"\r\n ",
    b"-",
    b"+",
]
LINES = [
    b"Content-Length: 3\r\n",
    b"content-length: 3, 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Host: other\r\n",
    b"Connection: close\r\n",
    b" folded\r\n",
]


class Found(NamedTuple):
    """Requests (method, target, whether HTTP/1.0, headers, body), and how their stream ends."""

    requests: list[tuple[bytes, bytes, bool, list[tuple[bytes, bytes]], bytes]]
    end: str  # "", "part", "closed", or why it is refused


def by_library(stream: bytes, step: int) -> Found:
    told, end = requests_of(stream, step)
    found = [(one[0], one[1], bool(one[2]), list(zip(one[3][::2], one[3][1::2], strict=True)), one[4]) for one in told]
    return Found(found, end[1] if isinstance(end, list) else {None: "", 0: "part", 1: "closed"}[end])


def by_h11(stream: bytes) -> Found:
    server = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    server.receive_data(stream)
    found: list[Any] = []
    head, body = None, b""
    try:
        while True:
            event = server.next_event()
            if isinstance(event, h11.Request):
                head, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                found.append((head.method, head.target, head.http_version == b"1.0", list(head.headers), body))
                head = None
                server.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                server.send(h11.EndOfMessage())
                if server.our_state is h11.MUST_CLOSE:
                    return Found(found, "closed")
                server.start_next_cycle()
            elif event is h11.NEED_DATA:
                left = server.trailing_data[0]
                return Found(found, "part" if head is not None or left else "")
            else:
                return Found(found, "closed")
    except h11.RemoteProtocolError as error:
        return Found(found, f"h11: {error}")


def request(chance: random.Random) -> bytes:
    method, target = chance.choice(METHODS), chance.choice(TARGETS)
    version = chance.choice("1111110")
    lines = [
        f"{method} {target} HTTP/1.{version}",
        "Host: localhost:9400",
        *chance.sample(HEADERS, chance.randrange(4)),
    ]
    body = bytes(chance.choices(range(256), k=chance.choice([0, 1, 3, 30])))
    kind = chance.random()
    if kind < 0.4:
        lines.append(f"Content-Length: {len(body)}")
    elif kind < 0.8 and version == "1":
        lines.append("Transfer-Encoding: chunked")
        half = len(body) // 2
        chunks = [part for part in (body[:half], body[half:]) if part]
        extension = chance.choice([b"", b"", b";a", b";a=b"])
        trailers = chance.choice([b"", b"", b"Sum: 1\r\n"])
        body = (
            b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in chunks)
            + b"0\r\n"
            + trailers
            + b"\r\n"
        )
    else:
        body = b""
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1") + b"\r\n" + body


def mutated(chance: random.Random, stream: bytes) -> bytes:
    for _ in range(chance.choice([0, 1, 1, 2])):
        at, kind = chance.randrange(len(stream) + 1), chance.random()
        if kind < 0.3:
            stream = stream[:at] + chance.choice(PIECES) + stream[at:]
        elif kind < 0.6:
            ends = [place + 2 for place in range(len(stream)) if stream.startswith(b"\r\n", place)]
            at = chance.choice(ends or [0])
            stream = stream[:at] + chance.choice(LINES) + stream[at:]
        elif kind < 0.75:
            stream = stream[:at] + bytes([chance.randrange(256)]) + stream[at + 1 :]
        elif kind < 0.9:
            stream = stream[:at] + stream[at + 1 :]
        else:
            stream = stream[:at]
    return stream


def test_what_the_library_reads_h11_reads_with_the_same_values() -> None:
    chance = random.Random(SEED)
    alike, refused, stricter = 0, 0, 0
    for _ in range(STREAMS):
        stream = mutated(chance, b"".join(request(chance) for _ in range(chance.randrange(1, 4))))
        if not stream:
            continue
        ours, theirs = by_library(stream, chance.choice([1, 7, len(stream) + 1])), by_h11(stream)
        if theirs.end == EMPTY_LINE or (ours.end == "part" and stream.endswith(b"\r\n\r")):
            shared = min(len(ours.requests), len(theirs.requests))
            assert ours.requests[:shared] == theirs.requests[:shared], stream
            continue
        number = len(ours.requests)
        assert ours.requests == theirs.requests[:number], stream
        if ours == theirs:
            alike += 1
        elif number == len(theirs.requests) and ours.end not in ENDS and theirs.end not in ("", "closed"):
            refused += 1  # by both, or by us before they have all of it
        else:
            assert ours.end.startswith(STRICTER), (ours.end, theirs.end, stream)
            stricter += 1
    # So that the comparison compares something.
    assert min(alike, refused) > STREAMS / 3 and stricter > STREAMS / 20, (alike, refused, stricter)


def test_good_streams_are_read_alike() -> None:
    chance = random.Random(SEED)
    for _ in range(STREAMS // 10):
        stream = b"".join(request(chance) for _ in range(chance.randrange(1, 4)))
        ours, theirs = by_library(stream, chance.choice([1, 7, len(stream) + 1])), by_h11(stream)
        assert ours == theirs, stream
