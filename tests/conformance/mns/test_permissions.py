"""Who may do what through MNS, with signed requests: each operation for the owner, grantees of each
level, a stranger and an administrator; and the SDK with good and wrong secrets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import httpx
import pytest

from schemas.vocabulary import Level
from tests.clients import NotFetched
from tests.conformance.beside import ADMIN_SECRET, beside, new_key
from tests.conformance.conftest import Running
from tests.conformance.mns.official import Official, Refused
from tests.conformance.mns.raw import Raw, Reply, signed
from tests.conftest import absent
from tests.services import Up

# Operation -> the right that it needs, method, target behind the queue's path, and body.
OPERATIONS = {
    "SendMessage": ("send", "POST", "/messages", "<Message><MessageBody>x</MessageBody></Message>"),
    "BatchSendMessage": (
        "send",
        "POST",
        "/messages",
        "<Messages><Message><MessageBody>x</MessageBody></Message></Messages>",
    ),
    "ReceiveMessage": ("receive", "GET", "/messages", ""),
    "BatchReceiveMessage": ("receive", "GET", "/messages?numOfMessages=2", ""),
    "PeekMessage": ("peek", "GET", "/messages?peekonly=true", ""),
    "BatchPeekMessage": ("peek", "GET", "/messages?peekonly=true&numOfMessages=2", ""),
    "DeleteMessage": ("handle", "DELETE", "/messages?ReceiptHandle=x", ""),
    "BatchDeleteMessage": (
        "handle",
        "DELETE",
        "/messages",
        "<ReceiptHandles><ReceiptHandle>x</ReceiptHandle></ReceiptHandles>",
    ),
    "ChangeMessageVisibility": ("handle", "PUT", "/messages?ReceiptHandle=x&VisibilityTimeout=5", ""),
    "GetQueueAttributes": ("info", "GET", "", ""),
    "SetQueueAttributes": ("admin", "PUT", "?metaoverride=true", "<Queue><DelaySeconds>0</DelaySeconds></Queue>"),
    "CreateTag": ("info admin", "PUT", "@more", "<Queue/>"),
    "DeleteTag": ("admin", "DELETE", "@none", ""),
    "DeleteQueue": ("admin", "DELETE", "", ""),
}
_USE = "send receive handle info"
LEVELS = {
    Level.NONE: "", Level.SEND: "send", Level.RECEIVE: "receive", Level.SEND_RECEIVE: "send receive",
    Level.HANDLE: "receive handle",
    Level.SEND_HANDLE: "send receive handle", Level.GET_INFO: "info", Level.USE: _USE,
    Level.ADMIN: f"{_USE} peek admin",
    Level.PEEK: "peek", Level.DELETE_PEEK: "", Level.FULL_CONTROL: f"{_USE} peek admin",
}  # fmt: skip


class Cast(NamedTuple):
    """A service that wants signatures, and the secrets of who plays."""

    service: Running
    raw: Raw
    secrets: dict[str, str]

    def ask(self, who: str, method: str, target: str, body: str = "") -> Reply:
        """A signed request."""
        return self.raw.ask(method, target, body, signed(who, self.secrets[who], method, target, {}))

    def denied(self, who: str, queue: str, operation: str, *, hidden: bool = False) -> bool:
        """Whether an operation is refused for want of a right; anything else may be wrong.
        `hidden`: who has no right at all is told that there is no queue.
        """
        _, method, rest, body = OPERATIONS[operation]
        reply = self.ask(who, method, f"/queues/{queue}{rest}", body)
        status, code = (404, "QueueNotExist") if hidden else (403, "AccessDenied")
        return reply.status == status and reply.code == code


@pytest.fixture(scope="module")
def cast(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    """A service that wants signatures, and four principals."""
    with contextmanager(beside)(up, "mns-keys", {}, tmp_path_factory) as service:
        secrets = dict(new_key(service, who) for who in ("shop", "grantee", "stranger")) | {"admin": ADMIN_SECRET}
        yield Cast(service, Raw(service.endpoint), secrets)


def new_queue(cast: Cast, name: str) -> str:
    assert cast.ask("shop", "PUT", f"/queues/{name}").status == 201
    return name


@pytest.mark.parametrize("level", LEVELS)
def test_a_grantee_may_do_what_the_level_says_and_nothing_else(cast: Cast, level: Level) -> None:
    queue = new_queue(cast, f"level-{level.lower().replace('_', '-')}")
    if level != Level.NONE:
        url = f"{cast.service.endpoint}/v1/queues/{queue}/grants/grantee"
        httpx.put(url, json={"level": level}, auth=("shop", cast.secrets["shop"])).raise_for_status()
    allowed = set(LEVELS[level].split())
    found = {
        operation: not cast.denied("grantee", queue, operation, hidden=level == Level.NONE) for operation in OPERATIONS
    }

    assert found == {operation: set(rights.split()) <= allowed for operation, (rights, *_) in OPERATIONS.items()}


@pytest.mark.parametrize("who", ["shop", "admin"])
def test_an_owner_and_an_administrator_may_do_everything_and_a_stranger_nothing(cast: Cast, who: str) -> None:
    queue = new_queue(cast, f"of-{who}")
    cast.ask("shop", "POST", f"/queues/{queue}/messages", OPERATIONS["SendMessage"][3])

    assert [operation for operation in OPERATIONS if not cast.denied("stranger", queue, operation, hidden=True)] == []
    assert cast.ask("shop", "GET", f"/queues/{queue}").text("ActiveMessages") == "1", "a refusal has changed something"
    assert [operation for operation in OPERATIONS if cast.denied(who, queue, operation)] == []


def test_what_is_wrong_with_a_head_is_told(cast: Cast) -> None:
    good = signed("shop", cast.secrets["shop"], "GET", "/queues", {})
    old = signed("shop", cast.secrets["shop"], "GET", "/queues", {"Date": "Tue, 03 Jun 2025 11:23:48 GMT"})
    heads = {
        "MissingAuthorizationHeader": {name: value for name, value in good.items() if name != "Authorization"},
        "InvalidAuthorizationHeader": {**good, "Authorization": "MNS4-HMAC-SHA256 Credential=x"},
        "MissingDateHeader": {name: value for name, value in good.items() if name != "Date"},
        "InvalidDateHeader": {**good, "Date": "today"},
        "MissingVersionHeader": {name: value for name, value in good.items() if name != "x-mns-version"},
        "SignatureDoesNotMatch": {**good, "x-mns-prefix": "a"},
        "TimeExpired": old,
    }

    assert {code: cast.raw.ask("GET", "/queues", headers=head).code for code, head in heads.items()} == {
        code: code for code in heads
    }
    assert cast.raw.ask("GET", "/queues", headers=good).status == 200
    assert cast.raw.ask("GET", "/queues", headers=old).status == 408


def test_a_list_shows_what_is_ones_own(cast: Cast) -> None:
    new_queue(cast, "mine")

    assert f"{cast.service.endpoint}/queues/mine" in cast.ask("shop", "GET", "/queues").texts("Queue", "QueueURL")
    assert cast.ask("stranger", "GET", "/queues").texts("Queue", "QueueURL") == []


def test_a_name_of_others_can_not_be_taken(cast: Cast) -> None:
    new_queue(cast, "taken")

    assert cast.ask("stranger", "PUT", "/queues/taken").code == "AccessDenied"


def test_the_sdk_signs_as_the_service_wants_it(cast: Cast) -> None:
    try:
        client = Official(cast.service.endpoint, "shop", cast.secrets["shop"])
    except NotFetched as error:
        absent(str(error))
    queue = f"sdk-{os.getpid()}"
    client.queue(queue, "create", {"vis_timeout": 30})
    client.queue(
        queue, "batch_send_message", [{"body": "zw\u00f6lf", "properties": {"a": ["STRING", "b"]}}, {"body": "x"}]
    )
    got = client.queue(queue, "batch_receive_message", 16, 2)
    changed = client.queue(queue, "change_message_visibility", got[0]["receipt_handle"], 60)
    client.queue(queue, "batch_delete_message", [changed["receipt_handle"], got[1]["receipt_handle"]])
    assert [one["message_body"] for one in got] == ["zw\u00f6lf", "x"]
    assert queue in client.account("list_queue", "sdk-")[0][0]
    client.close()


@pytest.mark.parametrize(
    ("key", "secret", "code"), [("shop", "wrong", "SignatureDoesNotMatch"), ("nobody", "x", "InvalidAccessKeyId")]
)
def test_a_wrong_secret_and_an_unknown_key_are_told(cast: Cast, key: str, secret: str, code: str) -> None:
    client = Official(cast.service.endpoint, key, secret)
    with pytest.raises(Refused) as refused:
        client.queue("any", "get_attributes")
    client.close()

    assert refused.value.type == code
