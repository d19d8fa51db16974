"""What a mask hides is in no reply of a look, of whatever dialect: no value, no digest of it, and
no answer that tells whether a guess was right. Who receives gets every byte.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from tests.conformance.beside import ADMIN_SECRET, beside
from tests.conformance.conftest import Running
from tests.conformance.emq.thrift_client import ThriftClient
from tests.conformance.mns.raw import Raw, signed
from tests.services import Up

CARD, MAIL, IBAN, NOTE = "4929000011112222", "ann@secret.example", "DE02120300000000202051", "hush-hush-note"
SECRETS = (CARD, MAIL, IBAN, NOTE)
ORDER = json.dumps({"card": CARD, "customer": {"email": MAIL}, "items": [{"iban": IBAN}], "order": "open-4711"})
OTHERS = (
    f"card={CARD}",
    json.dumps([{"card": int(CARD), "items": [[{"iban": IBAN}], MAIL]}]),
    f'{{"card": "a", "card": "{CARD}"',
)
MASK = ["card", "customer.email", "items.*.iban", "attribute:note"]
ATTRIBUTES = {"note": NOTE, "kind": "retail"}
KEYS = {"shop": "member", "viewer": "member", "sees": "member", "clerk": "member", "night": "operator", "boss": "admin"}


class Stage(NamedTuple):
    """The service, and a client and the secret of each caller."""

    endpoint: str
    clients: dict[str, httpx.Client]
    secrets: dict[str, str]

    def ask(self, who: str, method: str, path: str, body: Any = None, **query: Any) -> httpx.Response:
        return self.clients[who].request(method, f"/v1/queues/{path}", json=body, params=query)

    def done(self, who: str, method: str, path: str, body: Any = None, **query: Any) -> Any:
        reply = self.ask(who, method, path, body, **query)
        assert reply.is_success, reply.text
        return reply.json() if reply.content else None


@pytest.fixture(scope="module")
def stage(up: Up | Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    for service in beside(up, "masks", {"DEFAULT_PARTITIONS": "1"}, tmp_path_factory):
        clients, secrets = dict[str, httpx.Client](), dict[str, str]()
        for who, role in KEYS.items():
            key = {"key_id": who, "principal": who, "role": role}
            made = httpx.post(f"{service.endpoint}/v1/keys", json=key, auth=("admin", ADMIN_SECRET))
            secrets[who] = made.json()["secret"]
            clients[who] = httpx.Client(base_url=service.endpoint, auth=(who, secrets[who]), timeout=60)
        yield Stage(service.endpoint, clients, secrets)
        for client in clients.values():
            client.close()


def new_queue(stage: Stage, name: str, **settings: Any) -> None:
    """A queue of the shop with a mask, in which others look; its dead-letter queue has none."""
    dead = {"fifo": True, "content_dedup": True} if settings else {}
    for made in ({"name": f"{name}-dead", **dead}, {"name": name, "mask": MASK, **settings}):
        policy = {"redrive_policy": {"dead_letter_queue": f"{name}-dead", "max_receive_count": 9}}
        reply = stage.clients["shop"].post("/v1/queues", json={**made, **(policy if made["name"] == name else {})})
        assert reply.status_code == 201, reply.text
        for who, level in (("viewer", "peek"), ("sees", "unmask")):
            stage.done("shop", "PUT", f"{made['name']}/grants/{who}", {"level": level})


def sent(stage: Stage, queue: str, *bodies: str, **more: Any) -> list[str]:
    messages = [{"body": body, "attributes": ATTRIBUTES, **more} for body in bodies]
    return [one["id"] for one in stage.done("shop", "POST", f"{queue}/messages", {"messages": messages})["messages"]]


def leaks(raw: bytes, *bodies: str) -> list[str]:
    """What of the hidden values, and of digests of whole bodies, is in a reply."""
    digests = [
        getattr(hashlib, kind)(body.encode()).hexdigest() for kind in ("md5", "sha1", "sha256") for body in bodies
    ]
    coded = [b64encode(body.encode()).decode()[:40] for body in bodies]
    text = raw.decode("latin-1").lower()
    return [one for one in (*SECRETS, *digests, *coded) if one.lower() in text]


def raw_of(reply: httpx.Response) -> bytes:
    return repr(reply.headers.raw).encode() + reply.content


def looks(stage: Stage, who: str, queue: str, ids: list[str]) -> Iterator[tuple[str, bytes]]:
    """Each look of the native API, EMQ and MNS at the messages of a queue."""
    asked: list[dict[str, Any]] = [{}, {"text": "open"}, {"state": "ready"}, {"attribute": "note"}, {"limit": 1}]
    for query in asked:
        reply = stage.ask(who, "GET", f"{queue}/messages", **query)
        assert reply.is_success, reply.text
        yield f"query {query}", raw_of(reply)
    for one in ids:
        for rest in ("", "/events"):
            yield f"peek{rest}", raw_of(stage.ask(who, "GET", f"{queue}/messages/{one}{rest}"))
        yield "copy", raw_of(stage.ask(who, "POST", f"{queue}/messages/{one}/copy", {}))
    client = ThriftClient(stage.endpoint, "compact", who, stage.secrets[who])
    try:
        for given in ({"receiptHandle": ids[0]}, {"partitionTimeIntervalAndMaxNum": {"partitionId": 0, "maxNum": 50}}):
            answer = client.call("peekMessage", queueName=queue, peekMessageArg=given)
            assert answer, given
            yield "peekMessage", repr(answer).encode()
    finally:
        client.close()
    for path in ("?peekonly=true", "?peekonly=true&numOfMessages=16"):
        target = f"/queues/{queue}/messages{path}"
        found = Raw(stage.endpoint).ask("GET", target, b"", signed(who, stage.secrets[who], "GET", target, {}))
        assert found.status == 200, found.body
        yield f"PeekMessage {path}", found.body


def test_nothing_that_is_hidden_is_in_any_look_and_everything_is_for_who_may(stage: Stage) -> None:
    new_queue(stage, "orders")
    bodies = (ORDER, *OTHERS)
    ids = sent(stage, "orders", *bodies)
    for who in ("viewer", "night"):
        for name, raw in looks(stage, who, "orders", ids if who == "viewer" else ids[:1]):
            assert leaks(raw, *bodies) == [], f"{name} by {who}"
    for who in ("shop", "sees", "boss"):
        seen = b"".join(raw for _, raw in looks(stage, who, "orders", ids[:1]))
        assert all(secret.encode() in seen for secret in SECRETS), who

    found = stage.done("viewer", "GET", f"orders/messages/{ids[0]}")
    assert json.loads(found["body"]) == {
        "card": "***", "customer": {"email": "***"}, "items": [{"iban": "***"}], "order": "open-4711"
    }  # fmt: skip
    assert (found["masked"], found["attributes"]["note"]["value"], found["attributes"]["kind"]["value"]) == (
        True,
        "***",
        "retail",
    )
    assert [stage.done("viewer", "GET", f"orders/messages/{one}")["body"] for one in ids[1::2]] == ["***", "***"]
    assert "masked" not in stage.done("sees", "GET", f"orders/messages/{ids[0]}")
    got = stage.done("night", "POST", "orders/receive", {"max": 1})["messages"]
    assert [one["body"] for one in got] == [ORDER], "a worker gets its bytes"


def found_by(stage: Stage, who: str, queue: str, **query: Any) -> int:
    return len(stage.done(who, "GET", f"{queue}/messages", **query)["messages"])


def test_no_guess_is_answered(stage: Stage) -> None:
    new_queue(stage, "guesses")
    (sent_id,) = sent(stage, "guesses", ORDER)
    for guess in (CARD, CARD[:4], MAIL, IBAN, "***"):
        assert found_by(stage, "sees", "guesses", text=guess) == (guess != "***")
        assert found_by(stage, "viewer", "guesses", text=guess) == (guess == "***")
    assert found_by(stage, "viewer", "guesses", text="OPEN-4711", ignore_case="true") == 1
    for attribute, hits in ((f"note={NOTE}", 0), ("note=***", 1), ("note", 1), ("kind=retail", 1)):
        assert found_by(stage, "viewer", "guesses", attribute=attribute) == hits, attribute
    assert found_by(stage, "sees", "guesses", attribute=f"note={NOTE}") == 1

    # What a copy would be edited to is no guess either, and no digest of it is told.
    for edit in ({"body": ORDER}, {"body": "x"}, {"attributes": ATTRIBUTES}):
        refused = stage.ask("viewer", "POST", f"guesses/messages/{sent_id}/copy", edit)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_authorised")
    reply = stage.ask("night", "POST", f"guesses/messages/{sent_id}/copy", {"body": ORDER})
    assert (reply.status_code, "may not unmask" in reply.json()["detail"]) == (403, True)
    assert "body_md5" not in stage.done("night", "POST", f"guesses/messages/{sent_id}/copy", {})
    assert stage.done("sees", "GET", f"guesses/messages/{sent_id}")["body"] == ORDER


def test_a_dead_letter_is_hidden_as_its_queue_says_and_goes_home_unseen(stage: Stage) -> None:
    new_queue(stage, "dying")
    sent(stage, "dying", ORDER)
    (got,) = stage.done("shop", "POST", "dying/receive", {})["messages"]
    stage.done("shop", "POST", "dying/kill", {"handles": [got["handle"]], "reason": "bad"})
    (letter,) = stage.done("viewer", "GET", "dying-dead/messages")["messages"]
    for name, raw in looks(stage, "viewer", "dying-dead", [letter["id"]]):
        assert leaks(raw, ORDER) == [], name
    assert letter["masked"] and json.loads(letter["body"])["order"] == "open-4711"

    # A copy goes to where all hides it that hides it here, so to no queue of the viewer's own.
    assert stage.clients["viewer"].post("/v1/queues", json={"name": "mine"}).status_code == 201
    away = stage.ask("viewer", "POST", f"dying-dead/messages/{letter['id']}/copy", {"destination": "mine"})
    assert (away.status_code, "copy it to queue 'mine'" in away.json()["detail"]) == (403, True)
    stage.done("shop", "PUT", "dying/grants/clerk", {"level": "send"})
    stage.done("shop", "PUT", "dying-dead/grants/clerk", {"level": "peek"})
    copied = stage.done("clerk", "POST", f"dying-dead/messages/{letter['id']}/copy", {})
    assert stage.done("shop", "GET", f"dying/messages/{copied['id']}")["body"] == ORDER

    for name, mask, status in (("open", [], 403), ("less", MASK[:1], 403), ("as-much", [*MASK, "more"], 200)):
        made = stage.clients["shop"].post("/v1/queues", json={"name": f"dying-{name}", "mask": mask})
        assert made.status_code == 201, made.text
        stage.done("shop", "PUT", f"dying-{name}/grants/clerk", {"level": "send"})
        body = {"destination": f"dying-{name}"}
        assert stage.ask("clerk", "POST", f"dying-dead/messages/{letter['id']}/copy", body).status_code == status, name

    # Who chose a letter by what is hidden from others does not show it to them.
    condition = {"conditions": [{"name": "note", "value": NOTE}]}
    chosen: dict[str, Any] = {"text": CARD, "filter": condition, "destination": "dying-open"}
    task = stage.done("shop", "POST", "dying-dead/redrive", chosen)
    for path in ("/v1/tasks", f"/v1/tasks/{task['id']}", "/v1/queues/dying-dead/redrive"):
        assert leaks(raw_of(stage.clients["night"].get(path))) == [], path
    assert CARD in stage.clients["shop"].get(f"/v1/tasks/{task['id']}").text
    # Nor does a tag that takes what it wants by an attribute that is hidden.
    tag = {"name": "vip", "filter": condition}
    assert stage.ask("night", "POST", "dying/tags", tag).status_code == 403
    assert stage.ask("shop", "POST", "dying/tags", tag).status_code == 201

    # Letters lie there still when no policy leads there any more.
    stage.done("shop", "DELETE", "dying/redrive-policy")
    for path in ("redrive", "redrive/preview"):
        refused = stage.ask("night", "POST", f"dying-dead/{path}", {"text": CARD})
        assert (refused.status_code, "choose them by text" in refused.json()["detail"]) == (403, True), path
        assert stage.ask("night", "POST", f"dying-dead/{path}", {"filter": condition}).status_code == 403
    for path in ("redrive", "redrive/preview"):
        by_id: dict[str, Any] = {"ids": [letter["id"]], "text": CARD}
        assert stage.clients["night"].post(f"/v1/{path}", json=by_id).status_code == 403, path


def test_a_mask_of_the_dead_letter_queue_alone_stays_on_a_letter(stage: Stage) -> None:
    assert stage.clients["shop"].post("/v1/queues", json={"name": "last", "mask": MASK}).status_code == 201
    policy = {"dead_letter_queue": "last", "max_receive_count": 9}
    made = stage.clients["shop"].post("/v1/queues", json={"name": "first", "redrive_policy": policy})
    assert made.status_code == 201, made.text
    sent(stage, "first", ORDER)
    (got,) = stage.done("shop", "POST", "first/receive", {})["messages"]
    stage.done("shop", "POST", "first/kill", {"handles": [got["handle"]]})
    stage.done("shop", "PUT", "last/grants/clerk", {"level": "peek"})
    stage.done("shop", "PUT", "first/grants/clerk", {"level": "send"})
    (letter,) = stage.done("clerk", "GET", "last/messages")["messages"]
    assert letter["masked"]
    home = stage.ask("clerk", "POST", f"last/messages/{letter['id']}/copy", {})
    assert (home.status_code, "copy it to queue 'first'" in home.json()["detail"]) == (403, True)
    assert stage.done("shop", "POST", "last/redrive/preview", {"text": CARD})["moved"] == 1
    assert stage.done("night", "POST", "last/redrive/preview", {})["moved"] == 1


def test_who_may_not_unmask_lifts_no_mask(stage: Stage) -> None:
    new_queue(stage, "lifted")
    for mask in ([], ["other"], [*MASK, "more"]):
        refused = stage.ask("night", "PATCH", "lifted", {"mask": mask, "lease_seconds": 7})
        assert (refused.status_code, "change its mask" in refused.json()["detail"]) == (403, True)
    definitions = {"queues": [{"name": "lifted", "mask": [], "lease_seconds": 7}]}
    assert stage.clients["night"].put("/v1/definitions", json=definitions).status_code == 403
    assert stage.done("shop", "GET", "lifted")["lease_seconds"] == 30
    assert stage.done("night", "PATCH", "lifted", {"mask": MASK, "lease_seconds": 7})["mask"] == MASK
    assert "unmask" not in stage.done("night", "GET", "lifted/rights")["may"]
    assert "unmask" in stage.done("sees", "GET", "lifted/rights")["may"]
    assert stage.ask("shop", "PATCH", "lifted", {"mask": ["$.card"]}).status_code == 400
    (sent_id,) = sent(stage, "lifted", ORDER)
    assert stage.done("viewer", "GET", f"lifted/messages/{sent_id}")["masked"]
    assert stage.done("shop", "PATCH", "lifted", {"mask": []})["mask"] == []
    assert stage.done("viewer", "GET", f"lifted/messages/{sent_id}")["body"] == ORDER


def test_a_right_to_unmask_under_a_tag_opens_what_the_tag_wants(stage: Stage) -> None:
    new_queue(stage, "tagged", fifo=True, content_dedup=True)
    wants = {"conditions": [{"name": "kind", "value": "retail"}]}
    stage.done("shop", "POST", "tagged/tags", {"name": "retail", "filter": wants})
    stage.done("shop", "PUT", "tagged/tags/retail/grants/clerk", {"level": "unmask"})
    stage.done("shop", "PUT", "tagged/grants/clerk", {"level": "peek"})
    (mine,) = sent(stage, "tagged", ORDER, group="g")
    message = {"body": OTHERS[0], "group": "g", "attributes": {"note": NOTE}}
    (other,) = stage.done("shop", "POST", "tagged/messages", {"messages": [message]})["messages"]
    assert stage.done("clerk", "GET", f"tagged/messages/{mine}", tag="retail")["body"] == ORDER
    assert stage.done("clerk", "GET", f"tagged/messages/{mine}")["masked"]
    assert stage.done("clerk", "GET", f"tagged/messages/{other['id']}", tag="retail")["body"] == "***"
    assert [one["body"] for one in stage.done("clerk", "GET", "tagged/messages", tag="retail")["messages"]] == [ORDER]
    for name, raw in looks(stage, "viewer", "tagged", [mine, other["id"]]):
        assert leaks(raw, ORDER, *OTHERS) == [], name
