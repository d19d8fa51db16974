"""A yardstick, not a queue: an ASGI app that keeps bodies in a deque and speaks just enough of SQS
for the load generator.

What Leaseway takes beyond it is what Leaseway does; what it takes itself is HTTP and JSON in
Python. `servers` starts it with the very settings of Leaseway's workers. It forgets what was
leased; it must not be used for anything else.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import sys
from typing import Any

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_ready: collections.deque[str] = collections.deque()
_more = asyncio.Event()


def _put(body: str) -> dict[str, str]:
    _ready.append(body)
    _more.set()
    return {"MessageId": "m", "MD5OfMessageBody": ""}


async def _take(given: dict[str, Any]) -> dict[str, Any]:
    if not _ready and given.get("WaitTimeSeconds"):
        _more.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_more.wait(), given["WaitTimeSeconds"])
    taken = [_ready.popleft() for _ in range(min(len(_ready), given.get("MaxNumberOfMessages", 1)))]
    return {"Messages": [{"MessageId": "m", "ReceiptHandle": "h", "Body": body} for body in taken]}


async def _answer(action: str, given: dict[str, Any]) -> dict[str, Any]:
    if action == "SendMessage":
        return _put(given["MessageBody"])
    if action == "SendMessageBatch":
        return {"Successful": [{"Id": entry["Id"], **_put(entry["MessageBody"])} for entry in given["Entries"]]}
    if action == "ReceiveMessage":
        return await _take(given)
    if action == "DeleteMessageBatch":
        return {"Successful": [{"Id": entry["Id"]} for entry in given["Entries"]]}
    if action == "PurgeQueue":
        _ready.clear()
    return {"QueueUrl": "http://127.0.0.1/q"}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    action = dict(scope["headers"]).get(b"x-amz-target", b"").decode().rpartition(".")[2]
    answer = _encode(await _answer(action, _decode(body or b"{}")))
    headers = [(b"content-type", b"application/x-amz-json-1.0"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="httptools", ws="none", lifespan="off",
                access_log=False, server_header=False, log_level="warning")  # fmt: skip
