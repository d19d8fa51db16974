"""Every operation of every dialect by everybody: owner, each level, each role, a stranger, nobody,
keys that count no more, and each role of another account. One table says what should become of each
request; it holds in the default account, and in another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
import pytest

from facade.dialects.rocketmq.actions import ACTIONS as ROCKETMQ_ACTIONS
from facade.dialects.rocketmq.actions import RECEIVE
from facade.dialects.sqs.actions import ACTIONS as SQS_ACTIONS
from facade.programs.stack.processes.ports import free_port
from schemas.vocabulary import Level
from tests.conformance.beside import ADMIN_SECRET, beside
from tests.conformance.conftest import Running
from tests.conformance.emq.test_permissions import METHODS
from tests.conformance.mns.test_permissions import OPERATIONS as MNS_OPERATIONS
from tests.conformance.rights import speak, table
from tests.conformance.rights.table import CALLERS, FOREIGN, FOREIGN_ADMIN, Caller, Needs
from tests.services import Up

DIALECTS: dict[str, tuple[Needs, set[str]]] = {
    "native": (table.NATIVE, set(table.NATIVE)),
    "sqs": (table.SQS, set(SQS_ACTIONS)),
    "emq": (table.EMQ, set(METHODS)),
    "mns": (table.MNS, set(MNS_OPERATIONS)),
    "rocketmq": (table.ROCKETMQ, {*ROCKETMQ_ACTIONS, RECEIVE}),
}


ACCOUNT, OTHER = "111122223333", "444455556666"


class Stage(NamedTuple):
    """The service, everybody's credentials, and the account of the queues ("" = the default)."""

    account: str
    callers: tuple[Caller, ...]
    admin: httpx.Client
    credentials: dict[str, speak.Credentials]
    speakers: dict[str, Any]

    def before(self, dialect: str, operation: str, queue: str) -> None:
        """What the owner does, so that an operation has something to be done to."""
        if operation == "DeleteTag":
            self.done("POST", f"/v1/queues/{queue}/tags", {"name": "gone"})
        elif operation in ("deleteQueueAlertPolicy", "deleteTagAlertPolicy"):
            self.speakers[dialect].ask(self.credentials["owner"], operation.replace("delete", "add"), queue)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """What the administrator does."""
        reply = self.admin.request(method, path, json=body)
        assert reply.status_code < 300 or reply.status_code == 409, reply.text
        return reply.json() if reply.content else None

    def called(self, caller: Caller, dialect: str, queue: str) -> str:
        """What a caller of a dialect calls a queue of the account. URLs of SQS always have it."""
        if caller.is_foreign or (dialect == "sqs" and self.account):
            return f"{self.account or '000000000000'}.{queue}"
        return queue

    def new_queue(self, name: str) -> None:
        """The owner's queue, with a level for whoever has one."""
        shop = self.credentials["owner"]
        policy = {} if name == "dead" else {"redrive_policy": {"dead_letter_queue": "dead", "max_receive_count": 9}}
        body = {"name": name, "partitions": 1, **policy}
        reply = self.admin.post("/v1/queues", json=body, auth=(shop.key_id, shop.secret))
        assert reply.status_code == 201, reply.text
        for caller in CALLERS:
            if caller.level != Level.NONE:
                self.done("PUT", f"/v1/queues/{name}/grants/{caller.principal}", {"level": caller.level})


@pytest.fixture(scope="module", params=["", ACCOUNT], ids=["default account", "another account"])
def stage(
    up: Up | Running, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    port, account = free_port(), request.param
    settings = {"ROCKETMQ_PORT": str(port), "DEFAULT_PARTITIONS": "1"}
    with contextmanager(beside)(up, f"matrix{account[:4]}", settings, tmp_path_factory) as service:
        root = httpx.Client(base_url=service.endpoint, auth=("admin", ADMIN_SECRET), timeout=60)
        admin = _admin_of(account, root) if account else root
        endpoint = service.endpoint
        speakers: dict[str, Any] = {
            "native": speak.Native(endpoint),
            "sqs": speak.Sqs(endpoint),
            "emq": speak.Emq(endpoint),
            "mns": speak.Mns(endpoint),
            "rocketmq": speak.Rocketmq(f"127.0.0.1:{port}"),
        }
        # The default account's callers on a queue of another, and another's on one of the default.
        callers = (*CALLERS, *FOREIGN, *(() if account else (FOREIGN_ADMIN,)))
        stage = Stage(account, callers, admin, {}, speakers)
        for number, caller in enumerate(callers):
            stage.credentials[caller.name] = _credentials(stage, root, f"k{number}", caller)
        time.sleep(1.2)  # one of the keys expires
        stage.new_queue("dead")
        for caller in CALLERS:
            if caller.level != Level.NONE:
                stage.done("PUT", f"/v1/queues/dead/grants/{caller.principal}", {"level": "send"})
        yield stage
        admin.close()
        root.close()
        for speaker in speakers.values():
            speaker.close()


def _admin_of(account: str, root: httpx.Client) -> httpx.Client:
    """An administrator of an account, which is made by this."""
    reply = root.post("/v1/keys", json={"key_id": "chief", "principal": f"{account}.chief", "role": "admin"})
    return httpx.Client(base_url=root.base_url, auth=("chief", reply.json()["secret"]), timeout=60)


def _credentials(stage: Stage, root: httpx.Client, key_id: str, caller: Caller) -> speak.Credentials:
    """A key, and what becomes of it. Those of an account are made by its administrator."""
    if caller.is_foreign:
        principal = caller.principal if stage.account else f"{OTHER}.{caller.principal}"
        made = root.post("/v1/keys", json={"key_id": key_id, "principal": principal, "role": caller.role})
        return speak.Credentials(key_id, made.json()["secret"])
    expires_at_ms = int(time.time() * 1000) + 1_000 if caller.key == "expired" else 0
    body = {"key_id": key_id, "principal": caller.principal, "role": caller.role, "expires_at_ms": expires_at_ms}
    made = stage.done("POST", "/v1/keys", body)
    key_id, secret = made["key_id"], made["secret"]
    if caller.key == "revoked":
        stage.done("DELETE", f"/v1/keys/{key_id}")
    elif caller.key == "disabled":
        stage.done("PATCH", f"/v1/keys/{key_id}", {"disabled": True})
    elif caller.key == "rotated":
        stage.done("POST", f"/v1/keys/{key_id}/rotate", {"grace_seconds": 0})
    elif caller.key == "wrong":
        secret = "another secret"
    return speak.Credentials(key_id, secret, anonymous=caller.key == "anonymous")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_table_has_every_operation(dialect: str) -> None:
    needs, operations = DIALECTS[dialect]
    assert set(needs) == operations


@pytest.mark.long
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_everybody_may_do_what_the_table_says_and_nothing_else(stage: Stage, dialect: str) -> None:
    needs, _ = DIALECTS[dialect]
    queue = f"of-{dialect}"
    stage.new_queue(queue)
    ask: Callable[[speak.Credentials, str, str], table.Outcome] = stage.speakers[dialect].ask
    wrong, asked = [], 0
    for operation, verbs in needs.items():
        for caller in stage.callers:
            stage.before(dialect, operation, queue)
            called = stage.called(caller, dialect, queue)
            found, expected = ask(stage.credentials[caller.name], operation, called), caller.expected(verbs)
            asked += 1
            if found != expected:
                wrong.append(f"{operation} by {caller.name}: {found}, should be {expected}")
            if found == table.Outcome.LET_IN and operation in ("delete_queue", "DeleteQueue", "deleteQueue"):
                stage.new_queue(queue)
    assert wrong == []
    assert asked == len(needs) * len(stage.callers)
