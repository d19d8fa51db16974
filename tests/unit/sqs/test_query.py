"""The query protocol over HTTP, on a recording engine: names of forms, XML of replies, what is
taken for SQS at all.
"""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import httpx
import pytest

from engine.engine import Engine
from engine.errors import InvalidHandle, QueueNotFound
from engine.shapes import Delivery, SendEntry, Sent
from facade.app import create_app
from facade.config import Settings
from facade.dialects.sqs.wire.errors import SqsError
from facade.dialects.sqs.wire.forms import parse, struct_of
from facade.dialects.sqs.wire.shapes import CreateQueue, ReceiveMessage, SendMessageBatch
from schemas.records import Attribute, Message
from tests.unit.facade.double import RecordingEngine, delivery

FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
SIGNED = "AWS4-HMAC-SHA256 Credential=shop/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


async def ask(
    engine: RecordingEngine, path: str = "/", method: str = "POST", headers: dict[str, str] | None = None, **form: Any
) -> Any:
    transport = httpx.ASGITransport(create_app(Settings(), cast(Engine, engine)))
    async with httpx.AsyncClient(transport=transport, base_url="http://queues.localhost:9400") as client:
        if method == "GET":
            return await client.get(path, params=form or None, headers=headers)
        return await client.post(path, content=urlencode(form), headers={**FORM, **(headers or {})})


def read(response: httpx.Response) -> Any:
    """The reply without its namespace: {name: text or more of the same}; what is there twice is a
    list.
    """

    def tree(node: ET.Element) -> Any:
        if len(node) == 0:
            return node.text
        found: dict[str, Any] = {}
        for child in node:
            name = child.tag.removeprefix(NAMESPACE)
            value = tree(child)
            found[name] = (
                [*found[name], value]
                if isinstance(found.get(name), list)
                else [found[name], value]
                if name in found
                else value
            )
        return found

    root = ET.fromstring(response.content)
    assert root.tag.startswith(NAMESPACE)
    return {root.tag.removeprefix(NAMESPACE): tree(root)}


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    error = read(response)["ErrorResponse"]["Error"]
    return response.status_code, error["Type"], error["Code"]


@pytest.fixture
def engine() -> RecordingEngine:
    found = RecordingEngine()
    found.answers["send"] = [Sent("id1", "md5", 1)]
    found.answers["receive"] = [delivery()]
    return found


async def test_a_form_is_a_send_and_its_answer_is_xml(engine: RecordingEngine) -> None:
    attribute = {"Name": "logo", "Value.DataType": "Binary", "Value.BinaryValue": "iQA="}
    form: dict[str, Any] = {f"MessageAttribute.1.{name}": value for name, value in attribute.items()}
    form |= {"Action": "SendMessage", "QueueUrl": "http://h/0/orders", "MessageBody": "ü &+%", "DelaySeconds": "5"}
    response = await ask(engine, **form)
    found = read(response)["SendMessageResponse"]

    assert engine.calls[-1][2:] == (
        "orders",
        [SendEntry("ü &+%".encode(), {"logo": Attribute("Binary", b"\x89\x00")}, 5000)],
    )
    assert (found["SendMessageResult"]["MessageId"], response.headers["content-type"]) == ("id1", "text/xml")
    assert found["ResponseMetadata"]["RequestId"] == response.headers["x-amzn-requestid"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_path_may_name_the_queue(engine: RecordingEngine, method: str) -> None:
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=shop/20260101/us-east-1/sqs/aws4_request"}
    await ask(engine, "/000000000000/orders@billing", method, signed, Action="ReceiveMessage", MaxNumberOfMessages="3")

    assert engine.calls[-1][2:] == ("orders", "billing", 3, None, None, None)


async def test_a_message_survives_the_way_through_xml(engine: RecordingEngine) -> None:
    body = "a\r\nb\t<&>]]>\"' \U0001f600"
    engine.answers["receive"] = [delivery(Message(body.encode(), {"k": Attribute("string", b"v\r")}, sender="s"))] * 2
    form: dict[str, Any] = {
        "Action": "ReceiveMessage",
        "QueueUrl": "q",
        "MessageAttributeName.1": "All",
        "AttributeName.1": "SenderId",
    }
    first, second = read(await ask(engine, **form))["ReceiveMessageResponse"]["ReceiveMessageResult"]["Message"]

    assert first == second
    assert first["Body"] == body
    assert first["Attribute"] == {"Name": "SenderId", "Value": "s"}
    assert first["MessageAttribute"] == {"Name": "k", "Value": {"DataType": "String", "StringValue": "v\r"}}


async def test_a_body_that_xml_can_not_hold_comes_in_base64(engine: RecordingEngine) -> None:
    engine.answers["receive"] = [delivery(Message(b"a\x00", sender="s"))]
    found = read(await ask(engine, Action="ReceiveMessage", QueueUrl="q"))

    assert found["ReceiveMessageResponse"]["ReceiveMessageResult"]["Message"]["Body"] == "YQA="


async def test_nothing_received_is_an_empty_result_and_done_is_none(engine: RecordingEngine) -> None:
    engine.answers["receive"] = cast("list[Delivery]", [])
    empty = read(await ask(engine, Action="ReceiveMessage", QueueUrl="q"))["ReceiveMessageResponse"]
    done = read(await ask(engine, Action="PurgeQueue", QueueUrl="q"))["PurgeQueueResponse"]

    assert empty["ReceiveMessageResult"] is None
    assert set(done) == {"ResponseMetadata"}


async def test_an_error_repeats_what_was_given_as_xml_can(engine: RecordingEngine) -> None:
    engine.error = InvalidHandle(given="no <handle> \x00 here")
    response = await ask(engine, Action="DeleteMessage", QueueUrl="q", ReceiptHandle="x")

    about = 'The input receipt handle "no <handle> \ufffd here" is not a valid receipt handle.'
    assert read(response)["ErrorResponse"]["Error"]["Message"] == about


async def test_an_error_has_the_code_of_the_older_protocol(engine: RecordingEngine) -> None:
    engine.error = QueueNotFound("no queue")
    response = await ask(engine, Action="PurgeQueue", QueueUrl="q")

    assert refusal(response) == (400, "Sender", "AWS.SimpleQueueService.NonExistentQueue")
    assert (
        read(response)["ErrorResponse"]["Error"]["Message"]
        == "The specified queue does not exist for this wsdl version."
    )
    assert read(response)["ErrorResponse"]["RequestId"] == response.headers["x-amzn-requestid"]


@pytest.mark.parametrize(
    ("path", "form", "expected"),
    [
        ("/", {"Action": "Nothing"}, (400, "Sender", "InvalidAction")),
        ("/", {"Version": "2012-11-05"}, (400, "Sender", "MissingAction")),
        ("/000000000000/q", {"Action": "ListQueues"}, (400, "Sender", "InvalidAction")),
        ("/", {"Action": "SendMessage", "QueueUrl": "q"}, (400, "Sender", "MissingParameter")),
        (
            "/",
            {"Action": "ReceiveMessage", "QueueUrl": "q", "WaitTimeSeconds": "1.5"},
            (400, "Sender", "InvalidParameterValue"),
        ),
        ("/", {"Action": "SendMessage", "Action.1": "x"}, (404, "Sender", "MalformedQueryString")),
        ("/", {"Action": "CreateQueue", "QueueName": "q", "Attribute.1.Name": "x"}, (400, "Sender", "MalformedInput")),
        ("/", {"Action": "CreateQueue", "QueueName.1": "q"}, (400, "Sender", "MalformedInput")),
        (
            "/",
            {"Action": "DeleteMessageBatch", "QueueUrl": "q", "DeleteMessageBatchRequestEntry": "x"},
            (400, "Sender", "MalformedInput"),
        ),
    ],
)
async def test_a_bad_form_is_refused(
    engine: RecordingEngine, path: str, form: dict[str, Any], expected: tuple[int, str, str]
) -> None:
    assert refusal(await ask(engine, path, **form)) == expected
    assert engine.calls == []


async def test_a_queue_path_without_an_action_is_an_unknown_operation(engine: RecordingEngine) -> None:
    response = await ask(engine, "/000000000000/q", "GET")

    assert (response.status_code, response.text) == (404, "<UnknownOperationException/>\n")
    assert response.headers["x-amzn-requestid"]


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example"}]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_page_of_another_site_may_not_act(
    engine: RecordingEngine, method: str, headers: dict[str, str]
) -> None:
    response = await ask(engine, "/", method, headers, Action="PurgeQueue", QueueUrl="q")

    assert refusal(response) == (403, "Sender", "AccessDenied")
    assert engine.calls == []


@pytest.mark.parametrize(("headers", "taken"), [({}, False), ({"authorization": SIGNED}, True)])
async def test_a_form_for_the_native_api_is_not_taken_unless_it_is_signed(
    engine: RecordingEngine, headers: dict[str, str], taken: bool
) -> None:
    response = await ask(engine, "/v1/queues/orders/receive", headers=headers, Action="PurgeQueue", QueueUrl="q")

    assert ("PurgeQueueResponse" in response.text) == taken


def test_lists_and_maps_are_numbered_in_any_order() -> None:
    tree = parse(b"AttributeName.10=c&AttributeName.9=b&AttributeName.1=a&MessageAttributeName=")
    created = struct_of(
        CreateQueue, parse(b"Attribute.2.Name=B&Attribute.2.Value=&Tag.1.Key=k&Tag.1.Value=v"), "CreateQueue"
    )

    found = struct_of(ReceiveMessage, tree, "ReceiveMessage")
    assert (found.attribute_names, found.message_attribute_names, found.message_system_attribute_names) == (
        ["a", "b", "c"],
        [],
        None,
    )
    assert (created.attributes, created.tags, created.queue_name) == ({"B": ""}, {"k": "v"}, None)


def test_entries_carry_maps_of_their_own() -> None:
    start = "SendMessageBatchRequestEntry.1"
    attribute = f"{start}.MessageAttribute.1"
    fields = {
        f"{start}.Id": "a",
        f"{start}.MessageBody": "",
        f"{attribute}.Name": "n",
        f"{attribute}.Value.DataType": "String",
    }
    (entry,) = struct_of(SendMessageBatch, parse(urlencode(fields).encode()), "SendMessageBatch").entries

    assert (entry.id, entry.message_body, entry.message_attributes["n"].data_type) == ("a", "", "String")


@pytest.mark.parametrize(
    "text",
    [b"a=1&a=2", b"a.b=1&a=2", b"a=1&a.b=2", b"a=%ff", b"\xff=1", b"x=1&" * 20_001],
)
def test_a_text_that_is_no_query_is_refused(text: bytes) -> None:
    with pytest.raises(SqsError) as caught:
        parse(text)

    assert caught.value.shape.code == "MalformedQueryString"
