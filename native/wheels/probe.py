"""Does the library that this Python finds serve a request? `python -m native.wheels.probe` says
where it came from. Needs msgspec and no other package.
"""

from __future__ import annotations

import os
import socket
import sys
import time

import msgspec

from facade.http.sockets.answers import SENT
from facade.http.sockets.library import ALL, NativeFront, NoLibraryError, found

SEND = 1  # native/src/requests.rs
SECONDS = 10.0
BODY = b'{"QueueUrl": "http://localhost/1/q", "MessageBody": "hello"}'
REQUEST = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n"
    b"Content-Type: application/x-amz-json-1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)


def served() -> bytes:
    """The reply to one SendMessage. Raises NoLibraryError, TimeoutError."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        front = NativeFront(os.dup(bound.fileno()), b"p", 10, ALL)
        try:
            with socket.create_connection(bound.getsockname(), SECONDS) as client:
                client.sendall(REQUEST)
                front.answer(msgspec.msgpack.encode([(SENT, [(_asked(front), ["id-1"])])]))
                return client.recv(65_536)
        finally:
            front.free()


def _asked(front: NativeFront) -> int:
    """The connection that has asked to send."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for kind, _, items in front.look()[0]:
            if kind == SEND:
                return int(items[0][0])
        time.sleep(0.01)
    raise TimeoutError("the library has not read the request")


def main() -> int:
    try:
        _, origin = found()
        reply = served()
    except (NoLibraryError, OSError) as error:
        print(f"probe: {error}")
        return 1
    well = reply.startswith(b"HTTP/1.1 200 OK\r\n") and b'"MessageId":"id-1"' in reply
    print(f"probe: {origin}: {'a request was served' if well else f'answered {reply!r}'}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
