"""Queues, tags and permissions by EMQ's own Python client, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conformance.emq.galaxy import Galaxy, Refused
from tests.conformance.emq.test_messages import receive, send

DEFAULTS = {
    "delaySeconds": 0,
    "invisibilitySeconds": 30,
    "receiveMessageWaitSeconds": 0,
    "receiveMessageMaximumNumber": 100,
    "messageRetentionSeconds": 345_600,
    "messageMaximumBytes": 262_144,
    "partitionNumber": 4,
}


def code_of(galaxy: Galaxy, method: str, **request: Any) -> int | None:
    """The code of a call that is refused."""
    with pytest.raises(Refused) as refused:
        galaxy.call(method, checked=False, **request)
    return refused.value.code


def receive_some(galaxy: Galaxy, queue: str, tag: str, count: int) -> list[str]:
    """Bodies under a tag: a receive may have less than there is, as it does not wait for more."""
    found: list[str] = []
    while len(found) < count and (some := receive(galaxy, queue, tagName=tag, wait_s=5)):
        found += [one["messageBody"] for one in some]
    return sorted(found)


def test_a_queue_has_an_owner_and_the_defaults(galaxy: Galaxy, name: str) -> None:
    made = galaxy.call("createQueue", queueName=name)
    assert made["queueName"] == f"anonymous/{name}"
    assert made["queueAttribute"] == DEFAULTS
    info = galaxy.call("getQueueInfo", queueName=made["queueName"])
    assert info["queueAttribute"] == DEFAULTS
    assert info["isDeadLetterQueue"] is False and info["enablePriority"] is False and info["topicQueue"] is False
    assert info["queueState"] == {
        "createTimestamp": info["queueState"]["createTimestamp"],
        "lastModifiedTimestamp": info["queueState"]["createTimestamp"],
        "approximateMessageNumber": 0,
        "approximateAvailableMessageNumber": 0,
        "approximateInvisibilityMessageNumber": 0,
    }
    assert abs(info["queueState"]["createTimestamp"] - time.time() * 1000) < 10_000


def test_a_queue_of_that_name_is_refused_with_its_full_name_at_the_end(galaxy: Galaxy, queue: str, name: str) -> None:
    with pytest.raises(Refused) as refused:
        galaxy.call("createQueue", queueName=name)
    assert (refused.value.code, refused.value.msg) == (4, "QueueExistException")
    assert refused.value.details.rpartition(":")[2] == queue


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("delaySeconds", 0, 900),
        ("invisibilitySeconds", 0, 43_200),
        ("receiveMessageWaitSeconds", 0, 20),
        ("receiveMessageMaximumNumber", 1, 100),
        ("messageRetentionSeconds", 60, 1_209_600),
        ("messageMaximumBytes", 1, 262_144),
    ],
)
def test_each_attribute_has_its_range(galaxy: Galaxy, queue: str, field: str, low: int, high: int) -> None:
    for value in (low, high):
        told = galaxy.call("setQueueAttribute", checked=False, queueName=queue, queueAttribute={field: value})
        assert told["queueAttribute"] == {**DEFAULTS, field: value}
    for wrong in (low - 1, high + 1):
        assert code_of(galaxy, "setQueueAttribute", queueName=queue, queueAttribute={field: wrong}) == 2
        assert (
            code_of(galaxy, "createQueue", queueName=f"{queue.partition('/')[2]}x", queueAttribute={field: wrong}) == 2
        )
    assert galaxy.call("getQueueInfo", queueName=queue)["queueAttribute"][field] == high


def test_notes_of_the_user_are_kept_and_not_empty(galaxy: Galaxy, queue: str) -> None:
    told = galaxy.call("setQueueAttribute", queueName=queue, queueAttribute={"userAttributes": {"team": "shop"}})
    assert told["queueAttribute"]["userAttributes"] == {"team": "shop"}
    assert code_of(galaxy, "setQueueAttribute", queueName=queue, queueAttribute={"userAttributes": {"team": ""}}) == 2


def test_queues_are_listed_by_short_and_by_full_names(galaxy: Galaxy, name: str) -> None:
    for ending in ("a", "b"):
        galaxy.call("createQueue", queueName=f"{name}_{ending}")
    both = [f"anonymous/{name}_a", f"anonymous/{name}_b"]
    assert galaxy.call("listQueue", queueNamePrefix=f"{name}_")["queueName"] == both
    assert galaxy.call("listQueue", checked=False, queueNamePrefix=f"anonymous/{name}_b")["queueName"] == both[1:]
    assert galaxy.call("listQueue", checked=False, queueNamePrefix=f"nobody/{name}_b")["queueName"] == []
    assert code_of(galaxy, "listQueue", queueNamePrefix="a/b/c") == 2


def test_a_purge_takes_all_and_moves_the_time_of_the_last_change(galaxy: Galaxy, queue: str) -> None:
    for delay in (0, 0, 900):
        send(galaxy, queue, "m", delaySeconds=delay)
    receive(galaxy, queue, 1)
    galaxy.call("purgeQueue", queueName=queue)
    state = galaxy.call("getQueueInfo", queueName=queue)["queueState"]
    assert state["approximateMessageNumber"] == 0 and state["lastModifiedTimestamp"] > state["createTimestamp"]


def test_what_is_deleted_is_gone(galaxy: Galaxy, queue: str) -> None:
    galaxy.call("deleteQueue", queueName=queue)
    assert code_of(galaxy, "getQueueInfo", queueName=queue) == 6
    assert code_of(galaxy, "deleteQueue", queueName=queue) == 6


@pytest.mark.parametrize(("name", "code"), [("", 5), ("a/b", 2), ("a b", 2), ("x" * 151, 2)])
def test_a_name_that_is_none_is_refused(galaxy: Galaxy, name: str, code: int) -> None:
    assert code_of(galaxy, "createQueue", queueName=name) == code


def test_a_policy_is_set_shown_and_removed(galaxy: Galaxy, queue: str, name: str) -> None:
    dead = galaxy.call("createQueue", queueName=f"{name}_dead")["queueName"]
    policy = {"dlqName": dead, "maxReceiveTime": 1}
    galaxy.call("setQueueRedrivePolicy", checked=False, queueName=queue, redrivePolicy=policy)
    assert galaxy.call("getQueueInfo", queueName=queue)["redrivePolicy"] == policy
    # This client does not know sourceQueues of getQueueInfo: it asks as clients before 2016-06 did.
    assert galaxy.call("getQueueInfo", queueName=dead)["isDeadLetterQueue"] is True
    assert galaxy.call("listDeadLetterSourceQueues", dlqName=dead)["sourceQueues"] == [queue]
    send(galaxy, queue, "m", invisibilitySeconds=2)
    receive(galaxy, queue)
    time.sleep(2.1)
    assert receive(galaxy, queue, wait_s=0) == []
    (died,) = receive(galaxy, dead, wait_s=5)
    assert died["attributes"]["originalReceiveCount"] == "1"
    galaxy.call("removeQueueRedrivePolicy", queueName=queue)
    assert "redrivePolicy" not in galaxy.call("getQueueInfo", queueName=queue)
    for target, times, code in ((queue, 1, 1), (dead, 0, 2), (dead, 101, 2)):
        wrong = {"dlqName": target, "maxReceiveTime": times}
        assert code_of(galaxy, "setQueueRedrivePolicy", queueName=queue, redrivePolicy=wrong) == code
    assert (
        code_of(
            galaxy, "setQueueRedrivePolicy", queueName=queue, redrivePolicy={"dlqName": "a/none", "maxReceiveTime": 1}
        )
        == 6
    )


def test_a_queue_with_priority_gives_the_lowest_number_first(galaxy: Galaxy, name: str) -> None:
    queue = galaxy.call("createQueue", queueName=name, enablePriority=True)["queueName"]
    for number in (9, 1, 16, 8):
        send(galaxy, queue, str(number), priority=number)
    send(galaxy, queue, "none")
    got = receive(galaxy, queue, 10)
    assert [one["messageBody"] for one in got] == ["1", "8", "none", "9", "16"]
    assert [one["attributes"]["priority"] for one in got] == ["1", "8", "8", "9", "16"]
    dead = galaxy.call("createQueue", queueName=f"{name}_dead")["queueName"]
    assert (
        code_of(galaxy, "setQueueRedrivePolicy", queueName=queue, redrivePolicy={"dlqName": dead, "maxReceiveTime": 1})
        == 1
    )
    assert (
        code_of(galaxy, "setQueueRedrivePolicy", queueName=dead, redrivePolicy={"dlqName": queue, "maxReceiveTime": 1})
        == 1
    )


def test_a_tag_sees_what_its_filter_wants_from_its_start_on(galaxy: Galaxy, queue: str) -> None:
    send(galaxy, queue, "before", messageAttributes={"kind": {"type": "string", "stringValue": "a"}})
    red = {"type": "string", "stringValue": "a"}
    made = galaxy.call(
        "createTag", queueName=queue, tagName="all", startTimestamp=0, attributeName="kind", attributeValue=red
    )
    assert made["tagName"] == "all" and made["queueName"] == queue
    galaxy.call("createTag", queueName=queue, tagName="late", userAttributes={"for": "billing"})
    galaxy.call(
        "createTag",
        queueName=queue,
        tagName="has",
        startTimestamp=0,
        attributeName="kind",
        attributeValue={"type": "empty"},
    )
    send(galaxy, queue, "other", messageAttributes={"kind": {"type": "string", "stringValue": "b"}})
    send(galaxy, queue, "plain")
    assert galaxy.call("listTag", queueName=queue)["tagName"] == ["all", "late", "has"]
    found = {tag: receive_some(galaxy, queue, tag, count) for tag, count in (("all", 1), ("late", 2), ("has", 2))}
    assert found == {"all": ["before"], "late": ["other", "plain"], "has": ["before", "other"]}
    assert len(receive(galaxy, queue)) == 3
    shown = galaxy.call("getTagInfo", queueName=queue, tagName="all")
    assert (shown["attributeName"], shown["attributeValue"]) == ("kind", red)
    assert shown["tagState"]["approximateInvisibilityMessageNumber"] == 1
    assert galaxy.call("getTagInfo", queueName=queue, tagName="late")["userAttributes"] == {"for": "billing"}
    assert galaxy.call("getTagInfo", queueName=queue)["tagState"]["approximateMessageNumber"] == 3
    galaxy.call("deleteTag", queueName=queue, tagName="all")
    assert code_of(galaxy, "getTagInfo", queueName=queue, tagName="all") == 2
    assert code_of(galaxy, "receiveMessage", queueName=queue, tagName="all") == 2
    assert code_of(galaxy, "deleteTag", queueName=queue, tagName="all") == 2
    assert code_of(galaxy, "createTag", queueName=queue, tagName="late") == 2


def test_a_queue_has_twenty_tags_and_no_more(galaxy: Galaxy, queue: str) -> None:
    for number in range(20):
        galaxy.call("createTag", queueName=queue, tagName=f"t{number}")
    assert code_of(galaxy, "createTag", queueName=queue, tagName="one_more") == 2
    assert len(galaxy.call("listTag", queueName=queue)["tagName"]) == 20


def test_the_default_tag_may_have_a_name(galaxy: Galaxy, name: str) -> None:
    queue = galaxy.call("createQueue", queueName=name, defaultTagName="main")["queueName"]
    assert galaxy.call("getQueueInfo", queueName=queue)["defaultTagName"] == "main"
    send(galaxy, queue, "m")
    (got,) = receive(galaxy, queue, tagName="main")
    assert receive(galaxy, queue, wait_s=0) == [] and got["messageBody"] == "m"
    assert galaxy.call("getTagInfo", queueName=queue, tagName="main")["tagState"]["approximateMessageNumber"] == 1
    assert galaxy.call("listTag", queueName=queue)["tagName"] == ["main"]
    assert code_of(galaxy, "createTag", queueName=queue, tagName="main") == 2
    assert code_of(galaxy, "deleteTag", queueName=queue, tagName="main") == 1


def test_permissions_are_given_changed_listed_and_revoked(galaxy: Galaxy, queue: str) -> None:
    galaxy.call("setPermission", queueName=queue, developerId="CI123", permission=7)
    galaxy.call("setPermission", queueName=queue, developerId="CI123", permission=3)
    galaxy.call("setPermission", queueName=queue, developerId="CI124", permission=8)
    assert galaxy.call("listPermissions", queueName=queue)["permissionList"] == {
        "anonymous": 11,
        "CI123": 3,
        "CI124": 8,
    }
    assert galaxy.call("queryPermissionForId", queueName=queue, developerId="CI123")["permission"] == 3
    assert galaxy.call("queryPermission", queueName=queue)["permission"] == 11
    galaxy.call("revokePermission", queueName=queue, developerId="CI123")
    assert galaxy.call("queryPermissionForId", queueName=queue, developerId="CI123")["permission"] == 0
    assert code_of(galaxy, "setPermission", queueName=queue, developerId="CI123", permission=12) == 2
    assert code_of(galaxy, "setPermission", queueName=queue, developerId="anonymous", permission=1) == 2


def test_a_queue_has_a_quota_of_requests(galaxy: Galaxy, name: str) -> None:
    made = galaxy.call("createQueue", queueName=name, queueQuota={"throughput": {"readQps": 100, "writeQps": 2}})
    queue = made["queueName"]
    assert made["queueQuota"] == {"throughput": {"readQps": 100, "writeQps": 2}}
    codes = []
    for _ in range(20):
        try:
            send(galaxy, queue, "m")
        except Refused as refused:
            codes.append(refused.code)
    assert codes and set(codes) == {20}
    told = galaxy.call("setQueueQuota", queueName=queue, queueQuota={"throughput": {"writeQps": 0}})
    assert (
        told["queueQuota"]
        == {"throughput": {"readQps": 100, "writeQps": 0}}
        == galaxy.call("getQueueInfo", queueName=queue)["queueQuota"]
    )
    for _ in range(10):
        send(galaxy, queue, "m")
    for wrong in (-1, 100_001):
        assert code_of(galaxy, "setQueueQuota", queueName=queue, queueQuota={"throughput": {"readQps": wrong}}) == 2
    assert galaxy.call("createTag", queueName=queue, tagName="t", readQPSQuota=7)["readQPSQuota"] == 7
    assert galaxy.call("getTagInfo", queueName=queue, tagName="t")["readQPSQuota"] == 7
    assert code_of(galaxy, "createTag", queueName=queue, tagName="u", readQPSQuota=100_001) == 2


def test_a_user_has_contacts_and_quotas(galaxy: Galaxy, name: str) -> None:
    who = f"dev-{name}"
    galaxy.call("setUserInfo", developerId=who, userName="Billing", email="billing@example.com", sms="1")
    told = galaxy.call("getUserInfo", developerId=who)
    assert told == {"developerId": who, "userName": "Billing", "email": "billing@example.com", "sms": "1"}
    quota = {"throughput": {"readQps": 10, "writeQps": 20}, "queueNumber": 3}
    galaxy.call("setUserQuota", developerId=who, userQuota=quota)
    assert galaxy.call("getUserQuota", developerId=who) == {"developerId": who, "userQuota": quota}
    none = {"throughput": {"readQps": 0, "writeQps": 0}, "queueNumber": 0}
    assert galaxy.call("getUserUsedQuota", developerId=who)["userQuota"] == none
    assert galaxy.call("getUserInfo")["developerId"] == "anonymous"
    assert galaxy.call("getUserUsedQuota")["userQuota"]["queueNumber"] > 0
    assert code_of(galaxy, "setUserQuota", developerId=who, userQuota={"queueNumber": -1}) == 2
