"""What makes a queue but its messages: shown, copied, seen by those it is shared with. In all three
protocols: the Python SDK does not have these methods.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Refused
from tests.conformance.emq.thrift_client import PROTOCOLS, ThriftClient
from tests.services import Up

COLOUR = {"attributeName": "colour", "attributeValue": {"type": "string", "stringValue": "red"}}
SEVERAL = {
    "attributes": {"a": {"type": "string", "stringValue": "1"}, "b": {"type": "empty"}},
    "logicalOperator": 1,
}


@pytest.fixture(params=list(PROTOCOLS))
def thrift(up: Up | Running, request: pytest.FixtureRequest) -> Iterator[ThriftClient]:
    """A client whose key id is `mover`."""
    client = ThriftClient(up.endpoint, request.param, "mover")
    yield client
    client.close()


def full(thrift: ThriftClient, name: str, **more: Any) -> str:
    made: str = thrift.call("createQueue", queueName=name, **more)["queueName"]
    return made


def meta_of(thrift: ThriftClient, queue: str) -> dict[str, Any]:
    found: dict[str, Any] = thrift.ask("getQueueMeta", queue)["queueMeta"]
    return found


def _lasting(tag: dict[str, Any]) -> dict[str, Any]:
    """What a copy of a tag has too."""
    return {
        field: value for field, value in tag.items() if field not in {"createTimestamp", "startTimestamp", "queueName"}
    }


def test_a_copy_has_all_but_the_messages(thrift: ThriftClient, name: str) -> None:
    dead = full(thrift, f"{name}_dead")
    source = full(
        thrift,
        name,
        queueAttribute={"delaySeconds": 7, "messageRetentionSeconds": 3600, "userAttributes": {"team": "a"}},
        queueQuota={"throughput": {"readQps": 70, "writeQps": 80}},
        redrivePolicy={"dlqName": dead, "maxReceiveTime": 3},
        defaultTagName="main",
    )
    thrift.call("createTag", queueName=source, tagName="red", readQPSQuota=9, **COLOUR)
    thrift.call("createTag", queueName=source, tagName="several", attributesFilter=SEVERAL, userAttributes={"k": "v"})
    thrift.call("setPermission", queueName=source, developerId="reader", permission=4)
    thrift.call("sendMessage", queueName=source, messageBody="not copied", delaySeconds=0)
    meta = meta_of(thrift, source)
    assert meta["permissionList"] == {"reader": 4}
    assert (meta["queueAttribute"]["delaySeconds"], meta["queueQuota"]["throughput"]["readQps"]) == (7, 70)

    copy = f"mover/{name}_copy"
    thrift.call("copyQueue", queueMeta=meta | {"queueName": copy})
    copied = meta_of(thrift, copy)
    times = {"createTimestamp", "lastModifiedTimestamp", "queueName", "queueTagMap"}
    assert {k: v for k, v in copied.items() if k not in times} == {k: v for k, v in meta.items() if k not in times}
    assert {tag: _lasting(shown) for tag, shown in copied["queueTagMap"].items()} == {
        tag: _lasting(shown) for tag, shown in meta["queueTagMap"].items()
    }
    assert thrift.call("getQueueInfo", queueName=copy)["queueState"]["approximateMessageNumber"] == 0
    thrift.call(
        "sendMessage",
        queueName=copy,
        messageBody="x",
        delaySeconds=0,
        messageAttributes={"colour": COLOUR["attributeValue"]},
    )
    assert [one["messageBody"] for one in thrift.call("receiveMessage", queueName=copy, tagName="red")] == ["x"]
    assert thrift.call("receiveMessage", queueName=copy, tagName="several") == []


def test_a_copy_for_somebody_else_is_theirs(thrift: ThriftClient, name: str) -> None:
    meta = meta_of(thrift, full(thrift, name))
    thrift.call("copyQueue", queueMeta=meta | {"queueName": f"CI77/{name}_b"})
    assert meta_of(thrift, f"CI77/{name}_b")["queueName"] == f"CI77/{name}_b"
    assert f"CI77/{name}_b" in thrift.call("listQueue", queueNamePrefix=name)["queueName"]


def test_what_is_no_copy_is_refused_and_makes_nothing(thrift: ThriftClient, name: str) -> None:
    source = full(thrift, name)
    thrift.call("createTag", queueName=source, tagName="several", attributesFilter=SEVERAL)
    meta = meta_of(thrift, source)
    tag = meta["queueTagMap"]["several"]
    as_before = {k: v for k, v in tag.items() if k != "attributesFilter"}
    for given, code in ((meta, 4), (meta | {"queueName": f"{name}_b"}, 2)):
        with pytest.raises(Refused) as refused:
            thrift.call("copyQueue", queueMeta=given)
        assert refused.value.code == code
    for tags in ({"several": as_before}, {"several": tag | {"tagId": 0}}, {"a": tag, "b": tag | {"tagName": "b"}}):
        with pytest.raises(Refused) as refused:
            thrift.call("copyQueue", queueMeta=meta | {"queueName": f"mover/{name}_b", "queueTagMap": tags})
        assert refused.value.code == 2
    assert thrift.call("listQueue", queueNamePrefix=f"{name}_b")["queueName"] == []


def test_who_was_given_a_permission_sees_the_queue_and_its_counts(
    thrift: ThriftClient, up: Up | Running, name: str
) -> None:
    source, other = full(thrift, name), full(thrift, f"{name}_other")
    for body in "ab":
        thrift.call("sendMessage", queueName=source, messageBody=body)
    grantee = ThriftClient(up.endpoint, "binary", f"grantee_{name}")
    assert grantee.call("queryPrivilegedQueue", queueNamePrefix="")["queueList"] == []
    thrift.call("setPermission", queueName=source, developerId=f"grantee_{name}", permission=1)
    (seen,) = grantee.call("queryPrivilegedQueue", queueNamePrefix=source[:-1])["queueList"]
    assert (seen["queueName"], seen["approximateMessageNumber"]) == (source, 2)
    assert grantee.call("queryPrivilegedQueue", queueNamePrefix="no_such")["queueList"] == []
    assert other not in [one["queueName"] for one in thrift.call("queryPrivilegedQueue")["queueList"]]
    grantee.close()


def test_without_keys_everybody_is_an_administrator(thrift: ThriftClient) -> None:
    assert thrift.ask("verifyEMQAdmin") == {"prefix": "mover"}
    assert thrift.call("verifyEMQAdminRole", granteeId="CI1") == {"isAdminRole": True}
