"""Accounts: the same names in each, nothing of another's without a grant, and bounds for each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
import pytest
from botocore.exceptions import ClientError
from botocore.session import get_session

from tests.conformance.beside import ADMIN_SECRET, beside
from tests.conformance.conftest import Running
from tests.conformance.emq.galaxy import Refused
from tests.conformance.emq.thrift_client import ThriftClient
from tests.conformance.mns.raw import Raw, signed
from tests.services import Up

A, B = "111122223333", "444455556666"


class Team(NamedTuple):
    """A service, and the keys of two accounts and of the default one."""

    endpoint: str
    secrets: dict[str, str]
    clients: dict[str, Any]

    def http(self, key_id: str) -> httpx.Client:
        return httpx.Client(base_url=self.endpoint, auth=(key_id, self.secrets[key_id]), timeout=60)

    def ask(self, key_id: str, method: str, path: str, body: Any = None, status: int | None = None) -> Any:
        with self.http(key_id) as client:
            reply = client.request(method, path, json=body)
        assert reply.status_code == status if status else reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def sqs(self, key_id: str) -> Any:
        if key_id not in self.clients:
            self.clients[key_id] = get_session().create_client(
                "sqs",
                "us-east-1",
                endpoint_url=self.endpoint,
                aws_access_key_id=key_id,
                aws_secret_access_key=self.secrets[key_id],
            )
        return self.clients[key_id]

    def emq(self, key_id: str, method: str, **request: Any) -> Any:
        client = ThriftClient(self.endpoint, "compact", key_id, self.secrets[key_id])
        try:
            return client.call(method, **request)
        finally:
            client.close()


@pytest.fixture(scope="module")
def team(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    settings = {"DEFAULT_PARTITIONS": "1"}
    with contextmanager(beside)(up, "accounts", settings, tmp_path_factory) as service:
        team = Team(service.endpoint, {"admin": ADMIN_SECRET}, {})
        for key_id, principal, role in (
            ("alice", f"{A}.alice", "admin"), ("bob", f"{B}.bob", "admin"), ("carol", "carol", "operator"),
        ):  # fmt: skip
            body = {"key_id": key_id, "principal": principal, "role": role}
            team.secrets[key_id] = team.ask("admin", "POST", "/v1/keys", body)["secret"]
        # The same names everywhere, made natively.
        for key_id in ("alice", "bob", "carol"):
            team.ask(key_id, "POST", "/v1/queues", {"name": "dead", "partitions": 1})
            policy = {"dead_letter_queue": "dead", "max_receive_count": 1}
            team.ask(key_id, "POST", "/v1/queues", {"name": "orders", "partitions": 1, "redrive_policy": policy})
        yield team
        for client in team.clients.values():
            client.close()


def test_each_account_has_its_own_queue_of_a_name_in_every_dialect(team: Team) -> None:
    for key_id, account in (("alice", A), ("bob", B), ("carol", "000000000000")):
        team.ask(key_id, "POST", "/v1/queues/orders/messages", {"messages": [{"body": f"native of {key_id}"}]})
        sqs = team.sqs(key_id)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        assert url == f"{team.endpoint}/{account}/orders"
        sqs.send_message(QueueUrl=url, MessageBody=f"sqs of {key_id}")
        assert team.emq(key_id, "getQueueInfo", queueName="orders")["queueName"] == f"{key_id}/orders"
        team.emq(key_id, "sendMessage", queueName=f"{key_id}/orders", messageBody=f"emq of {key_id}")
        body = f"<Message><MessageBody>mns of {key_id}</MessageBody></Message>".encode()
        target = "/queues/orders/messages"
        reply = Raw(team.endpoint).ask("POST", target, body, signed(key_id, team.secrets[key_id], "POST", target, {}))
        assert reply.status == 201, reply.body
    for key_id in ("alice", "bob", "carol"):
        found: list[Any] = []
        while len(found) < 4:
            found += team.sqs(key_id).receive_message(
                QueueUrl=team.sqs(key_id).get_queue_url(QueueName="orders")["QueueUrl"],
                MaxNumberOfMessages=10,
                WaitTimeSeconds=5,
            )["Messages"]
        assert sorted(one["Body"] for one in found) == [
            f"{dialect} of {key_id}" for dialect in ("emq", "mns", "native", "sqs")
        ]


def test_names_are_shown_without_the_account(team: Team) -> None:
    for key_id in ("alice", "bob", "carol"):
        shown = team.ask(key_id, "GET", "/v1/queues/orders")
        assert (shown["name"], shown["owner"]) == ("orders", key_id)
        assert shown["redrive_policy"]["dead_letter_queue"] == "dead"
        assert team.ask(key_id, "GET", "/v1/queues/dead")["source_queues"] == ["orders"]
        assert {"dead", "orders"} <= set(team.ask(key_id, "GET", "/v1/queues")["queues"])
        assert not any(A in name or B in name for name in team.ask(key_id, "GET", "/v1/queues?limit=1000")["queues"])
    assert team.ask("admin", "GET", f"/v1/queues?prefix={A}.o")["queues"] == [f"{A}.orders"]
    # The service's administrator may do everything, by the names with the account.
    assert team.ask("admin", "GET", f"/v1/queues/{A}.orders")["owner"] == f"{A}.alice"


@pytest.mark.parametrize("name", [f"{A}.orders", "000000000000.orders"])
def test_another_account_is_told_that_there_is_no_such_queue(team: Team, name: str) -> None:
    team.ask("bob", "GET", f"/v1/queues/{name}", status=404)
    team.ask("bob", "POST", f"/v1/queues/{name}/messages", {"messages": [{"body": "x"}]}, status=404)
    team.ask("bob", "DELETE", f"/v1/queues/{name}", status=404)
    account = name.partition(".")[0]
    with pytest.raises(ClientError, match="NonExistentQueue"):
        team.sqs("bob").send_message(QueueUrl=f"{team.endpoint}/{account}/orders", MessageBody="x")
    with pytest.raises(Refused):
        team.emq("bob", "getQueueInfo", queueName=name)


def test_the_role_of_a_key_ends_at_its_account(team: Team) -> None:
    team.ask("carol", "GET", f"/v1/queues/{A}.orders", status=404)
    assert team.ask("carol", "GET", f"/v1/queues?prefix={A}.")["queues"] == []
    team.ask("alice", "POST", "/v1/queues", {"name": f"{B}.mine"}, status=403)
    team.ask("carol", "POST", "/v1/queues", {"name": f"{B}.mine"}, status=403)
    team.ask("alice", "POST", "/v1/queues/orders/copy", {"target": f"{B}.mine"}, status=403)
    # Nor in an account that nobody has yet; the service's administrator may.
    team.ask("carol", "POST", "/v1/queues", {"name": "333333333333.of_nobody", "partitions": 1}, status=403)
    team.ask("admin", "POST", "/v1/queues", {"name": "333333333333.of_nobody", "partitions": 1})
    assert "333333333333.of_nobody" in team.ask("admin", "GET", "/v1/queues?prefix=333333333333.")["queues"]
    team.ask("alice", "POST", "/v1/queues", {"name": "333333333333.of_nobody"}, status=403)


def test_an_account_manages_its_own_keys_and_users(team: Team) -> None:
    made = team.ask("alice", "POST", "/v1/keys", {"key_id": "dave", "principal": "dave", "role": "reader"})
    dave = made["key_id"]
    assert dave == f"{A}.dave"
    team.secrets[dave] = made["secret"]
    assert [key["principal"] for key in team.ask("alice", "GET", "/v1/keys")["keys"]] == ["alice", "dave"]
    assert [key["principal"] for key in team.ask("bob", "GET", "/v1/keys")["keys"]] == ["bob"]
    assert {f"{A}.dave", "carol"} <= {key["principal"] for key in team.ask("admin", "GET", "/v1/keys")["keys"]}
    assert team.ask(dave, "GET", "/v1/queues/orders")["name"] == "orders"
    team.ask(dave, "GET", f"/v1/queues/{B}.orders", status=404)
    for method, path, body in (
        ("PATCH", "/v1/keys/dave", {"disabled": True}), ("POST", "/v1/keys/dave/rotate", None),
        ("DELETE", "/v1/keys/dave", None),
    ):  # fmt: skip
        team.ask("bob", method, path, body, status=404)
    for principal in (f"{B}.eve", "000000000000.eve"):
        team.ask("alice", "POST", "/v1/keys", {"key_id": "eve", "principal": principal}, status=403)
    # An account's number as a principal's name makes nobody of another account.
    made = team.ask("alice", "POST", "/v1/keys", {"key_id": "odd", "principal": B})
    team.secrets[made["key_id"]] = made["secret"]
    team.ask(made["key_id"], "GET", f"/v1/queues/{B}.orders", status=404)
    assert team.ask("admin", "GET", "/v1/keys")["keys"][-1]["principal"] == f"{A}.{B}"
    team.ask("alice", "DELETE", "/v1/keys/odd")
    team.ask("alice", "PUT", "/v1/users/dave/quota", {"read_qps": 7, "write_qps": 0, "queues": 0})
    assert team.ask(dave, "GET", "/v1/users/dave")["read_qps"] == 7
    team.ask("alice", "GET", f"/v1/users/{B}.bob", status=403)
    team.ask("alice", "PUT", f"/v1/users/{A}/quota", {"read_qps": 0, "write_qps": 0, "queues": 0}, status=403)
    team.ask("alice", "DELETE", "/v1/keys/dave")
    with team.http(dave) as client:
        assert client.get("/v1/queues").status_code == 401


def test_a_grant_may_name_a_principal_of_another_account_or_all_of_one(team: Team) -> None:
    team.ask("alice", "POST", "/v1/queues", {"name": "open", "partitions": 1})
    team.ask("alice", "PUT", f"/v1/queues/open/grants/{B}.bob", {"level": "send"})
    team.ask("bob", "POST", f"/v1/queues/{A}.open/messages", {"messages": [{"body": "x"}]})
    team.sqs("bob").send_message(QueueUrl=f"{team.endpoint}/{A}/open", MessageBody="y")
    team.ask("bob", "POST", f"/v1/queues/{A}.open/receive", {"max": 1}, status=403)
    (shared,) = team.ask("bob", "GET", "/v1/shared-queues")["queues"]
    assert (shared["name"], shared["owner"]) == (f"{A}.open", f"{A}.alice")
    assert team.ask("alice", "GET", "/v1/queues/open/grants")["grants"] == [{"principal": f"{B}.bob", "level": "send"}]
    team.ask("alice", "DELETE", f"/v1/queues/open/grants/{B}.bob")
    team.ask("bob", "POST", f"/v1/queues/{A}.open/messages", {"messages": [{"body": "x"}]}, status=404)
    # By SQS's policies: the account as a whole.
    sqs = team.sqs("alice")
    url = sqs.get_queue_url(QueueName="open")["QueueUrl"]
    sqs.add_permission(QueueUrl=url, Label="all", AWSAccountIds=[B], Actions=["SendMessage"])
    team.sqs("bob").send_message(QueueUrl=f"{team.endpoint}/{A}/open", MessageBody="z")
    team.ask("carol", "POST", f"/v1/queues/{A}.open/messages", {"messages": [{"body": "x"}]}, status=404)
    sqs.remove_permission(QueueUrl=url, Label="all")
    with pytest.raises(ClientError, match="NonExistentQueue"):
        team.sqs("bob").send_message(QueueUrl=f"{team.endpoint}/{A}/open", MessageBody="z")


def test_dead_letters_stay_in_the_account_and_go_home(team: Team) -> None:
    for key_id in ("alice", "bob"):
        team.ask(key_id, "POST", "/v1/queues/orders/messages", {"messages": [{"body": f"dies of {key_id}"}]})
        (one,) = team.ask(
            key_id, "POST", "/v1/queues/orders/receive", {"max": 1, "lease_seconds": 30, "wait_seconds": 5}
        )["messages"]
        team.ask(key_id, "POST", "/v1/queues/orders/kill", {"handles": [one["handle"]]})
    for key_id in ("alice", "bob"):
        (letter,) = team.ask(
            key_id, "POST", "/v1/queues/dead/receive", {"max": 10, "lease_seconds": 0, "wait_seconds": 5}
        )["messages"]
        assert letter["body"] == f"dies of {key_id}"
        task = team.ask(key_id, "POST", "/v1/queues/dead/redrive", {})
        assert task["source"] == "dead"
        until = time.monotonic() + 20
        while (found := team.ask(key_id, "GET", f"/v1/tasks/{task['id']}"))[
            "status"
        ] == "running" and time.monotonic() < until:
            time.sleep(0.2)
        assert (found["moved"], found["failed"]) == (1, 0)
        (home,) = team.ask(key_id, "POST", "/v1/queues/orders/receive", {"max": 10, "wait_seconds": 5})["messages"]
        assert home["body"] == f"dies of {key_id}"
        team.ask(key_id, "POST", "/v1/queues/orders/ack", {"handles": [home["handle"]]})
        others = "bob" if key_id == "alice" else "alice"
        team.ask(others, "GET", f"/v1/tasks/{task['id']}", status=404)


def test_transactions_and_their_producers_are_of_the_account(team: Team) -> None:
    body = {"producer_group": "tills", "messages": [{"body": "half"}], "check_immunity_seconds": 0}
    made = team.ask("alice", "POST", "/v1/queues/orders/transactions", body)
    assert (made["queue"], made["producer_group"], made["principal"]) == ("orders", "tills", "alice")
    asked = team.ask("bob", "POST", "/v1/producer-groups/tills/checks", {"max": 10, "wait_seconds": 1})
    assert asked["checks"] == []
    team.ask("bob", "POST", f"/v1/transactions/{made['id']}/commit", status=404)
    team.ask("alice", "POST", f"/v1/transactions/{made['id']}/rollback")


def test_an_account_has_bounds_of_its_own(team: Team) -> None:
    there = len(team.ask("bob", "GET", "/v1/queues")["queues"])
    team.ask("admin", "PUT", f"/v1/users/{B}/quota", {"read_qps": 0, "write_qps": 5, "queues": there + 1})
    team.ask("bob", "POST", "/v1/queues", {"name": "last", "partitions": 1})
    refused = team.ask("bob", "POST", "/v1/queues", {"name": "more", "partitions": 1}, status=429)
    assert f"account '{B}' may have {there + 1} queues" in refused["detail"]
    message = {"messages": [{"body": "x"}]}
    with team.http("bob") as client:
        statuses = [client.post("/v1/queues/last/messages", json=message).status_code for _ in range(20)]
    assert set(statuses) == {200, 429}
    assert team.ask("bob", "GET", f"/v1/users/{B}")["queues"] == there + 1
    with team.http("alice") as client:
        for _ in range(20):
            assert client.post("/v1/queues/open/messages", json=message).status_code < 300
    bounds = {"read_qps": 0, "write_qps": 0, "queues": 0, "partitions": there + 3}
    assert team.ask("admin", "PUT", f"/v1/users/{B}/quota", bounds)["used"]["partitions"] == there + 1
    refused = team.ask("bob", "POST", "/v1/queues", {"name": "wide", "partitions": 3}, status=429)
    assert f"account '{B}' may have {there + 3} partitions of queues" in refused["detail"]
    team.ask("bob", "POST", "/v1/queues", {"name": "wide", "partitions": 2})
    team.ask("admin", "PUT", f"/v1/users/{B}/quota", {**bounds, "partitions": 0})
