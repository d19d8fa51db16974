"""Every action of AWS's model of SQS, as botocore has it: the inputs have the members of the model
and no others, and the query protocol reads each of them by each of its spellings, or refuses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape
from botocore.session import get_session
from msgspec import structs

from facade.dialects.sqs.actions import ACTIONS
from facade.dialects.sqs.wire.errors import SqsError
from facade.dialects.sqs.wire.forms import parse, struct_of
from tests.clients import NotFetched, fetched
from tests.conformance.sqs.test_query_client import HERE
from tests.conftest import absent

MODEL = ServiceModel(get_session().get_service_data("sqs"))
# What the model of the query protocol calls the elements of lists and maps.
ELEMENTS = {
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
    "AttributeNames": "AttributeName",
    "Attributes": "Attribute",
    "BinaryListValues": "BinaryListValue",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageAttributes": "MessageAttribute",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "MessageSystemAttributes": "MessageSystemAttribute",
    "StringListValues": "StringListValue",
    "TagKeys": "TagKey",
    "Tags": "Tag",
    "tags": "Tag",
}
# A text of a form, and what it is in JSON.
SCALARS: dict[str, tuple[str, Any]] = {"string": ("x", "x"), "integer": ("7", 7), "blob": ("iQA=", "iQA=")}
WAYS = ["Element.1", "Element", "Member.1", "Member"]
Fields = dict[str, str]


def element(member: str, action: str) -> str:
    return f"{action}RequestEntry" if member == "Entries" else ELEMENTS[member]


def spelled(name: str, shape: Shape, action: str, way: str) -> tuple[Fields, Any]:
    """One value of a shape as fields of a form under `name`, and the same in JSON."""
    if isinstance(shape, StructureShape):
        fields: Fields = {}
        values = {}
        for member, below in shape.members.items():
            more, values[member] = spelled_member(f"{name}.", member, below, action, way)
            fields |= more
        return fields, values
    text, value = SCALARS[shape.type_name]
    return {name: text}, value


def spelled_member(prefix: str, member: str, shape: Shape, action: str, way: str) -> tuple[Fields, Any]:
    """A member of a structure with one element, if it is a list or map."""
    if not isinstance(shape, ListShape | MapShape):
        return spelled(prefix + member, shape, action, way)
    of, dot, number = way.partition(".")
    name = prefix + (element(member, action) if of == "Element" else member) + dot + number
    if isinstance(shape, ListShape):
        fields, value = spelled(name, shape.member, action, way)
        return fields, [value]
    key, held = ("Key", "Value") if member in ("tags", "Tags") else ("Name", "Value")
    fields, value = spelled(f"{name}.{held}", shape.value, action, way)
    return {f"{name}.{key}": "x", **fields}, {"x": value}


def inputs() -> Iterator[tuple[str, str, Shape]]:
    for action in MODEL.operation_names:
        shape = MODEL.operation_model(action).input_shape
        for member, of in shape.members.items() if shape is not None else ():
            yield action, member, of


INPUTS = list(inputs())
MANY = [one for one in INPUTS if isinstance(one[2], ListShape | MapShape)]


def read(action: str, fields: Fields) -> Any:
    return struct_of(
        ACTIONS[action].body, parse(urlencode({"Action": action, "Version": "2012-11-05", **fields}).encode()), action
    )


def refused(action: str, fields: Fields) -> tuple[str, int]:
    with pytest.raises(SqsError) as caught:
        read(action, fields)
    return caught.value.shape.code, caught.value.shape.status


def test_all_actions_of_the_model_are_there() -> None:
    assert sorted(ACTIONS) == sorted(MODEL.operation_names)


@pytest.mark.parametrize("action", MODEL.operation_names)
def test_an_input_has_the_members_of_the_model_and_no_others(action: str) -> None:
    assert {field.encode_name for field in structs.fields(ACTIONS[action].body)} == {
        one[1] for one in INPUTS if one[0] == action
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("action", "member", "shape"), INPUTS, ids=[f"{one[0]}-{one[1]}" for one in INPUTS])
def test_a_member_is_the_same_by_every_spelling_and_in_json(action: str, member: str, shape: Shape, way: str) -> None:
    fields, value = spelled_member("", member, shape, action, way)

    assert read(action, fields) == ACTIONS[action].decoder.decode(json.dumps({member: value}))


@pytest.mark.parametrize(("action", "member", "shape"), INPUTS, ids=[f"{one[0]}-{one[1]}" for one in INPUTS])
def test_a_field_inside_that_the_model_does_not_have_is_refused(action: str, member: str, shape: Shape) -> None:
    """At every depth: each field of a whole member with one letter more."""
    fields, _ = spelled_member("", member, shape, action, "Element.1")
    for name in fields:
        assert refused(action, {**fields, f"{name}s": "x"}) == ("MalformedInput", 400), name
        assert refused(action, {**fields, f"X{name}": "x"}) == ("MalformedInput", 400), name


@pytest.mark.parametrize("action", MODEL.operation_names)
@pytest.mark.parametrize(
    "name", ["Nothing", "Entry.1.Id", "Attributes.entry.1.key", "attribute.1", ".", "", "Id.1", "AttributeNameList.1"]
)
def test_a_name_that_is_none_of_the_action_is_refused(action: str, name: str) -> None:
    assert refused(action, {name: "x"}) == ("MalformedInput", 400)


@pytest.mark.parametrize(("action", "member", "shape"), MANY, ids=[f"{one[0]}-{one[1]}" for one in MANY])
def test_what_is_numbered_otherwise_is_refused(action: str, member: str, shape: Shape) -> None:
    first, name = f"{element(member, action)}.1", element(member, action)
    fields, _ = spelled_member("", member, shape, action, "Element.1")

    for other in (f"{name}.0", f"{name}.01", f"{name}.member.1", f"{name}.entry.1", f"{name}.-1", f"{name}.1.1"):
        assert refused(action, {other + key.removeprefix(first): text for key, text in fields.items()})[1] == 400, other
    twice, _ = spelled_member("", member, shape, action, "Member.1")
    assert refused(action, {**fields, **{key.replace(".1", ".2", 1): text for key, text in twice.items()}}) == (
        "MalformedInput",
        400,
    )


@pytest.mark.parametrize(
    "name",
    [
        "AWSAccessKeyId",
        "Signature",
        "SignatureVersion",
        "Timestamp",
        "Expires",
        "SecurityToken",
        "X-Amz-Date",
        "X-Amz-Security-Token",
    ],
)
def test_fields_of_the_protocol_are_none_of_the_action(name: str) -> None:
    assert read("ListQueues", {name: "x"}) == ACTIONS["ListQueues"].body()


def test_the_names_are_those_of_the_model_of_the_query_protocol() -> None:
    try:
        folder = fetched(HERE / "query.lock")
    except NotFetched as error:
        absent(str(error))
    old = ServiceModel(Loader([str(folder / "botocore" / "data")]).load_service_model("sqs", "service-2"))
    seen = set()
    for shape in map(old.shape_for, old.shape_names):
        for member, of in shape.members.items() if isinstance(shape, StructureShape) else ():
            if isinstance(of, ListShape) and of.member.serialization.get("name") and member in (*ELEMENTS, "Entries"):
                action = shape.name.removesuffix("Request")
                assert of.member.serialization["name"] == element(member, action), (shape.name, member)
                seen.add(member)
            if isinstance(of, MapShape) and member in ELEMENTS:
                assert of.serialization.get("name", ELEMENTS[member]) == ELEMENTS[member], (shape.name, member)
                names = of.key.serialization["name"], of.value.serialization["name"]
                assert names == (("Key", "Value") if member in ("tags", "Tags") else ("Name", "Value"))
                seen.add(member)
    assert seen >= ELEMENTS.keys() - {"MessageSystemAttributeNames"}
