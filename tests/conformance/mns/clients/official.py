"""The Python SDK of MNS as a child process: a call is a line of JSON on standard input, its outcome
a line on standard output.

The SDK needs packages that .venv has not. A call names the account (`queue` empty), a queue, a
topic or a subscription, and a method of the SDK's object of that kind; arguments that are objects
are of the classes that the SDK wants there.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mns.account import Account, AccountMeta
from mns.message_property import MessagePropertyValue, MessageSystemPropertyValue
from mns.mns_exception import MNSExceptionBase, MNSServerException
from mns.mns_request import ListQueueRequest, ListQueueResponse
from mns.queue import Message, QueueMeta
from mns.subscription import SubscriptionMeta
from mns.topic import TopicMessage, TopicMeta

KINDS = {"queue": QueueMeta, "account": AccountMeta, "topic": TopicMeta, "subscription": SubscriptionMeta}


def message(given: dict[str, Any]) -> Message:
    """A message to send; properties are [type, value] by their names."""
    made = Message(given["body"], given.get("delay"), given.get("priority"), given.get("group", ""))
    for name, (kind, value) in given.get("properties", {}).items():
        made.add_user_property(name, MessagePropertyValue(kind, value))
    for name, value in given.get("system", {}).items():
        made.add_system_property(name, MessageSystemPropertyValue.create_string(value))
    return made


def made(kind: str, given: Any) -> Any:
    """An argument."""
    if isinstance(given, dict) and "body" in given:
        return TopicMessage(given["body"]) if kind == "topic" else message(given)
    if isinstance(given, dict):
        return KINDS[kind](**given)
    if isinstance(given, list) and given and isinstance(given[0], dict):
        return [message(one) for one in given]
    return given


def plain(value: Any) -> Any:
    """A result for JSON."""
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, MessagePropertyValue | MessageSystemPropertyValue):
        return [value.get_data_type(), value.get_string_value_by_type()]
    return {name.lstrip("_"): plain(one) for name, one in vars(value).items()} if hasattr(value, "__dict__") else value


def listed(account: Account, prefix: str) -> Any:
    """A list with attributes, which the SDK has below its objects only."""
    asked, told = ListQueueRequest(prefix, -1, "", True), ListQueueResponse()
    account.get_client().list_queue(asked, told)
    return [plain(one) for one in told.queuemeta_list]


def outcome(account: Account, asked: dict[str, Any]) -> dict[str, Any]:
    """What became of a call."""
    kind, names, method = asked["kind"], asked["names"], asked["method"]
    try:
        if method == "list_with_meta":
            return {"answer": listed(account, *asked["arguments"])}
        target = account if kind == "account" else getattr(account, f"get_{kind}")(*names)
        if kind == "queue":
            target.set_encoding(asked["encoding"])
        return {"answer": plain(getattr(target, method)(*(made(kind, one) for one in asked["arguments"])))}
    except MNSServerException as error:
        told = {
            "type": error.type,
            "message": error.message,
            "id": error.req_id,
            "host": error.host_id,
            "sub": plain(error.sub_errors),
        }
        return {"error": told}
    except MNSExceptionBase as error:
        return {"failed": f"{error.type}: {error.message}"}
    except Exception as error:  # what the SDK can make nothing of
        return {"failed": f"{type(error).__name__}: {error}"}


endpoint, key, secret = sys.argv[1:]
own = Account(endpoint, key, secret)
for line in sys.stdin:
    sys.stdout.write(json.dumps(outcome(own, json.loads(line))) + "\n")
    sys.stdout.flush()
