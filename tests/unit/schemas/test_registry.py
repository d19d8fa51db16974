"""The registry's data: ids are for ever, versions read each other, schemas and records agree."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_one
from msgspec import NODEFAULT, Struct, inspect, to_builtins

from schemas.records import (
    ClaimRecord,
    DelayRecord,
    GenerationRecord,
    JournalRecord,
    KeyRecord,
    Message,
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
from schemas.registry import schema_id, schema_ids, schema_name, schema_text, subjects, version_id, versions
from schemas.vocabulary import EventKind, Outcome, TaskStatus, TransactionStep

TYPES: dict[str, type[Struct]] = {
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
    "watch": WatchRecord,
    "delay": DelayRecord,
    "audit": AuditRecord,
    "claim": ClaimRecord,
    "history": HistoryRecord,
    "outcomes": OutcomesRecord,
    "requests": RequestsRecord,
}
WORDS = {
    "EventKind": [str(k) for k in EventKind],
    "TaskStatus": [str(s) for s in TaskStatus],
    "TransactionStep": [str(s) for s in TransactionStep],
    "Outcome": [str(o) for o in Outcome],
    "FilterOperator": ["AND", "OR"],
}


def parsed(subject: str, version: int) -> Any:
    return fastavro.parse_schema(json.loads(schema_text(version_id(subject, version))))


def rewritten(datum: Any, writer: Any, reader: Any) -> Any:
    buffer = BytesIO()
    fastavro.schemaless_writer(buffer, writer, datum)
    buffer.seek(0)
    return fastavro.schemaless_reader(buffer, writer, reader)


def test_an_id_never_changes_and_names_one_schema() -> None:
    names = {
        1: "message.1",
        2: "journal.1",
        8: "position.1",
        11: "transaction.1",
        12: "producer_group.1",
        13: "meter.1",
        14: "watch.1",
        17: "delay.1",
        23: "task.1",
        24: "key.1",
        25: "audit.1",
        29: "user.1",
        30: "queue.1",
        40: "generation.1",
        41: "claim.1",
        42: "snapshot.1",
        43: "history.1",
        44: "outcomes.1",
        45: "requests.1",
    }

    assert {number: schema_name(number) for number in schema_ids()} == names
    assert all(schema_id(name) == number for number, name in names.items())


def test_a_subject_alone_names_its_newest_version() -> None:
    assert subjects() == list(TYPES)
    for subject in subjects():
        assert schema_id(subject) == version_id(subject, versions(subject)[-1])


def test_what_does_not_exist_is_a_key_error() -> None:
    for ask in (
        lambda: schema_id("nothing"),
        lambda: schema_text(0),
        lambda: versions("nothing"),
        lambda: version_id("key", 9),
    ):
        with pytest.raises(KeyError):
            ask()


@pytest.mark.parametrize("subject", list(TYPES))
def test_each_version_reads_what_the_newest_wrote_and_back(subject: str) -> None:
    newest = parsed(subject, versions(subject)[-1])
    for version in versions(subject):
        other = parsed(subject, version)
        for _ in range(20):
            assert set(rewritten(generate_one(other), other, newest)) == {f["name"] for f in newest["fields"]}
            assert set(rewritten(generate_one(newest), newest, other)) == {f["name"] for f in other["fields"]}


@pytest.mark.parametrize("subject", list(TYPES))
def test_the_newest_schema_and_the_record_agree_field_by_field(subject: str) -> None:
    schema = json.loads(schema_text(schema_id(subject)))

    assert schema["namespace"] == "io.leaseway"
    agree(inspect.type_info(TYPES[subject]), schema, subject)


def agree(info: inspect.Type, avro: Any, place: str) -> None:
    """Fails unless the struct's type and the Avro type are the same thing; `place` names it in the
    failure.
    """
    if isinstance(info, inspect.Metadata):
        info = info.type
    kind = avro["type"] if isinstance(avro, dict) else avro
    if isinstance(info, inspect.StructType) and isinstance(avro, str):
        assert avro == info.cls.__name__, place  # a record that stands there in full before
    elif isinstance(info, inspect.StructType):
        assert (kind, avro["name"]) == ("record", info.cls.__name__), place
        assert avro["doc"], place
        assert [f.name for f in info.fields] == [f["name"] for f in avro["fields"]], place
        for field, other in zip(info.fields, avro["fields"], strict=True):
            agree_field(field, other, f"{place}.{field.name}")
    elif isinstance(info, inspect.UnionType):
        assert isinstance(avro, list), place
        assert (avro[0], len(avro)) == ("null", 2), place
        [inner] = [t for t in info.types if not isinstance(t, inspect.NoneType)]
        agree(inner, avro[1], place)
    elif isinstance(info, inspect.ListType):
        assert kind == "array", place
        agree(info.item_type, avro["items"], place)
    elif isinstance(info, inspect.DictType):
        assert kind == "map", place
        assert isinstance(info.key_type, inspect.StrType), place
        agree(info.value_type, avro["values"], place)
    elif kind == "enum":
        assert isinstance(info, inspect.StrType | inspect.LiteralType), place
        assert avro["symbols"] == WORDS[avro["name"]], place
    else:
        kinds: dict[type[inspect.Type], tuple[str, ...]] = {
            inspect.StrType: ("string",),
            inspect.BytesType: ("bytes",),
            inspect.IntType: ("int", "long"),
            inspect.BoolType: ("boolean",),
            inspect.FloatType: ("double",),
        }
        assert kind in kinds[type(info)], place


def agree_field(field: inspect.Field, avro: Any, place: str) -> None:
    # A doc is "what; unit or kind."
    assert re.fullmatch(r".+; .+\.", avro["doc"]), f"{place} has no doc with a unit"
    agree(field.type, avro["type"], place)
    if isinstance(avro["type"], list):
        assert avro["default"] is None, place
        assert field.required or field.default is None, place
    elif field.required:
        assert "default" not in avro, place
    else:
        default = field.default_factory() if field.default is NODEFAULT else field.default
        default = default.decode("latin-1") if isinstance(default, bytes) else to_builtins(default)
        assert avro["default"] == default, place
