"""Messages to send, made of arguments, files and lines; and batches of them."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from facade.programs.connect.failures import WRONG_USE, Failure

Message = dict[str, Any]
MOST_MESSAGES: Final = 100  # of a send
BATCH_BYTES: Final = 1_000_000  # of lines that go in one send; the service takes four times that
MOST_LINE: Final = 4_016_384  # bytes; the service takes no larger message
_CHUNK: Final = 65_536
# What a message to send may have; what a printed message has beside them is passed over.
FIELDS: Final = (
    "body",
    "body_base64",
    "attributes",
    "delay_seconds",
    "deliver_at_ms",
    "lease_seconds",
    "group",
    "dedup_id",
    "priority",
)
_PRINTED: Final = (
    "id",
    "handle",
    "state",
    "sent_at_ms",
    "receive_count",
    "first_received_at_ms",
    "next_visible_at_ms",
    "partition",
    "offset",
    "sequence_number",
    "sender",
    "origin",
    "masked",
)


def body_of(data: bytes) -> Message:
    """A message with these bytes as body: as text if they are, else in base64."""
    try:
        return {"body": data.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(data).decode()}


def bytes_of(message: Mapping[str, Any]) -> bytes:
    """The body of a message of the API."""
    text = message.get("body")
    return base64.b64decode(message.get("body_base64", "")) if text is None else text.encode("utf-8", "surrogatepass")


def from_arguments(texts: Sequence[str], files: Sequence[Path]) -> Iterator[Message]:
    """Messages of arguments, then of whole files; `-` = all of stdin, as either. Raises Failure: a
    file can't be read, or stdin twice.
    """
    if [*texts, *map(str, files)].count("-") > 1:
        raise Failure("stdin (-) can be read once", WRONG_USE)
    for text in texts:
        yield body_of(sys.stdin.buffer.read() if text == "-" else os.fsencode(text))
    for path in files:
        try:
            yield body_of(sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes())
        except OSError as error:
            raise Failure(f"{path} can't be read: {error.strerror}", WRONG_USE) from None


def from_object(number: int, line: bytes) -> Message:
    """A message of a line of JSON, as the API has it or as a command has printed it. Raises
    Failure.
    """
    try:
        read = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Failure(f"line {number} is not JSON: {error}", WRONG_USE) from None
    if not isinstance(read, dict):
        raise Failure(f"line {number} is no JSON object, given {line[:100].decode('utf-8', 'replace')!r}", WRONG_USE)
    if unknown := [name for name in read if name not in FIELDS and name not in _PRINTED]:
        raise Failure(f"line {number} has {unknown[0]!r}, and a message has {', '.join(FIELDS)}", WRONG_USE)
    if read.get("masked"):
        raise Failure(f"line {number} is masked: it would be sent without what is hidden of it", WRONG_USE)
    return {name: read[name] for name in FIELDS if name in read}


def lines_of(stream: BinaryIO) -> Iterator[list[bytes]]:
    """The lines of a stream without their ends (LF or CRLF), those together that came together: who
    writes slowly is not kept waiting for more lines. An empty line is none. Raises Failure: a line
    does not end.
    """
    read = getattr(stream, "read1", stream.read)
    rest = b""
    while data := read(_CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        if kept := _without_ends(lines):
            yield kept
        if len(rest) > MOST_LINE:
            raise Failure(f"a line has more than {MOST_LINE} bytes", WRONG_USE)
    if kept := _without_ends([rest]):
        yield kept


def _without_ends(lines: Iterable[bytes]) -> list[bytes]:
    return [kept for line in lines if (kept := line.removesuffix(b"\r"))]


def batches(messages: Iterable[Message], most_bytes: int = BATCH_BYTES) -> Iterator[list[Message]]:
    """Messages in batches that one send takes; one that is larger goes alone."""
    batch: list[Message] = []
    size = 0
    for message in messages:
        length = len(json.dumps(message))
        if batch and (len(batch) == MOST_MESSAGES or size + length > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += length
    if batch:
        yield batch
