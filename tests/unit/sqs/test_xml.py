"""Replies of the query protocol, read back by a parser of XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from facade.dialects.sqs.wire import xml
from facade.dialects.sqs.wire.replies import DONE, ListReply, TagsReply, TaskReply

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


def found(reply: bytes, path: str) -> list[str | None]:
    return [
        one.text for one in ElementTree.fromstring(reply).findall(path.replace("/", f"/{NAMESPACE}").removeprefix("/"))
    ]


def test_a_list_is_one_element_for_each_of_its_items() -> None:
    reply = xml.reply("ListQueues", ListReply(["http://x/1/a", "http://x/1/b"]), "id1")
    assert found(reply, "/ListQueuesResult/QueueUrl") == ["http://x/1/a", "http://x/1/b"]
    assert found(reply, "/ListQueuesResult/NextToken") == []
    assert found(reply, "/ResponseMetadata/RequestId") == ["id1"]


def test_a_map_is_a_key_and_a_value_for_each_of_its_entries() -> None:
    reply = xml.reply("ListQueueTags", TagsReply({"team": "a", "cost": "b"}), "id1")
    assert found(reply, "/ListQueueTagsResult/Tag/Key") == ["team", "cost"]
    assert found(reply, "/ListQueueTagsResult/Tag/Value") == ["a", "b"]


def test_what_is_done_without_more_has_no_result() -> None:
    reply = xml.reply("DeleteMessage", DONE, "id1")
    assert found(reply, "/DeleteMessageResult") == [] and found(reply, "/ResponseMetadata/RequestId") == ["id1"]


@pytest.mark.parametrize("text", ["<b>&amp;", "a\rb", "a\r\nb", "\t\n ", "ü€😀", "]]>"])
def test_every_text_that_xml_can_hold_comes_back_as_it_was(text: str) -> None:
    assert found(
        xml.reply("StartMessageMoveTask", TaskReply(text), "id1"), "/StartMessageMoveTaskResult/TaskHandle"
    ) == [text]


def test_what_xml_cant_hold_is_a_replacement_character() -> None:
    reply = xml.reply("StartMessageMoveTask", TaskReply("a\x00b\x1fc\ufffe"), "id1")
    assert found(reply, "/StartMessageMoveTaskResult/TaskHandle") == ["a\ufffdb\ufffdc\ufffd"]


def test_a_refusal_has_its_code_and_text() -> None:
    reply = xml.error("Sender", "InvalidParameterValue", "a < b & c", "id1")
    assert [found(reply, f"/Error/{name}") for name in ("Type", "Code", "Message")] == [
        ["Sender"],
        ["InvalidParameterValue"],
        ["a < b & c"],
    ]
    assert found(reply, "/RequestId") == ["id1"]
