"""Rules of EMQ that take more than a request, by its own Python client and, where that has not what
they need, by the binary protocol.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Failed, Galaxy, Refused
from tests.conformance.emq.test_messages import receive, send
from tests.conformance.emq.test_queues import receive_some
from tests.conformance.emq.thrift_client import ThriftClient
from tests.services import Up


@pytest.fixture
def user(up: Up | Running, name: str) -> Iterator[ThriftClient]:
    """A client with a principal of its own."""
    client = ThriftClient(up.endpoint, "compact", f"user-{name}")
    yield client
    client.close()


def source_with_dead_letters(galaxy: Galaxy, name: str, times: int = 1) -> tuple[str, str]:
    dead = galaxy.call("createQueue", queueName=f"{name}_dead", deadLetterQueue=True)["queueName"]
    source = galaxy.call("createQueue", queueName=name, queueAttribute={"invisibilitySeconds": 2})["queueName"]
    galaxy.call(
        "setQueueRedrivePolicy",
        checked=False,
        queueName=source,
        redrivePolicy={"dlqName": dead, "maxReceiveTime": times},
    )
    return source, dead


def test_a_message_dies_under_each_tag_for_itself(galaxy: Galaxy, name: str) -> None:
    source, dead = source_with_dead_letters(galaxy, name)
    for tag in ("a", "b"):
        galaxy.call("createTag", queueName=source, tagName=tag)
    sent = send(galaxy, source, "m")
    (first,) = receive(galaxy, source, tagName="a")
    assert first["attributes"]["receiveCount"] == "1"
    time.sleep(2.1)
    assert receive(galaxy, source, wait_s=0, tagName="a") == []
    (letter,) = receive(galaxy, dead, wait_s=5)
    assert (letter["attributes"]["sourceTag"], letter["attributes"]["originalMessageID"]) == ("a", sent["messageID"])
    # The other tag has not noticed: a first delivery, and a death of its own.
    (other,) = receive(galaxy, source, tagName="b")
    assert other["attributes"]["receiveCount"] == "1"
    galaxy.call("deadMessage", queueName=source, receiptHandle=other["receiptHandle"])
    (letter,) = receive(galaxy, dead, wait_s=5)
    assert letter["attributes"]["sourceTag"] == "b"
    # And the default tag acks it: nothing more dies.
    (last,) = receive(galaxy, source)
    galaxy.call("deleteMessage", queueName=source, receiptHandle=last["receiptHandle"])
    assert receive(galaxy, dead, wait_s=0) == []


def test_a_dead_letter_queue_that_is_deleted_takes_its_policies_along(galaxy: Galaxy, name: str) -> None:
    source, dead = source_with_dead_letters(galaxy, name)
    send(galaxy, source, "m")
    (first,) = receive(galaxy, source)
    galaxy.call("deleteQueue", queueName=dead)
    galaxy.call(
        "changeMessageVisibilitySeconds", queueName=source, receiptHandle=first["receiptHandle"], invisibilitySeconds=0
    )
    (again,) = receive(galaxy, source)
    assert again["attributes"]["receiveCount"] == "2"


def test_letters_of_one_source_are_filtered_by_its_full_name(galaxy: Galaxy, name: str) -> None:
    source, dead = source_with_dead_letters(galaxy, name)
    galaxy.call(
        "createTag",
        queueName=dead,
        tagName="of_one",
        attributeName="DLQ.sourceQueue",
        attributeValue={"type": "STRING", "stringValue": source},
    )
    send(galaxy, dead, "sent directly")
    send(galaxy, source, "m")
    (got,) = receive(galaxy, source)
    galaxy.call("deadMessage", queueName=source, receiptHandle=got["receiptHandle"])
    assert [one["messageBody"] for one in receive(galaxy, dead, wait_s=5, tagName="of_one")] == ["m"]
    (direct,) = [one for one in receive(galaxy, dead) if one["messageBody"] == "sent directly"]
    assert "sourceQueueName" not in direct["attributes"] and "messageAttributes" not in direct


@pytest.mark.parametrize("method", ["deleteMessage", "changeMessageVisibilitySeconds", "deadMessage"])
def test_a_handle_that_has_expired_is_silent_and_harms_no_later_delivery(
    galaxy: Galaxy, name: str, method: str
) -> None:
    source, dead = source_with_dead_letters(galaxy, name, times=5)
    send(galaxy, source, "m", invisibilitySeconds=2)
    (first,) = receive(galaxy, source)
    time.sleep(2.1)
    (again,) = receive(galaxy, source)
    more = {"invisibilitySeconds": 0} if method == "changeMessageVisibilitySeconds" else {}
    assert galaxy.ask(method, {"queueName": source, "receiptHandle": first["receiptHandle"], **more}) is None
    assert receive(galaxy, source, wait_s=0) == [] == receive(galaxy, dead, wait_s=0)
    time.sleep(2.1)
    (last,) = receive(galaxy, source)
    assert (last["messageID"], last["attributes"]["receiveCount"]) == (again["messageID"], "3")


def test_a_message_overrides_what_its_queue_says_once_for_each_delivery(galaxy: Galaxy, name: str) -> None:
    attribute = {"delaySeconds": 900, "invisibilitySeconds": 600}
    queue = galaxy.call("createQueue", queueName=name, queueAttribute=attribute)["queueName"]
    send(galaxy, queue, "late")
    send(galaxy, queue, "now", delaySeconds=0, invisibilitySeconds=2)
    for count in ("1", "2"):
        (got,) = receive(galaxy, queue, wait_s=5)
        assert (got["messageBody"], got["attributes"]["receiveCount"]) == ("now", count)
    # The lease of one delivery is changed; the next has the message's own again.
    galaxy.call(
        "changeMessageVisibilitySeconds", queueName=queue, receiptHandle=got["receiptHandle"], invisibilitySeconds=0
    )
    receive(galaxy, queue)
    assert receive(galaxy, queue, wait_s=5)[0]["attributes"]["receiveCount"] == "4"
    state = galaxy.call("getQueueInfo", queueName=queue)["queueState"]
    assert (state["approximateMessageNumber"], state["approximateAvailableMessageNumber"]) == (2, 0)


def test_a_tag_begins_where_it_was_told_to(galaxy: Galaxy, queue: str) -> None:
    send(galaxy, queue, "old")
    time.sleep(0.05)
    middle = send(galaxy, queue, "middle")["sendTimestamp"]
    made = galaxy.call("createTag", queueName=queue, tagName="later", startTimestamp=middle)
    assert made["startTimestamp"] == middle
    assert galaxy.call("createTag", queueName=queue, tagName="all", startTimestamp=0)["startTimestamp"] > 0
    assert receive_some(galaxy, queue, "later", 1) == ["middle"]
    assert receive_some(galaxy, queue, "all", 2) == ["middle", "old"]


def test_quotas_of_a_tag_and_of_a_user_refuse_with_a_clear_code(
    galaxy: Galaxy, user: ThriftClient, queue: str, name: str
) -> None:
    galaxy.call("createTag", queueName=queue, tagName="slow", readQPSQuota=1)
    codes = set()
    for _ in range(20):
        try:
            receive(galaxy, queue, wait_s=0, tagName="slow")
        except Refused as refused:
            codes.add((refused.code, refused.msg))
    assert codes == {(20, "QUOTA_EXCEEDED")}
    receive(galaxy, queue, wait_s=0)  # the queue has none

    first, second = (user.call("createQueue", queueName=f"{name}_{n}")["queueName"] for n in range(2))
    quota = {"throughput": {"writeQps": 2, "readQps": 2}, "queueNumber": 2}
    galaxy.call("setUserQuota", developerId=f"user-{name}", userQuota=quota)
    with pytest.raises(Refused, match="20 QUOTA_EXCEEDED"):
        user.call("createQueue", queueName=f"{name}_3")
    for method, more in (("sendMessage", {"messageBody": "m"}), ("receiveMessage", {})):
        seen = set()
        for turn in range(40):  # of both queues together
            try:
                user.call(method, queueName=(first, second)[turn % 2], **more)
            except Refused as error:
                seen.add((error.code, error.msg))
        assert seen == {(20, "QUOTA_EXCEEDED")}
    galaxy.call("setUserQuota", developerId=f"user-{name}", userQuota={"queueNumber": 0})
    user.call("createQueue", queueName=f"{name}_3")


def test_whether_retention_ends_what_nobody_acked_is_shown_and_copied(user: ThriftClient, name: str) -> None:
    kept = user.call("createQueue", queueName=name, deleteMessageForce=False)
    assert kept["deleteMessageForce"] is False
    assert user.call("getQueueInfo", queueName=kept["queueName"])["deleteMessageForce"] is False
    meta = user.ask("getQueueMeta", kept["queueName"])["queueMeta"]
    copy = f"{meta['queueName']}_copy"
    user.call("copyQueue", queueMeta=meta | {"queueName": copy})
    assert user.call("getQueueInfo", queueName=copy)["deleteMessageForce"] is False
    assert user.call("createQueue", queueName=f"{name}_plain")["deleteMessageForce"] is True


def test_what_was_peeked_is_deleted_for_all_tags_if_nobody_received_it(user: ThriftClient, name: str) -> None:
    queue = user.call("createQueue", queueName=name)["queueName"]
    colour = {"type": "string", "stringValue": "red"}
    user.call("createTag", queueName=queue, tagName="red", attributeName="colour", attributeValue=colour)
    user.call("createTag", queueName=queue, tagName="all")
    ids = [user.call("sendMessage", queueName=queue, messageBody=body)["messageID"] for body in "abcd"]
    by_body = dict(zip("abcd", ids, strict=True))
    got = {
        one["messageBody"]: one
        for one in user.call("receiveMessage", queueName=queue, tagName="all", maxReceiveMessageNumber=3)
    }
    (free,) = set(by_body) - set(got)  # of all tags but `red`, which does not want it
    acked, given_back, leased = sorted(got)
    user.call("deleteMessage", queueName=queue, receiptHandle=got[acked]["receiptHandle"])
    user.call(
        "changeMessageVisibilitySeconds",
        queueName=queue,
        receiptHandle=got[given_back]["receiptHandle"],
        invisibilitySeconds=0,
    )
    entries = [{"receiptHandle": by_body[body]} for body in (acked, given_back, leased, free)] + [
        {"receiptHandle": "none"}
    ]
    told = user.call("deletePeekMessageBatch", queueName=queue, deletePeekMessageBatchEntryList=entries)
    assert told["successful"] == [by_body[free]]
    assert [(one["id"], one["reason"]["errorCode"]) for one in told["failed"]] == [
        (by_body[acked], 1), (by_body[given_back], 1), (by_body[leased], 1), ("none", 11),
    ]  # fmt: skip
    rest = user.call("receiveMessage", queueName=queue)
    assert sorted(one["messageBody"] for one in rest) == sorted(got)
    with pytest.raises(Refused, match="settled"):
        user.call("deletePeekMessage", queueName=queue, receiptHandle=by_body[free])


def test_text_that_the_sdk_damages_changes_nothing(galaxy: Galaxy, queue: str) -> None:
    with pytest.raises((Failed, Refused)):
        send(galaxy, queue, "zwölf", checked=False)
    assert receive(galaxy, queue, wait_s=0) == []
    assert send(galaxy, queue, "ascii")["bodyLength"] == 5
