"""Each developer has a name space of their own: two create `orders`, and neither meets the other's;
with believed key ids and with signed requests, by EMQ's own Python client.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.clients import NotFetched
from tests.conformance.beside import ADMIN_SECRET, beside, new_key
from tests.conformance.cases.native import NativeClient
from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Galaxy, Refused
from tests.conformance.emq.thrift_client import ThriftClient
from tests.conftest import absent
from tests.services import Up

NO_QUEUE, EXISTS, INVALID = 6, 4, 2
_numbers = itertools.count(1)


class Developers:
    """Two developers whose names have a hyphen and a colon where the mode allows it, and an
    administrator.
    """

    def __init__(self, endpoint: str, secrets: dict[str, str]) -> None:
        self.endpoint = endpoint
        self.secrets = secrets
        self.ids = [who for who in secrets if who != "admin"]
        self.clients = {who: Galaxy(endpoint, who, secret) for who, secret in secrets.items()}

    def ask(self, who: str, method: str, **request: Any) -> Any:
        return self.clients[who].call(method, checked=False, **request)

    def code(self, who: str, method: str, **request: Any) -> int | None:
        with pytest.raises(Refused) as refused:
            self.ask(who, method, **request)
        return refused.value.code


@pytest.fixture(scope="module", params=["open", "required"])
def team(
    up: Up | Running, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Developers]:
    """The developers of a service in each mode."""
    try:
        if request.param == "open":
            yield from _team(up.endpoint, {"U:7": "x", "team-b": "x", "admin": "x"})
            return
        with contextmanager(beside)(up, "emq-names", {}, tmp_path_factory) as service:
            yield from _team(
                service.endpoint, dict(new_key(service, who) for who in ("alice", "team-b")) | {"admin": ADMIN_SECRET}
            )
    except NotFetched as error:
        absent(str(error))


def _team(endpoint: str, secrets: dict[str, str]) -> Iterator[Developers]:
    made = Developers(endpoint, secrets)
    yield made
    for client in made.clients.values():
        client.close()


@pytest.fixture
def orders() -> str:
    """A short name that both developers use."""
    return f"orders_{os.getpid()}_{next(_numbers)}"


def bodies(team: Developers, who: str, queue: str) -> list[str]:
    got = team.ask(who, "receiveMessage", queueName=queue, maxReceiveMessageWaitSeconds=5)
    for one in got:
        team.ask(who, "deleteMessage", queueName=queue, receiptHandle=one["receiptHandle"])
    return [one["messageBody"] for one in got]


def test_two_developers_have_queues_of_one_name_and_do_not_meet(team: Developers, orders: str) -> None:
    for who in team.ids:
        assert team.ask(who, "createQueue", queueName=orders)["queueName"] == f"{who}/{orders}"
    for who in team.ids:
        team.ask(who, "sendMessage", queueName=f"{who}/{orders}", messageBody=f"of {who}")
        assert team.ask(who, "getQueueInfo", queueName=f"{who}/{orders}")["queueName"] == f"{who}/{orders}"
        assert team.ask(who, "getQueueInfo", queueName=orders)["queueName"] == f"{who}/{orders}", (
            "the short name is one's own"
        )
        with pytest.raises(Refused) as refused:
            team.ask(who, "createQueue", queueName=orders)
        assert refused.value.code == EXISTS and refused.value.details.endswith(f":{who}/{orders}")
    for who in team.ids:
        assert bodies(team, who, f"{who}/{orders}") == [f"of {who}"]
        assert team.ask(who, "listQueue", queueNamePrefix=f"{who}/{orders}")["queueName"] == [f"{who}/{orders}"]
    first, second = (f"{who}/{orders}" for who in team.ids)
    assert team.ask("admin", "listQueue", queueNamePrefix=orders[:-1])["queueName"] == [first, second]
    team.ask(team.ids[0], "deleteQueue", queueName=first)
    assert team.code("admin", "getQueueInfo", queueName=first) == NO_QUEUE
    team.ask("admin", "sendMessage", queueName=second, messageBody="of admin")
    assert bodies(team, team.ids[1], second) == ["of admin"]


def test_a_developer_is_told_of_own_queues_and_of_granted_ones_by_their_names(team: Developers, orders: str) -> None:
    second, first = team.ids
    for who in team.ids:
        team.ask(who, "createQueue", queueName=orders)
    if "alice" in team.ids:  # open mode knows administrators only
        assert team.ask(first, "listQueue", queueNamePrefix=orders)["queueName"] == [f"{first}/{orders}"]
        assert team.code(first, "getQueueInfo", queueName=f"{second}/{orders}") == NO_QUEUE
        assert team.code(first, "sendMessage", queueName=f"{second}/{orders}", messageBody="m") == NO_QUEUE
    team.ask(second, "setPermission", queueName=f"{second}/{orders}", developerId=first, permission=1)
    team.ask(first, "sendMessage", queueName=f"{second}/{orders}", messageBody="granted")
    assert bodies(team, second, f"{second}/{orders}") == ["granted"]
    thrift = ThriftClient(team.endpoint, "compact", first, team.secrets[first])
    for prefix in (orders, f"{second}/{orders}"):
        (entry,) = thrift.call("queryPrivilegedQueue", queueNamePrefix=prefix)["queueList"]
        assert entry["queueName"] == f"{second}/{orders}"
    thrift.close()
    shown = team.ask(second, "listPermissions", queueName=f"{second}/{orders}")["permissionList"]
    assert shown == {second: 11, first: 1}
    if "alice" in team.ids:
        with pytest.raises(Refused) as refused:
            team.ask(first, "purgeQueue", queueName=f"{second}/{orders}")
        assert refused.value.code == 13 and f"'{second}/{orders}'" in refused.value.details
        assert f"{second}-{orders}" not in refused.value.details


def test_tags_policies_and_dead_letters_have_the_full_names(team: Developers, orders: str) -> None:
    for who in team.ids:
        dead = team.ask(who, "createQueue", queueName=f"{orders}_dead")["queueName"]
        source = team.ask(who, "createQueue", queueName=orders)["queueName"]
        policy = {"dlqName": dead, "maxReceiveTime": 1}
        assert team.ask(who, "setQueueRedrivePolicy", queueName=source, redrivePolicy=policy)["redrivePolicy"] == policy
        assert team.ask(who, "getQueueInfo", queueName=source)["redrivePolicy"] == policy
        assert team.ask(who, "listDeadLetterSourceQueues", dlqName=dead)["sourceQueues"] == [source]
        of_source = {"type": "STRING", "stringValue": source}
        tag = {"tagName": "of_one", "attributeName": "DLQ.sourceQueue", "attributeValue": of_source}
        assert team.ask(who, "createTag", queueName=dead, **tag)["queueName"] == dead
        assert team.ask(who, "getTagInfo", queueName=dead, tagName="of_one")["attributeValue"] == of_source
        team.ask(who, "sendMessage", queueName=source, messageBody=f"of {who}")
        (got,) = team.ask(who, "receiveMessage", queueName=source, maxReceiveMessageWaitSeconds=5)
        team.ask(who, "deadMessage", queueName=source, receiptHandle=got["receiptHandle"])
        (letter,) = team.ask(who, "receiveMessage", queueName=dead, tagName="of_one", maxReceiveMessageWaitSeconds=10)
        assert (letter["messageBody"], letter["attributes"]["sourceQueueName"]) == (f"of {who}", source)
        assert letter["messageAttributes"]["DLQ.sourceQueue"] == of_source


def test_other_dialects_name_the_developer_too(up: Up | Running, orders: str) -> None:
    carol = ThriftClient(up.endpoint, "binary", "carol")
    carol.call("createQueue", queueName=orders)
    native = NativeClient(up.endpoint)
    assert native.queues(f"carol-{orders}") == [f"carol-{orders}"] and native.queues(orders) == []
    native.send(f"carol-{orders}", "natively")
    (got,) = carol.call("receiveMessage", queueName=f"carol/{orders}", maxReceiveMessageWaitSeconds=5)
    assert got["messageBody"] == "natively"
    carol.close()
    native.close()


def test_what_another_dialect_has_made_is_its_owners_and_stays_reachable(up: Up | Running, orders: str) -> None:
    """Also beside a queue of that name in the owner's name space."""
    carol, dave, nobody = (ThriftClient(up.endpoint, "binary", who) for who in ("carol", "dave", "anonymous"))
    made, later = NativeClient(up.endpoint), f"{orders}_later"
    made.create(orders)
    made.send(orders, "plain")
    # It is of who names nobody; carol and dave each have their own.
    for who, client in (("carol", carol), ("dave", dave)):
        assert client.call("createQueue", queueName=orders)["queueName"] == f"{who}/{orders}"
        assert client.call("receiveMessage", queueName=f"{who}/{orders}") == []
    for name in (f"anonymous/{orders}", f"-/{orders}"):
        assert carol.call("getQueueInfo", queueName=name)["queueName"] == f"anonymous/{orders}"
    assert [one["messageBody"] for one in nobody.call("receiveMessage", queueName=f"anonymous/{orders}")] == ["plain"]

    # One that carol made natively is `carol/name`, and no second one may be called so.
    own = NativeClient(up.endpoint)
    own._http.auth = ("carol", "x")
    own.create(later)
    assert carol.call("getQueueInfo", queueName=f"carol/{later}")["queueName"] == f"carol/{later}"
    assert carol.call("listQueue", queueNamePrefix=f"carol/{later}")["queueName"] == [f"carol/{later}"]
    with pytest.raises(Refused) as refused:
        carol.call("createQueue", queueName=later)
    assert (refused.value.code, refused.value.details.rpartition(":")[2]) == (EXISTS, f"carol/{later}")

    # And one that comes to be beside hers is `-/name`: hers stays hers.
    carol.call("sendMessage", queueName=f"carol/{orders}", messageBody="hers")
    made.delete(orders)
    own.create(orders)
    assert carol.call("listQueue", queueNamePrefix=orders)["queueName"] == sorted(
        [f"-/{orders}", f"carol/{orders}", f"carol/{later}", f"dave/{orders}"]
    )
    assert carol.call("getQueueInfo", queueName=f"-/{orders}")["queueName"] == f"-/{orders}"
    assert [one["messageBody"] for one in carol.call("receiveMessage", queueName=f"carol/{orders}")] == ["hers"]
    for client in (carol, dave, nobody):
        client.close()
    for maker in (made, own):
        maker.close()


def test_a_queue_of_somebody_else_is_not_taken_for_ones_own_by_its_name(up: Up | Running, orders: str) -> None:
    carol, maker = ThriftClient(up.endpoint, "binary", "carol"), NativeClient(up.endpoint)
    maker._http.auth = ("dave", "x")
    maker.create(f"carol-{orders}")
    for method, code in (("createQueue", EXISTS), ("getQueueInfo", NO_QUEUE)):
        with pytest.raises(Refused) as refused:
            carol.call(method, queueName=orders if code == EXISTS else f"carol/{orders}")
        assert refused.value.code == code
    assert carol.call("listQueue", queueNamePrefix=f"carol/{orders}")["queueName"] == []
    assert carol.call("listQueue", queueNamePrefix=f"carol-{orders}")["queueName"] == [f"dave/carol-{orders}"]
    carol.close()
    maker.close()


@pytest.mark.parametrize("name", ["a-b", "a/b", "-/b", "x" * 151])
def test_a_short_name_of_a_developer_has_no_hyphen(up: Up | Running, name: str) -> None:
    carol = ThriftClient(up.endpoint, "json", "carol")
    with pytest.raises(Refused) as refused:
        carol.call("createQueue", queueName=name)
    assert refused.value.code == INVALID
    carol.close()


def test_a_copy_is_in_the_name_space_of_its_owner(up: Up | Running, orders: str) -> None:
    carol, dave = (ThriftClient(up.endpoint, "compact", who) for who in ("carol", "dave"))
    source = carol.call("createQueue", queueName=orders)["queueName"]
    meta = carol.ask("getQueueMeta", source)["queueMeta"]
    assert meta["queueName"] == source
    carol.call("copyQueue", queueMeta=meta | {"queueName": f"dave/{orders}"})
    assert dave.ask("getQueueMeta", f"dave/{orders}")["queueMeta"]["queueAttribute"]["owner"] == "dave"
    for name, code in ((f"dave/{orders}", EXISTS), (f"-/{orders}", INVALID), (orders, INVALID)):
        with pytest.raises(Refused) as refused:
            carol.call("copyQueue", queueMeta=meta | {"queueName": name})
        assert refused.value.code == code
    for client in (carol, dave):
        client.close()
