"""The trace context of a message: what the client of one dialect puts into it, clients of all get
in their own form, also when it was moved. Here, because RocketMQ's port is on.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from tests.conformance.cases.client import Got, QueueSpec
from tests.conformance.cases.emq import EmqClient
from tests.conformance.cases.mns import MnsClient
from tests.conformance.cases.native import NativeClient
from tests.conformance.cases.sqs import JsonClient
from tests.conformance.mns.raw import NAMESPACE
from tests.conformance.rocketmq.raw import Raw, receiving, sending
from tests.services import Up

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
W3C: Final = f"00-{TRACE}-{SPAN}-01"
XRAY: Final = f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=1"


class Speaker(ABC):
    """A client of one dialect. `form`: how it writes the context; `make`: what speaks it."""

    form = W3C
    make: Any

    def __init__(self, up: Up) -> None:
        self.up = up
        self.client = self.make(up.endpoint)

    def close(self) -> None:
        self.client.close()

    @abstractmethod
    def send(self, queue: str) -> None:
        """Sends a message with the context, at the dialect's own place for it."""

    @abstractmethod
    def received(self, queue: str) -> str | None:
        """Receives the one message; the context at that place."""


def _context(got: Got) -> str | None:
    return got.attributes.get("traceparent")


class Native(Speaker):
    make = NativeClient

    def send(self, queue: str) -> None:
        self.client.send(queue, "x", attributes={"traceparent": W3C})

    def received(self, queue: str) -> str | None:
        (got,) = self.client.receive(queue, wait_s=10)
        return _context(got)


class Sqs(Speaker):
    form = XRAY
    make = JsonClient

    def send(self, queue: str) -> None:
        self._send(queue, MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": XRAY}})

    def _send(self, queue: str, **more: Any) -> None:
        self.client._ask("SendMessage", QueueUrl=self.client._url(queue), MessageBody="x", **more)

    def received(self, queue: str) -> str | None:
        asked = {"WaitTimeSeconds": 10, "MessageSystemAttributeNames": ["AWSTraceHeader"]}
        (got,) = self.client._ask("ReceiveMessage", QueueUrl=self.client._url(queue), **asked)["Messages"]
        found: str | None = got.get("Attributes", {}).get("AWSTraceHeader")
        return found


class SqsUser(Sqs):
    """As instrumentations for Python do."""

    form = W3C

    def send(self, queue: str) -> None:
        self._send(queue, MessageAttributes={"traceparent": {"DataType": "String", "StringValue": W3C}})

    def received(self, queue: str) -> str | None:
        (got,) = self.client.receive(queue, wait_s=10)
        return _context(got)


class Emq(Speaker):
    make = EmqClient

    def send(self, queue: str) -> None:
        self.client.send(queue, "x", attributes={"traceparent": W3C})

    def received(self, queue: str) -> str | None:
        (got,) = self.client.receive(queue, wait_s=10)
        return _context(got)


class Mns(Speaker):
    make = MnsClient

    def send(self, queue: str) -> None:
        value = f"<Name>traceparent</Name><Value>{W3C}</Value><Type>STRING</Type>"
        properties = f"<SystemProperties><SystemPropertyValue>{value}</SystemPropertyValue></SystemProperties>"
        body = f"<Message><MessageBody>x</MessageBody>{properties}</Message>"
        self.client._ask("POST", f"/queues/{queue}/messages", body)

    def received(self, queue: str) -> str | None:
        reply = self.client._ask("GET", f"/queues/{queue}/messages?waitseconds=10")
        found = reply.root.iterfind(f".//{NAMESPACE}SystemPropertyValue")
        return {_text(one, "Name"): _text(one, "Value") for one in found}.get("traceparent")


def _text(element: ElementTree.Element, name: str) -> str:
    return element.findtext(f"{NAMESPACE}{name}") or ""


class Rocketmq(Speaker):
    def __init__(self, up: Up) -> None:
        self.client = Raw(up.run["rocketmq"])

    def close(self) -> None:
        self.client.channel.close()

    def send(self, queue: str) -> None:
        self.client.ask("SendMessage", sending(queue, b"x", trace_context=W3C))

    def received(self, queue: str) -> str | None:
        told = self.client.received(receiving(queue, wait_s=10))
        (message,) = [one.message for one in told if one.HasField("message")]
        found: str = message.system_properties.trace_context
        return found


SPEAKERS: Final[dict[str, Any]] = {one.__name__: one for one in (Native, Sqs, Emq, Mns, Rocketmq)}
SENDERS: Final = SPEAKERS | {"SqsUser": SqsUser}


@pytest.fixture(scope="session")
def speakers(rocketmq_up: Up) -> Iterator[dict[str, Speaker]]:
    made = {name: make(rocketmq_up) for name, make in SENDERS.items()}
    yield made
    for speaker in made.values():
        speaker.close()


@pytest.mark.parametrize("reader", SPEAKERS)
@pytest.mark.parametrize("sender", SENDERS)
def test_each_dialect_gets_the_context_in_its_own_form(
    speakers: dict[str, Speaker], topic: str, sender: str, reader: str
) -> None:
    speakers[sender].send(topic)

    assert speakers[reader].received(topic) == speakers[reader].form


@pytest.mark.parametrize("reader", SPEAKERS)
def test_a_message_without_a_context_is_given_none(speakers: dict[str, Speaker], topic: str, reader: str) -> None:
    headers = {"traceparent": W3C}
    http = speakers["Native"].client._http
    http.post(f"/queues/{topic}/messages", json={"messages": [{"body": "x"}]}, headers=headers)

    assert not speakers[reader].received(topic)


@pytest.mark.parametrize("sender", SENDERS)
def test_a_context_outlives_death_and_redrive(speakers: dict[str, Speaker], name: str, sender: str) -> None:
    client = speakers["Native"].client
    client.create(f"{name}d")
    client.create(name, QueueSpec(dead=(f"{name}d", 5)))
    speakers[sender].send(name)
    (got,) = client.receive(name, wait_s=10)
    client.ask("POST", f"/queues/{name}/kill", {"handles": [got.handle]})
    (letter,) = client.receive(f"{name}d", wait_s=10)
    client.release(f"{name}d", letter.handle)
    task = client.ask("POST", f"/queues/{name}d/redrive", {})
    end = time.monotonic() + 30
    while client.ask("GET", f"/tasks/{task['id']}")["status"] == "running":
        assert time.monotonic() < end, task
        time.sleep(0.1)
    (again,) = client.receive(name, wait_s=10)

    told = [one.attributes.get("traceparent") for one in (got, letter, again)]
    assert told == [W3C, W3C, W3C]
