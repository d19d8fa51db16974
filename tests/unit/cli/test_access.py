"""`leaseway key`, `user`, `alert` and `tx`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.service import Cli


def test_a_key_is_made_changed_rotated_and_deleted(cli: Cli) -> None:
    cli.service.on("POST /v1/keys", (201, {"key_id": "k", "secret": "s"}))
    cli.service.on("PATCH /v1/keys/k", (200, {"key_id": "k", "disabled": True}))
    cli.service.on("POST /v1/keys/k/rotate", (200, {"key_id": "k", "secret": "t"}))
    cli.service.on("DELETE /v1/keys/k", (204, None))

    made = cli("key", "create", "k", "--principal", "shop", "--role", "reader", "--expires", "2026-11-23", "-o", "json")
    cli("key", "set", "k", "--disable")
    cli("key", "set", "k", "--enable", "--expires", "0")
    cli("key", "rotate", "k", "--grace-seconds", "60")
    cli("key", "rotate", "k")
    cli("key", "rm", "k", "--yes")

    assert made.json == {"key_id": "k", "secret": "s"}
    assert cli.service.asked == [
        ("POST", "/v1/keys", {"key_id": "k", "principal": "shop", "role": "reader", "expires_at_ms": 1795392000000}),
        ("PATCH", "/v1/keys/k", {"disabled": True}),
        ("PATCH", "/v1/keys/k", {"expires_at_ms": 0, "disabled": False}),
        ("POST", "/v1/keys/k/rotate", {"grace_seconds": 60.0}),
        ("POST", "/v1/keys/k/rotate", {}),
        ("DELETE", "/v1/keys/k", None),
    ]


def test_keys_are_listed_without_secrets(cli: Cli) -> None:
    key = {"key_id": "k", "principal": "shop", "role": "member", "disabled": False, "expires_at_ms": 0}
    cli.service.on("GET /v1/keys", (200, {"keys": [key]}))

    assert [line.split() for line in cli("key", "ls").out.splitlines()] == [
        list(key),
        ["k", "shop", "member", "false", "0"],
    ]


def test_the_audit_is_listed_page_by_page(cli: Cli) -> None:
    record = {
        "at_ms": 1, "principal": "shop", "key_id": "k", "peer": "10.0.0.1", "operation": "native.purge", "queue": "q",
        "tag": "", "subject": "", "outcome": "done", "status": 204, "error": "",
    }  # fmt: skip
    page = {"records": [{"id": "w-2", **record}], "next": "7", "scanned": 20_000, "cut": "records"}
    cli.service.on("GET /v1/audit", (200, page), (200, {**page, "records": [], "next": None}))

    ran = cli("audit", "ls", "--queue", "q", "--verb", "purge", "--since", "2026-11-23", "-o", "name")

    assert ran.out.split() == ["w-2"]
    asked = "/v1/audit?queue=q&verb=purge&from=1795392000000"
    assert [path for _, path, _ in cli.service.asked] == [f"{asked}&limit=100", f"{asked}&cursor=7&limit=99"]
    assert cli("audit", "ls", "--verb", "nothing").code == 2


@pytest.mark.parametrize(
    ("part", "option", "field"), [("contacts", "--email", "email"), ("quota", "--queues", "queues")]
)
def test_what_is_not_named_of_a_user_stays(part: str, option: str, field: str, cli: Cli) -> None:
    contacts = {"display_name": "Shop", "email": "a@b", "phone": "1", "webhook": ""}
    quota = {"read_qps": 1, "write_qps": 2, "queues": 3, "partitions": 4, "daily_bytes": 5, "waits": 6}
    cli.service.on(
        "GET /v1/users/shop", (200, {"name": "shop", **contacts, **quota, "webhook_secret": "x", "used": {}})
    )
    cli.service.on(f"PUT /v1/users/shop/{part}", (200, {"name": "shop"}))

    assert cli("user", part, "shop", option, "0").code == 0

    before: dict[str, Any] = contacts if part == "contacts" else quota
    assert cli.service.asked[1][2] == {**before, field: "0" if part == "contacts" else 0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["key", "set", "k"], "name what to change: --role"),
        (["key", "create", "k"], "Missing option '--principal'"),
        (["key", "create", "k", "--principal", "p", "--role", "king"], "'king' is not one of 'member', 'reader'"),
        (["key", "rm", "k"], "delete access key 'k'? There is no terminal"),
        (["user", "quota", "shop"], "name what to change: --read-qps"),
        (["user", "contacts", "shop"], "name what to change: --display-name"),
        (["alert", "create", "q", "--subject", "x"], "'x' is not one of 'send_request'"),
        (["alert", "rm", "q", "a"], "delete alert policy 'a' of queue 'q'? There is no terminal"),
        (["tx", "ls", "q", "--status", "half"], "'half' is not one of 'open'"),
        (["tx", "prepare", "q", "--producer-group", "g"], "give a BODY, --file FILE"),
    ],
)
def test_a_mistake_is_named_before_anything_is_asked(arguments: list[str], said: str, cli: Cli) -> None:
    ran = cli(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert cli.service.asked == []


def test_levels_are_given_listed_and_taken_away(cli: Cli) -> None:
    cli.service.on("PUT /v1/queues/q/grants/billing", (200, {"principal": "billing", "level": "use"}))
    cli.service.on("PUT /v1/queues/q/tags/t/grants/billing", (200, {"principal": "billing", "level": "receive"}))
    cli.service.on("GET /v1/queues/q/grants", (200, {"grants": [{"principal": "billing", "level": "use"}]}))
    cli.service.on("DELETE /v1/queues/q/grants/billing", (204, None))

    assert cli("grant", "set", "q", "billing", "use", "-o", "name").out == "billing\n"
    assert cli("grant", "set", "q", "billing", "receive", "--tag", "t").code == 0
    assert [line.split() for line in cli("grant", "ls", "q").out.splitlines()] == [
        ["principal", "level"],
        ["billing", "use"],
    ]
    assert cli("grant", "rm", "q", "billing", "--yes").err == "took the level of 'billing' away\n"
    assert cli("grant", "set", "q", "billing", "none").code == 2
    assert cli.service.asked[0] == ("PUT", "/v1/queues/q/grants/billing", {"level": "use"})


def test_an_alert_is_made_listed_and_deleted(cli: Cli) -> None:
    policy = {"id": "a1", "tag": None, "subject": "queue_message_number", "measurement": "count", "threshold": 10.0}
    cli.service.on("POST /v1/queues/q/alerts", (201, policy))
    cli.service.on("GET /v1/queues/q/alerts", (200, {"alerts": [policy]}))
    cli.service.on("GET /v1/queues/q/alerts/history", (200, {"events": [{"id": "e", "change": "fired", "at_ms": 1}]}))
    cli.service.on("DELETE /v1/queues/q/alerts/a1", (204, None))

    options = "--subject queue_message_number --measurement count --threshold 10"
    assert cli("alert", "create", "q", *options.split(), "-o", "name").out == "a1\n"
    assert cli("alert", "ls", "q", "--tag", "t", "-o", "json").json == [policy]
    assert cli("alert", "history", "q", "-o", "json").json == [{"id": "e", "change": "fired", "at_ms": 1}]
    assert cli("alert", "rm", "q", "a1", "--yes").code == 0
    assert cli.service.asked[:2] == [
        ("POST", "/v1/queues/q/alerts", {key: policy[key] for key in ("subject", "measurement", "threshold")}),
        ("GET", "/v1/queues/q/alerts?tag=t", None),
    ]


def test_a_transaction_is_prepared_decided_and_listed(cli: Cli) -> None:
    half = {"id": "t1", "status": "open", "producer_group": "g", "messages": 1}
    cli.service.on("POST /v1/queues/q/transactions", (201, half))
    cli.service.on("GET /v1/queues/q/transactions", (200, {"transactions": [half]}))
    cli.service.on("GET /v1/transactions/t1", (200, half))
    for verb in ("commit", "rollback", "unknown"):
        cli.service.on(f"POST /v1/transactions/t1/{verb}", (200, {**half, "status": verb}))

    prepared = cli("tx", "prepare", "q", "hi", "--producer-group", "g", "--check-immunity-seconds", "9", "-o", "name")
    assert prepared.out == "t1\n"
    assert [cli("tx", verb, "t1", "-o", "json").json["status"] for verb in ("commit", "rollback", "unknown")] == [
        "commit",
        "rollback",
        "unknown",
    ]
    assert cli("tx", "ls", "q", "--status", "open", "-o", "name").out == "t1\n"
    assert cli("tx", "show", "t1", "-o", "json").json == half
    assert cli.service.asked[0][2] == {
        "producer_group": "g",
        "messages": [{"body": "hi"}],
        "check_immunity_seconds": 9.0,
    }


def test_checks_are_taken_with_what_they_are_about(cli: Cli) -> None:
    check = {"id": "c", "number": 1, "transaction": {"id": "t1", "queue": "q", "prepared_at_ms": 5}, "messages": []}
    cli.service.on("POST /v1/producer-groups/g/checks", (200, {"checks": [check]}), (200, {"checks": []}))

    assert cli("tx", "checks", "g").out.splitlines()[1].split() == ["c", "1", "t1", "q", "5"]
    assert cli("tx", "checks", "g", "--wait-seconds", "1").err == "nothing is asked\n"
    assert cli.service.asked[1][2] == {"max": 10, "wait_seconds": 1.0}


@pytest.mark.parametrize("options", [["-o", "name"], ["--columns", "key_id"]])
@pytest.mark.parametrize("verb", [["create", "k", "--principal", "p"], ["rotate", "k"]])
def test_a_secret_that_would_not_be_printed_is_not_made(verb: list[str], options: list[str], cli: Cli) -> None:
    ran = cli("key", *verb, *options)

    assert (ran.code, cli.service.asked) == (2, [])
    assert "the secret is printed this once" in ran.err
