"""Records to bytes and back: Confluent wire format (a zero byte, 4 bytes schema id, Avro binary).

Every function is pure and safe from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any, TypeAlias

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from msgspec import ValidationError, convert, to_builtins
from msgspec.json import Decoder

from schemas.pack import pack, pack_snapshot
from schemas.records import (
    Attribute,
    BatchMark,
    ClaimRecord,
    DelayRecord,
    GenerationRecord,
    JournalRecord,
    KeyRecord,
    Message,
    Origin,
    OutcomesRecord,
    PositionRecord,
    ProducerGroupRecord,
    QueueRecord,
    SnapshotRecord,
    TaskRecord,
    TransactionRecord,
    UserRecord,
)
from schemas.records.watching import AuditRecord, HistoryRecord, MeterRecord, RequestsRecord, WatchRecord
from schemas.registry import schema_id, schema_ids, schema_name, schema_text
from schemas.unpack import unpack
from schemas.vocabulary import HEADER_NAME_CHARS

AnyRecord: TypeAlias = (
    Message
    | JournalRecord
    | QueueRecord
    | KeyRecord
    | TaskRecord
    | GenerationRecord
    | SnapshotRecord
    | PositionRecord
    | UserRecord
    | TransactionRecord
    | ProducerGroupRecord
    | MeterRecord
    | RequestsRecord
    | WatchRecord
    | DelayRecord
    | AuditRecord
    | ClaimRecord
    | HistoryRecord
    | OutcomesRecord
)

_HEAD_BYTES = 5
_TYPES: dict[str, type[AnyRecord]] = {
    "message": Message,
    "journal": JournalRecord,
    "queue": QueueRecord,
    "key": KeyRecord,
    "task": TaskRecord,
    "generation": GenerationRecord,
    "snapshot": SnapshotRecord,
    "position": PositionRecord,
    "user": UserRecord,
    "transaction": TransactionRecord,
    "producer_group": ProducerGroupRecord,
    "meter": MeterRecord,
    "requests": RequestsRecord,
    "watch": WatchRecord,
    "delay": DelayRecord,
    "audit": AuditRecord,
    "claim": ClaimRecord,
    "history": HistoryRecord,
    "outcomes": OutcomesRecord,
}


class UndecodableRecord(ValueError):
    """The bytes claim one of our schemas and can't be read with it; the text names the fault."""


def _head(id: int) -> bytes:
    return b"\x00" + id.to_bytes(4, "big")


def _field(record: dict[str, Any], name: str) -> dict[str, Any]:
    return next(field["type"] for field in record["fields"] if field["name"] == name)


_PARSED = {number: parse_schema(json.loads(schema_text(number))) for number in schema_ids()}
_NEWEST = {subject: schema_id(subject) for subject in _TYPES}
_SUBJECTS = {kind: subject for subject, kind in _TYPES.items()}
# What msgspec has to know of a struct it finds out at the first use, and a second thread that uses
# it meanwhile finds half of that: the process ends (SIGSEGV, msgspec 0.22). So that use is here.
for _kind in _TYPES.values():
    Decoder(_kind)
_MESSAGE_HEAD = _head(_NEWEST["message"])
_NEWEST_MESSAGE = _PARSED[_NEWEST["message"]]
_SNAPSHOT_HEAD = _head(_NEWEST["snapshot"])
_DELIVERIES = parse_schema(_field(_field(json.loads(schema_text(_NEWEST["snapshot"])), "tags")["items"], "deliveries"))


def _reading() -> dict[bytes, tuple[str, Any, Any]]:
    """Head of a record -> subject, its writer's schema, and the newest schema if that is another
    one.
    """
    found = {}
    for number, written in _PARSED.items():
        subject = schema_name(number).split(".")[0]
        found[_head(number)] = (subject, written, None if _NEWEST[subject] == number else _PARSED[_NEWEST[subject]])
    return found


_READING = _reading()


def encode(record: AnyRecord) -> bytes:
    """`record` with the newest schema of its kind. Raises ValueError or TypeError if a field does
    not hold what it should.
    """
    if type(record) is Message:
        return pack(record, _MESSAGE_HEAD)
    if type(record) is SnapshotRecord:
        return pack_snapshot(record, _SNAPSHOT_HEAD, _DELIVERIES)
    buffer = BytesIO()
    number = _NEWEST[_SUBJECTS[type(record)]]
    buffer.write(_head(number))
    schemaless_writer(buffer, _PARSED[number], to_builtins(record, builtin_types=(bytes,)))
    return buffer.getvalue()


def decode(data: bytes) -> AnyRecord:
    """The record in `data`, whatever version wrote it.

    Raises UndecodableRecord if the head is not ours, or the rest is short, malformed, or followed
    by more bytes.
    """
    known = _READING.get(data[:_HEAD_BYTES])
    if known is None:
        raise UndecodableRecord(
            f"the record starts with {data[:_HEAD_BYTES].hex() or 'nothing'}, which names no schema of ours"
        )
    subject, written, newest = known
    fields = _fields(data, subject, written, newest)
    try:
        return _message(fields) if subject == "message" else convert(fields, _TYPES[subject])
    except ValidationError as fault:
        raise UndecodableRecord(f"the {subject} record does not fit its shape: {fault}") from fault


def decode_message(value: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None) -> Message:
    """The message in a record of a queue's topic.

    A value that does not name a message schema of ours is a native producer's: its bytes are the
    body, its headers the attributes. Raises UndecodableRecord only for a value that names one and
    can't be read in full.
    """
    if value is not None:
        if value.startswith(_MESSAGE_HEAD) and (message := unpack(value, _newest_message)) is not None:
            return message
        known = _READING.get(value[:_HEAD_BYTES])
        if known is not None and known[0] == "message":
            return _message(_fields(value, *known))
    return _native(value or b"", headers or ())


def _fields(data: bytes, subject: str, written: Any, newest: Any) -> Any:
    buffer = BytesIO(data)
    buffer.seek(_HEAD_BYTES)
    try:
        fields = schemaless_reader(buffer, written, newest)
    except Exception as fault:  # fastavro raises a dozen kinds of error on hostile bytes, and promises none
        raise UndecodableRecord(f"the {subject} record can't be read: {type(fault).__name__}: {fault}") from fault
    if buffer.tell() != len(data):
        raise UndecodableRecord(f"the {subject} record is followed by {len(data) - buffer.tell()} more bytes")
    return fields


def _newest_message(data: bytes) -> Message:
    return _message(_fields(data, "message", _NEWEST_MESSAGE, None))


def _message(fields: dict[str, Any]) -> Message:
    attributes, origin, batch = fields["attributes"], fields["origin"], fields["batch"]
    return Message(
        fields["body"],
        {name: Attribute(a["type"], a["value"]) for name, a in attributes.items()} if attributes else attributes,
        fields["delay_ms"],
        fields["lease_ms"],
        fields["sender"],
        None if origin is None else Origin(**origin),
        None if batch is None else BatchMark(**batch),
        fields["group"],
        fields["dedup_id"],
        fields["priority"],
        fields["body_is_text"],
    )


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _native(value: bytes, headers: Sequence[tuple[str, bytes | None]]) -> Message:
    attributes = {}
    for name, header in headers:
        if name:  # Kafka allows an empty name; no dialect can carry it
            content = header or b""
            attributes[name[:HEADER_NAME_CHARS]] = Attribute("string" if _is_text(content) else "binary", content)
    return Message(value, attributes, body_is_text=_is_text(value))
