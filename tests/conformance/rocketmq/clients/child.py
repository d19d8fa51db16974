"""RocketMQ's own Python client as a child process: a call is a line of JSON on standard input, its
outcome a line on standard output.

It brings a gRPC and a protobuf of its own, and puts a log into the home folder. Producers,
consumers and messages stay here; the other side names them by numbers.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

things: list[Any] = []


def kept(thing: Any) -> int:
    """The number of a thing."""
    things.append(thing)
    return len(things) - 1


def configuration(asked: dict[str, Any]) -> ClientConfiguration:
    return ClientConfiguration(asked["endpoints"], Credentials(asked.get("key", ""), asked.get("secret", "")))


def subscriptions(asked: dict[str, Any]) -> dict[str, FilterExpression]:
    return {topic: FilterExpression(text) for topic, text in asked["subscriptions"].items()}


def shown(message: Message) -> dict[str, Any]:
    """A received message; `number` names it."""
    return {
        "number": kept(message),
        "id": message.message_id,
        "topic": message.topic,
        "body": message.body.decode("latin-1"),
        "tag": message.tag,
        "keys": sorted(message.keys),
        "properties": message.properties,
        "group": message.message_group,
        "attempt": message.delivery_attempt,
        "delivery_timestamp": message.delivery_timestamp,
        "born_host": message.born_host,
        "type": message.message_type,
        "handle": message.receipt_handle,
        "corrupted": message.corrupted,
        "at": time.time(),
    }


def made(asked: dict[str, Any]) -> Message:
    """A message to send."""
    message = Message()
    message.topic = asked["topic"]
    message.body = asked["body"].encode("latin-1")
    if "tag" in asked:
        message.tag = asked["tag"]
    for key in asked.get("keys", ()):
        message.keys = key
    for name, value in asked.get("properties", {}).items():
        message.add_property(name, value)
    if "group" in asked:
        message.message_group = asked["group"]
    if "at" in asked:
        message.delivery_timestamp = asked["at"]
    return message


class Checker(TransactionChecker):  # type: ignore[misc]
    """Answers checks with what it was told to, and notes them."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers
        self.checked: list[dict[str, Any]] = []

    def check(self, message: Message) -> Any:
        self.checked.append(shown(message))
        return getattr(TransactionResolution, self.answers.pop(0) if self.answers else "COMMIT")


class Listener(MessageListener):  # type: ignore[misc]
    """Notes what was pushed. A message whose body begins with a number fails so many times."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pushed: list[dict[str, Any]] = []
        self.failures: dict[str, int] = {}

    def consume(self, message: Message) -> ConsumeResult:
        with self.lock:
            one = shown(message)
            self.pushed.append(one)
            word, _, _ = one["body"].partition(" ")
            done = self.failures.get(one["id"], 0)
            if word.isdigit() and done < int(word):
                self.failures[one["id"]] = done + 1
                return ConsumeResult.FAILURE
            if word == "sleep":
                time.sleep(float(one["body"].split()[1]))
            return ConsumeResult.SUCCESS


def producer(asked: dict[str, Any]) -> int:
    checker = Checker(asked["checks"]) if "checks" in asked else None
    one = Producer(configuration(asked), asked.get("topics", []), checker)
    one.startup()
    one.checker = checker
    return kept(one)


def send(asked: dict[str, Any]) -> dict[str, Any]:
    receipt = things[asked["by"]].send(made(asked))
    return {"id": receipt.message_id, "transaction_id": receipt.transaction_id, "recall_handle": receipt.recall_handle}


def send_async(asked: dict[str, Any]) -> dict[str, Any]:
    receipt = things[asked["by"]].send_async(made(asked)).result(20)
    return {"id": receipt.message_id}


def begin(asked: dict[str, Any]) -> dict[str, Any]:
    """Sends a half message."""
    transaction = things[asked["by"]].begin_transaction()
    receipt = things[asked["by"]].send(made(asked), transaction)
    return {"id": receipt.message_id, "transaction_id": receipt.transaction_id, "number": kept(transaction)}


def end(asked: dict[str, Any]) -> None:
    transaction = things[asked["number"]]
    transaction.commit() if asked["commit"] else transaction.rollback()


def checked(asked: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = things[asked["by"]].checker.checked
    return found


def recall(asked: dict[str, Any]) -> str:
    return str(things[asked["by"]].recall_message(asked["topic"], asked["handle"]))


def simple(asked: dict[str, Any]) -> int:
    one = SimpleConsumer(configuration(asked), asked["group"], subscriptions(asked), asked.get("wait_s", 5))
    one.startup()
    return kept(one)


def receive(asked: dict[str, Any]) -> list[dict[str, Any]]:
    return [shown(one) for one in things[asked["by"]].receive(asked.get("most", 32), asked.get("lease_s", 15))]


def ack(asked: dict[str, Any]) -> None:
    things[asked["by"]].ack(things[asked["number"]])


def change(asked: dict[str, Any]) -> str:
    message = things[asked["number"]]
    things[asked["by"]].change_invisible_duration(message, asked["seconds"])
    return str(message.receipt_handle)


def push(asked: dict[str, Any]) -> int:
    listener = Listener()
    one = PushConsumer(configuration(asked), asked["group"], listener, subscriptions(asked))
    one.startup()
    one.listener = listener
    return kept(one)


def pushed(asked: dict[str, Any]) -> list[dict[str, Any]]:
    listener = things[asked["by"]].listener
    with listener.lock:
        return list(listener.pushed)


def shutdown(asked: dict[str, Any]) -> None:
    things[asked["by"]].shutdown()


DONE: dict[str, Callable[[dict[str, Any]], Any]] = {
    one.__name__: one
    for one in (
        producer,
        send,
        send_async,
        begin,
        end,
        checked,
        recall,
        simple,
        receive,
        ack,
        change,
        push,
        pushed,
        shutdown,
    )
}


def main() -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever the client prints
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            outcome = {"answer": DONE[asked["call"]](asked)}
        except Exception as error:
            code = getattr(error, "code", None)  # of an error of gRPC itself it is a method
            outcome = {
                "error": {"kind": type(error).__name__, "code": None if callable(code) else code, "text": str(error)}
            }
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
