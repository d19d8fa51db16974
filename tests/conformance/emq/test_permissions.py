"""Who may do what: every method, every level, for the owner, a grantee and a stranger, with signed
requests. What a level allows is written here once more, by EMQ's documents (reference/emq.md 3.9).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from tests.conformance.beside import ADMIN_SECRET, beside, new_key
from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Failed, Galaxy, Refused
from tests.conformance.emq.thrift_client import ThriftClient
from tests.services import Up

DENIED, NO_QUEUE = 13, 6
ALL = "send receive handle info peek direct admin full"
# Number of the level -> what it allows.
LEVELS = {
    0: "",
    1: "send",
    2: "receive",
    3: "send receive",
    4: "receive handle",
    5: "send receive handle",
    6: "info",
    7: "send receive handle info",
    8: ALL.removesuffix(" full"),
    9: "peek",
    10: "direct",
    11: ALL,
}
_ATTRIBUTE = {"type": "string", "stringValue": "x"}
_HANDLE = {"receiptHandle": "dHf8AQGiDV0z-Xf6qGRQAbqZ"}
_POLICY = {"type": 3, "measurement": 2, "threshold": 1000.0}
_ENTRY = {"entryId": "1", "messageBody": "x"}
# Method -> what it asks for ("" = nothing), and the request but for the name of the queue.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "sendMessage": ("send", {"messageBody": "x"}),
    "sendMessageBatch": ("send", {"sendMessageBatchRequestEntryList": [_ENTRY]}),
    "receiveMessage": ("receive", {"maxReceiveMessageNumber": 1}),
    "changeMessageVisibilitySeconds": ("handle", {**_HANDLE, "invisibilitySeconds": 5}),
    "changeMessageVisibilitySecondsBatch": (
        "handle",
        {"changeMessageVisibilityRequestEntryList": [{**_HANDLE, "invisibilitySeconds": 5}]},
    ),
    "deleteMessage": ("handle", _HANDLE),
    "deleteMessageBatch": ("handle", {"deleteMessageBatchRequestEntryList": [_HANDLE]}),
    "deadMessage": ("handle", _HANDLE),
    "deadMessageBatch": ("handle", {"deadMessageBatchRequestEntryList": [_HANDLE]}),
    "peekMessage": ("peek", {"peekMessageArg": {"partitionTimeIntervalAndMaxNum": {"maxNum": 1, "partitionId": 0}}}),
    "deletePeekMessage": ("direct", {"receiptHandle": "37a22984-211a-8000-8000-0000001bedf1"}),
    "deletePeekMessageBatch": (
        "direct",
        {"deletePeekMessageBatchEntryList": [{"receiptHandle": "37a22984-211a-8000-8000-0000001bedf1"}]},
    ),
    "getQueueInfo": ("info", {}),
    "setQueueAttribute": ("admin", {"queueAttribute": {"delaySeconds": 0}}),
    "setQueueQuota": ("admin", {"queueQuota": {"throughput": {"readQps": 0}}}),
    "setQueueRedrivePolicy": ("admin", {"redrivePolicy": {"dlqName": "", "maxReceiveTime": 3}}),
    "removeQueueRedrivePolicy": ("admin", {}),
    "createTag": ("admin", {"tagName": "t", "attributeName": "a", "attributeValue": _ATTRIBUTE}),
    "getTagInfo": ("admin", {"tagName": "t"}),
    "listTag": ("admin", {}),
    "deleteTag": ("admin", {"tagName": "t"}),
    "listPermissions": ("admin", {}),
    "queryPermissionForId": ("admin", {"developerId": "somebody"}),
    "queryPermission": ("", {}),
    "setPermission": ("full", {"developerId": "somebody", "permission": 1}),
    "revokePermission": ("full", {"developerId": "somebody"}),
    "addQueueAlertPolicy": ("admin", {"alertPolicy": _POLICY}),
    "listQueueAlertPolicies": ("admin", {}),
    "deleteQueueAlertPolicy": ("admin", {"alertPolicy": _POLICY}),
    "addTagAlertPolicy": ("admin", {"alertPolicy": _POLICY}),
    "listTagAlertPolicies": ("admin", {}),
    "deleteTagAlertPolicy": ("admin", {"alertPolicy": _POLICY}),
    "setQueueDailyStatisticsState": ("admin", {"enabled": True}),
    "getQueueDailyStatisticsState": ("admin", {}),
    "queryMetric": ("full", {"metrics": "send_request.count"}),
    "purgeQueue": ("admin", {}),
    "deleteQueue": ("admin", {}),
}


class Cast(NamedTuple):
    """Who plays: clients that sign, and the dead-letter queue that all may send to."""

    service: Running
    owner: ThriftClient
    grantee: ThriftClient
    stranger: ThriftClient
    admin: ThriftClient
    secrets: dict[str, str]
    dead: str


@pytest.fixture(scope="module")
def cast(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    """A service that wants signatures, and three principals."""
    with contextmanager(beside)(up, "emq-keys", {}, tmp_path_factory) as service:
        yield from _cast(service)


def _cast(service: Running) -> Iterator[Cast]:
    secrets = dict(new_key(service, who) for who in ("shop", "grantee", "stranger")) | {"admin": ADMIN_SECRET}
    owner, grantee, stranger, admin = (
        ThriftClient(service.endpoint, "compact", who, secret) for who, secret in secrets.items()
    )
    dead = owner.call("createQueue", queueName="dead")["queueName"]
    owner.call("setPermission", queueName=dead, developerId="grantee", permission=1)
    yield Cast(service, owner, grantee, stranger, admin, secrets, dead)
    for client in (owner, grantee, stranger, admin):
        client.close()


def denied(client: ThriftClient, method: str, queue: str, dead: str, code: int = DENIED) -> bool:
    """Whether a method is refused for want of a right; anything else that is wrong is not. Who has
    no right at all is told that there is no queue: NO_QUEUE.
    """
    request = METHODS[method][1]
    if method == "setQueueRedrivePolicy":
        request = {"redrivePolicy": {"dlqName": dead, "maxReceiveTime": 3}}
    try:
        answer = client.call(method, queueName=queue, **request)
    except Refused as error:
        return error.code == code
    return (
        any(entry["reason"]["errorCode"] == code for entry in (answer or {}).get("failed", ()))
        if isinstance(answer, dict)
        else False
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_grantee_may_do_what_the_level_says_and_nothing_else(cast: Cast, level: int) -> None:
    queue = cast.owner.call("createQueue", queueName=f"level{level}")["queueName"]
    if level:
        cast.owner.call("setPermission", queueName=queue, developerId="grantee", permission=level)
    allowed = LEVELS[level].split()
    code = DENIED if level else NO_QUEUE
    found = {method: not denied(cast.grantee, method, queue, cast.dead, code) for method in METHODS}
    assert found == {method: not right or right in allowed for method, (right, _) in METHODS.items()}


def test_an_owner_and_an_administrator_may_do_everything_and_a_stranger_nothing(cast: Cast) -> None:
    for name, client in (("owner", cast.owner), ("admin", cast.admin)):
        queue = cast.owner.call("createQueue", queueName=f"of{name}")["queueName"]
        cast.owner.call("sendMessage", queueName=queue, messageBody="stays")
        assert [method for method in METHODS if not denied(cast.stranger, method, queue, cast.dead, NO_QUEUE)] == [
            "queryPermission"
        ]
        state = cast.owner.call("getQueueInfo", queueName=queue)["queueState"]
        assert state["approximateMessageNumber"] == state["approximateAvailableMessageNumber"] == 1, (
            "a refusal has changed something"
        )
        assert [method for method in METHODS if denied(client, method, queue, cast.dead)] == []


def test_who_has_no_permission_is_told_so_and_nothing_of_the_queue(cast: Cast) -> None:
    for name in (cast.dead, "shop/none", "none"):
        assert cast.stranger.call("queryPermission", queueName=name) == {"permission": 0}
    assert cast.grantee.call("queryPermission", queueName=cast.dead) == {"permission": 1}
    for client, name in ((cast.admin, "shop/none"), (cast.stranger, "stranger/none")):
        with pytest.raises(Refused) as refused:
            client.call("queryPermission", queueName=name)
        assert refused.value.code == NO_QUEUE


def test_only_administrators_speak_for_others(cast: Cast) -> None:
    contacts = {"developerId": "grantee", "userName": "G", "email": "g@example.com"}
    quota = {"developerId": "grantee", "userQuota": {"queueNumber": 5}}
    meta = cast.owner.ask("getQueueMeta", cast.dead)["queueMeta"] | {"queueName": "grantee/gift"}
    for method, request in (
        ("setUserInfo", contacts),
        ("getUserInfo", {"developerId": "grantee"}),
        ("getUserQuota", {"developerId": "grantee"}),
        ("getUserUsedQuota", {"developerId": "grantee"}),
        ("setUserQuota", quota),
        ("verifyEMQAdminRole", {"granteeId": "grantee"}),
        ("copyQueue", {"queueMeta": meta}),
    ):
        with pytest.raises(Refused) as refused:
            cast.stranger.call(method, **request)
        assert refused.value.code == DENIED, method
        cast.admin.call(method, **request)
    for client, code in ((cast.grantee, DENIED), (cast.admin, None)):
        if code:
            with pytest.raises(Refused) as refused:
                client.ask("verifyEMQAdmin")
            assert refused.value.code == code
        else:
            assert client.ask("verifyEMQAdmin") == {"prefix": "admin"}
    with pytest.raises(Refused) as refused:
        cast.grantee.call("setUserQuota", **quota)
    assert refused.value.code == DENIED, "nor for themselves"
    assert cast.admin.call("verifyEMQAdminRole", granteeId="grantee") == {"isAdminRole": False}
    assert cast.grantee.call("getUserInfo")["email"] == "g@example.com"


def test_lists_show_what_is_ones_own(cast: Cast) -> None:
    mine = cast.grantee.call("createQueue", queueName="mine")["queueName"]
    assert mine == "grantee/mine"
    assert "shop/dead" not in cast.grantee.call("listQueue")["queueName"]
    assert {mine, cast.dead} <= set(cast.admin.call("listQueue")["queueName"])
    assert cast.dead in [one["queueName"] for one in cast.grantee.call("queryPrivilegedQueue")["queueList"]]
    assert cast.stranger.call("queryPrivilegedQueue")["queueList"] == []


def test_a_wrong_signature_and_an_unknown_key_are_401(cast: Cast) -> None:
    for key, secret in (("shop", "wrong"), ("nobody", "secret")):
        client = ThriftClient(cast.service.endpoint, "json", key, secret)
        with pytest.raises(Failed, match=r"^401 "):
            client.call("getQueueInfo", queueName=cast.dead)
        client.close()


def test_the_sdk_signs_as_the_service_wants_it(cast: Cast) -> None:
    client = Galaxy(cast.service.endpoint, "shop", cast.secrets["shop"])
    queue = client.call("createQueue", queueName=f"sdk_{os.getpid()}")["queueName"]
    assert queue.startswith("shop/")
    client.call("sendMessage", queueName=queue, messageBody="signed")
    assert [one["messageBody"] for one in client.call("receiveMessage", queueName=queue)] == ["signed"]
    client.close()


def test_old_clients_have_numbers_of_their_own(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> None:
    with contextmanager(beside)(up, "emq-old", {"EMQ_PERMISSIONS": "old"}, tmp_path_factory) as service:
        secrets = dict(new_key(service, who) for who in ("shop", "grantee"))
        owner, grantee = (Galaxy(service.endpoint, who, secret) for who, secret in secrets.items())
        queue = owner.call("createQueue", queueName="old")["queueName"]
        assert owner.call("listPermissions", queueName=queue)["permissionList"] == {"shop": 9}
        owner.call("setPermission", queueName=queue, developerId="grantee", permission=9)
        assert grantee.call("queryPermission", queueName=queue)["permission"] == 9
        grantee.call("setPermission", queueName=queue, developerId="other", permission=1)
        assert owner.call("listPermissions", queueName=queue)["permissionList"] == {"shop": 9, "grantee": 9, "other": 1}
        for client in (owner, grantee):
            client.close()
