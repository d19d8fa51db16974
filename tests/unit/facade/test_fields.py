"""The document's ranges and words are the engine's, every field says what it is for, and people see
both at /docs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from engine.errors import InvalidValue
from engine.meters.shapes import AGGREGATORS, METRICS
from engine.queues.lives.creating import new_record
from engine.rules import limits
from engine.rules.fifo import check_entries
from engine.rules.limits import ASKED, check_asked, check_settings
from engine.shapes import SendEntry
from facade.dialects.native.reference.fields import about_of, rows_of
from facade.dialects.native.reference.page import page_of
from facade.dialects.native.wire.replies_watching import REQUESTS
from facade.dialects.native.wire.units import to_seconds
from schemas.records.settings import EXHAUSTED, SCOPES, TABLE, QueueSettings
from schemas.vocabulary import (
    DEATHS,
    AlertChange,
    DecisionReason,
    Level,
    Measurement,
    MessageState,
    PolicyFault,
    Reason,
    RetentionFrom,
    Role,
    StaleReason,
    Subject,
    TaskStatus,
    Telling,
    TransactionStatus,
)

# Field of the wire -> the engine's, by the kind of the table it is in.
ASKINGS = {
    "delay_seconds": "delay_ms",
    "lease_seconds": "lease_ms",
    "wait_seconds": "wait_ms",
    "check_immunity_seconds": "check_immunity_ms",
    "max": "max",
    "max_receive_count": "max_receive_count",
    "rate": "rate",
    "priority": "priority",
    "read_qps": "read_qps",
    "write_qps": "write_qps",
    "daily_bytes": "daily_bytes",
    "waits": "waits",
    "queues": "queues",
    "partitions": "partitions",
    "partition": "partition",
    "limit": "limit",
    "from": "from",
    "to": "to",
    "to_ms": "from",
    "start_at_ms": "start_at_ms",
    "threshold": "threshold",
    "interval_seconds": "interval_ms",
    "deliver_at_ms": "deliver_at_ms",
    "grace_seconds": "grace_ms",
    "expires_at_ms": "expires_at_ms",
}
# The settings that are numbers: their ends.
NUMBERS = {
    name: (setting.low, setting.high)
    for name, setting in TABLE.items()
    if setting.high and not isinstance(setting.default, list)
}
SETTINGS = {f"{name[:-3]}_seconds" if name.endswith("_ms") else name: name for name in NUMBERS}
WORDS: dict[str, list[str]] = {
    "state": [str(word) for word in MessageState],
    "dedup_scope": list(SCOPES),
    "on_exhausted": list(EXHAUSTED),
    "retention_from": [*map(str, RetentionFrom)],
    "reason": [*map(str, Reason), ""],
}
# Whose `reason` is what somebody has said.
SAID = ("KillBody", "PauseBody", "PauseReply")


@pytest.fixture
async def document(client: httpx.AsyncClient) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get("/openapi.json")).json()
    return found


def requests(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Struct, field and schema of each field of a request, parameters of queries included."""
    schemas = document["components"]["schemas"]
    bodies = {name for name in schemas if name.endswith("Body") or name == "SendMessage"}
    for name in bodies:
        for field, schema in schemas[name]["properties"].items():
            yield name, field, schema
    for methods in document["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "query":
                    yield operation["operationId"], parameter["name"], parameter["schema"]


def number(schema: dict[str, Any]) -> dict[str, Any] | None:
    parts = [part for part in (schema, *schema.get("anyOf", ())) if part.get("type") in ("integer", "number")]
    return parts[0] if parts else None


async def test_every_number_of_a_request_has_the_range_of_the_engine(document: dict[str, Any]) -> None:
    seen = set()
    for struct, field, schema in requests(document):
        found = number(schema)
        if found is None:
            continue
        settings = struct in ("CreateQueueBody", "SetQueueBody")
        low, high = NUMBERS[SETTINGS[field]] if settings else ASKED[ASKINGS[field]]
        if field.endswith("_seconds"):
            low, high = to_seconds(low), to_seconds(high)  # type: ignore[assignment]
        assert (found["minimum"], found["maximum"]) == (low, high), f"{struct}.{field}"
        assert "x-range" not in found
        seen.add((settings, field))
    assert seen == {*((True, field) for field in SETTINGS), *((False, field) for field in ASKINGS)}


@pytest.mark.parametrize("field", [*ASKED])
def test_the_table_is_what_the_engine_checks(field: str) -> None:
    low, high = ASKED[field]
    for good in (low, high, None):
        check_asked(field, good)
    for bad in (low - 1, high + 1):
        with pytest.raises(InvalidValue) as caught:
            check_asked(field, bad)
        assert (caught.value.field, caught.value.limit, caught.value.given) == (field, [low, high], bad)


@pytest.mark.parametrize("field", [*NUMBERS])
def test_the_table_of_settings_is_what_the_engine_checks(field: str) -> None:
    low, high = NUMBERS[field]
    check_settings(msgspec.structs.replace(QueueSettings(), **{field: low}))
    check_settings(msgspec.structs.replace(QueueSettings(), **{field: high}))
    for bad in (low - 1, high + 1):
        with pytest.raises(InvalidValue):
            check_settings(msgspec.structs.replace(QueueSettings(), **{field: bad}))


async def test_lists_are_as_long_as_the_engine_takes(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    found = {
        "messages": schemas["SendBody"]["properties"]["messages"],
        "handles": schemas["HandlesBody"]["properties"]["handles"],
        "filter.conditions": schemas["FilterBody"]["properties"]["conditions"],
        "ids": schemas["RedriveBody"]["properties"]["ids"]["anyOf"][0],
    }

    assert {field: (schema["minItems"], schema["maxItems"]) for field, schema in found.items()} == {
        field: ASKED[field] for field in found
    }


def enums(schema: Any) -> Iterator[list[str]]:
    if isinstance(schema, dict):
        if "enum" in schema:
            yield schema["enum"]
        for part in (*schema.get("anyOf", ()),):
            yield from enums(part)


async def test_every_word_of_the_engine_is_an_enum(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    fields = [(name, field, s) for name, one in schemas.items() for field, s in one.get("properties", {}).items()]
    fields += [(name, field, schema) for name, field, schema in requests(document)]
    deaths = (
        "ChoiceReply",
        "PreviewBody",
        "RedriveBody",
        "preview_redrive",
        "redrive",
        "redrive_all",
        "preview_redrive_all",
    )
    for name, field, schema in fields:
        if field in WORDS and name not in ("Problem", "TransactionReply", "ResultReply", *SAID, *deaths):
            assert list(enums(schema)) == [WORDS[field]], f"{name}.{field}"
    assert list(enums(schemas["TaskReply"]["properties"]["status"])) == [[str(word) for word in TaskStatus]]
    for name in ("ChoiceReply", "PreviewBody", "RedriveBody"):
        assert list(enums(schemas[name]["properties"]["reason"])) == [[str(word) for word in DEATHS]]
    about = schemas["TransactionReply"]["properties"]
    assert list(enums(about["status"])) == [[str(word) for word in TransactionStatus]]
    assert list(enums(about["reason"])) == [[*map(str, DecisionReason), ""]]
    assert list(enums(schemas["ResultReply"]["properties"]["reason"])) == [[*map(str, StaleReason)]]


OTHER_WORDS: dict[str, list[str]] = {
    "aggregator": [*AGGREGATORS],
    "change": [*map(str, AlertChange)],
    "downsample": [*AGGREGATORS],
    "level": [*map(str, Level)],
    "measurement": [*map(str, Measurement)],
    "metric": [*METRICS],
    "role": [*map(str, Role)],
    "stopped": [*map(str, PolicyFault), ""],
    "told": [*map(str, Telling)],
}


async def test_words_of_rights_and_of_watching_are_enums_wherever_they_are(document: dict[str, Any]) -> None:
    schemas, seen = document["components"]["schemas"], set()
    fields = [(name, field, s) for name, one in schemas.items() for field, s in one.get("properties", {}).items()]
    for name, field, schema in [*fields, *requests(document)]:
        if field in OTHER_WORDS:
            assert list(enums(schema)) == [OTHER_WORDS[field]], f"{name}.{field}"
            seen.add(field)
        elif field == "subject" and name in ("AlertBody", "AlertReply", "AlertEventReply", "StatisticsRowReply"):
            assert list(enums(schema)) == [[*REQUESTS] if name == "StatisticsRowReply" else [*map(str, Subject)]], name
            seen.add(name)
    assert seen == {*OTHER_WORDS, "AlertBody", "AlertReply", "AlertEventReply", "StatisticsRowReply"}


async def test_maps_and_ids_have_the_bounds_of_the_engine(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]

    def part(struct: str, field: str) -> dict[str, Any]:
        schema: dict[str, Any] = schemas[struct]["properties"][field]
        return next((one for one in schema.get("anyOf", ()) if one["type"] != "null"), schema)

    for struct in ("CreateQueueBody", "SetQueueBody", "CreateTagBody"):
        assert part(struct, "user_attributes")["maxProperties"] == ASKED["user_attributes"][1], struct
    assert part("SendMessage", "attributes")["maxProperties"] == limits.MAX_ATTRIBUTES
    assert part("WebhookBody", "secret")["minLength"] == 16
    for field in ("group", "dedup_id"):
        pattern = re.compile(part("SendMessage", field)["pattern"])
        for text, good in (
            ("g", True),
            ("~" * 128, True),
            ("", False),
            ("g" * 129, False),
            ("a b", False),
            ("ü", False),
            ("g\n", False),
        ):
            assert (pattern.fullmatch(text) is not None) is good, text
            record = msgspec.structs.replace(
                new_record("q", "o", QueueSettings(fifo=True), 1, (), 0), content_dedup=True
            )
            entry = SendEntry(b"x", group=text) if field == "group" else SendEntry(b"x", group="g", dedup_id=text)
            if good:
                check_entries(record, [entry])
            else:
                with pytest.raises(InvalidValue):
                    check_entries(record, [entry])


async def test_no_range_is_that_of_the_decoder(document: dict[str, Any]) -> None:
    for struct, field, schema in requests(document):
        found = number(schema)
        if found is not None and field not in ("from", "to", "to_ms", "start_at_ms", "deliver_at_ms", "expires_at_ms"):
            assert abs(found["maximum"]) < 2**53 and found["maximum"] != 1e9, f"{struct}.{field}"


async def test_every_field_says_what_it_is_for(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    silent = [
        f"{name}.{field}"
        for name, one in schemas.items()
        for field, schema in one.get("properties", {}).items()
        if not about_of(schema, schemas)
    ]
    silent += [
        f"{struct}.{field}" for struct, field, schema in requests(document) if struct[0].islower() and not schema
    ]

    assert silent == []


async def test_people_see_the_fields_of_every_request_and_answer(
    document: dict[str, Any], client: httpx.AsyncClient
) -> None:
    page, schemas = (await client.get("/docs")).text, document["components"]["schemas"]
    for methods in document["paths"].values():
        for operation in methods.values():
            section = page.partition(f"<details id='{operation['operationId']}'>")[2].partition("</details>")[0]
            contents = [*operation.get("requestBody", {}).get("content", {}).values()]
            good = [response for status, response in operation["responses"].items() if status < "400"]
            contents += [media for response in good for media in response.get("content", {}).values()]
            for media in contents:
                for row in rows_of(media["schema"], schemas):
                    assert f"<code>{row.name}</code>" in section, (operation["operationId"], row)
    assert "<code>messages[].attributes.*.value_base64</code>" in page
    assert "integer 1 to 64" in page and "string: delayed, ready, leased, parked, settled, stored" in page


def test_the_page_can_hold_what_refers_to_itself() -> None:
    schemas = {"Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}}}

    assert [row.name for row in rows_of({"$ref": "#/components/schemas/Node"}, schemas)][:2] == ["next", "next.next"]


async def test_the_page_is_made_of_the_document_alone(document: dict[str, Any], client: httpx.AsyncClient) -> None:
    assert page_of(document).decode() == (await client.get("/docs")).text
    assert not re.search(r"9007199254740992|1000000000\.0", page_of(document).decode())


def test_the_limits_of_names_are_the_engines() -> None:
    from facade.dialects.native.wire.units import NAME_PATTERN, QUEUE_PATTERN

    for pattern, longest in ((NAME_PATTERN, limits.MAX_NAME), (QUEUE_PATTERN, limits.MAX_QUEUE_NAME)):
        assert re.match(pattern, "a" * longest) and not re.match(pattern, "a" * (longest + 1))
