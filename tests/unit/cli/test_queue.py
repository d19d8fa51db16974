"""`leaseway queue` and `leaseway tag`: what they ask of the API, and what they print."""

from __future__ import annotations

from typing import Any

import pytest

from engine.rules.limits import SORTS
from facade.programs.cli.nouns import queue as noun
from facade.programs.cli.output.cells import cell
from facade.programs.cli.program.settings import options
from tests.unit.cli.service import Cli


def tag(**counts: int) -> dict[str, Any]:
    return {
        "name": "default",
        **dict.fromkeys(("backlog", "ready", "delayed", "leased", "parked", "stored"), 0),
        **counts,
    }


def test_ls_follows_all_pages(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, {"queues": ["a", "b"], "next": "b"}), (200, {"queues": ["c"], "next": None}))

    assert cli("queue", "ls", "-o", "json").json == [{"name": "a"}, {"name": "b"}, {"name": "c"}]
    assert [path for _, path, _ in cli.service.asked] == ["/v1/queues?limit=1000", "/v1/queues?after=b&limit=1000"]


def test_ls_stops_at_its_limit(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, {"queues": ["a", "b"], "next": "b"}))

    assert cli("queue", "ls", "--limit", "2", "--prefix", "x y", "-o", "name").out == "a\nb\n"
    assert [path for _, path, _ in cli.service.asked] == ["/v1/queues?prefix=x+y&limit=2"]


def counts(name: str, **more: Any) -> dict[str, Any]:
    return {**tag(), "name": name, "oldest_at_ms": None, "as_of_ms": 1795469815321, "paused": False, **more}


def test_ls_with_counts_is_one_request_a_page_in_the_order_that_was_asked_for(cli: Cli) -> None:
    first, second = counts("b", backlog=9, oldest_at_ms=1795469815000), counts("a", backlog=3)
    page = (200, {"queues": ["b"], "counts": [first], "next": "c1"})
    cli.service.on("GET /v1/queues", page, (200, {"queues": ["a"], "counts": [second], "next": None}))

    assert cli("queue", "ls", "--sort", "backlog", "--prefix", "x", "-o", "json").json == [first, second]
    assert [path for _, path, _ in cli.service.asked] == [
        "/v1/queues?counts=true&sort=backlog&prefix=x&limit=1000",
        "/v1/queues?counts=true&sort=backlog&prefix=x&cursor=c1&limit=1000",
    ]


def test_a_table_of_counts_has_those_of_the_json(cli: Cli) -> None:
    row = counts("a", backlog=3, oldest_at_ms=1795469815000)
    cli.service.on("GET /v1/queues", (200, {"queues": ["a"], "counts": [row], "next": None}))

    head, line = cli("queue", "ls", "--counts").out.splitlines()

    assert dict(zip(head.split(), line.split(), strict=True)) == {
        name: cell(name, value) for name, value in row.items()
    }
    assert cli.service.asked[0][1] == "/v1/queues?counts=true&sort=name&limit=1000"


def test_the_orders_are_those_of_the_engine() -> None:
    assert noun.SORTS == SORTS


def test_create_sends_the_settings_that_were_named(cli: Cli) -> None:
    cli.service.on("POST /v1/queues", (201, {"name": "orders"}))
    given = "--lease-seconds 0.5 --fifo --no-durable-acks --dedup-scope group --read-qps 5 --user-attribute a=1=2"

    ran = cli(
        "queue",
        "create",
        "orders",
        *given.split(),
        "--dead-letter-queue",
        "d",
        "--dead-letter-after",
        "3",
        "-o",
        "name",
    )

    assert (ran.code, ran.out) == (0, "orders\n")
    assert cli.service.asked[0][2] == {
        "name": "orders",
        "lease_seconds": 0.5,
        "fifo": True,
        "durable_acks": False,
        "dedup_scope": "group",
        "read_qps": 5,
        "user_attributes": {"a": "1=2"},
        "redrive_policy": {"dead_letter_queue": "d", "max_receive_count": 3},
    }


def test_set_changes_what_was_named_and_takes_a_policy_away(cli: Cli) -> None:
    cli.service.on("PATCH /v1/queues/orders", (200, {"name": "orders"}))
    cli.service.on("DELETE /v1/queues/orders/redrive-policy", (204, None))
    cli.service.on("GET /v1/queues/orders", (200, {"name": "orders", "redrive_policy": None}))

    ran = cli("queue", "set", "orders", "--no-redrive-policy", "--lease-seconds", "60", "-o", "json")

    assert (ran.code, ran.json) == (0, {"name": "orders", "redrive_policy": None})
    assert cli.service.asked == [
        ("PATCH", "/v1/queues/orders", {"lease_seconds": 60.0}),
        ("DELETE", "/v1/queues/orders/redrive-policy", None),
        ("GET", "/v1/queues/orders", None),
    ]


def test_a_setting_that_is_refused_takes_no_policy_away(cli: Cli) -> None:
    cli.service.on("PATCH /v1/queues/orders", (400, {"detail": "No."}))

    assert cli("queue", "set", "orders", "--no-redrive-policy", "--lease-seconds", "-1").code == 2
    assert [method for method, _, _ in cli.service.asked] == ["PATCH"]


@pytest.mark.parametrize(
    ("words", "mask"),
    [(["--mask", "card", "--mask", "a.*.b"], ["card", "a.*.b"]), (["--mask", ""], []), ([], None)],
)
def test_a_mask_has_several_rules_or_an_empty_one_that_takes_all_away(
    words: list[str], mask: list[str] | None, cli: Cli
) -> None:
    cli.service.on("PATCH /v1/queues/q", (200, {"name": "q"}))
    assert cli("queue", "set", "q", "--lease-seconds", "7", *words).code == 0
    asked = {"lease_seconds": 7.0} if mask is None else {"lease_seconds": 7.0, "mask": mask}
    assert cli.service.asked == [("PATCH", "/v1/queues/q", asked)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["set", "orders"], "name a setting to change"),
        (["set", "orders", "--fifo"], "No such option '--fifo'"),
        (["set", "orders", "--dead-letter-queue", "d"], "--dead-letter-queue and --dead-letter-after go together"),
        (
            ["set", "orders", "--no-redrive-policy", "--dead-letter-queue", "d", "--dead-letter-after", "2"],
            "exclude each other",
        ),
        (
            ["create", "orders", "--lease-seconds", "soon"],
            "'--lease-seconds': must be a number of seconds, such as 30 or 0.5, given 'soon'",
        ),
    ],
)
def test_settings_that_can_not_be_are_refused_before_anything_is_asked(
    arguments: list[str], said: str, cli: Cli
) -> None:
    ran = cli("queue", *arguments)

    assert ran.code == 2
    assert said in ran.err
    assert cli.service.asked == []


def test_every_setting_that_may_be_given_has_an_option() -> None:
    create, change = ({option.name for option in options(changes=changes)} for changes in (False, True))

    assert {"lease_seconds", "fifo", "partitions", "dead_letter_queue", "user_attribute"} <= create
    assert change < create
    assert not {"fifo", "partitions"} & change


@pytest.mark.parametrize("name", ["a/b", "a?b", "../x", "ä"])
def test_a_name_is_one_part_of_a_path(name: str, cli: Cli) -> None:
    assert cli("queue", "show", name).code == 3

    (asked,) = cli.service.asked
    assert asked[1].count("/") == 3
    assert "?" not in asked[1]


def test_rm_deletes_each_that_it_can_and_says_which_it_can_not(cli: Cli) -> None:
    cli.service.on("DELETE /v1/queues/a", (204, None))
    cli.service.on("DELETE /v1/queues/c", (204, None))

    ran = cli("queue", "rm", "--yes", "a", "b", "c")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "deleted queue 'a'",
        "'b': No /v1/queues/b",
        "deleted queue 'c'",
        "leaseway queue rm: 1 of 3 failed",
    ]
    assert [path for _, path, _ in cli.service.asked] == ["/v1/queues/a", "/v1/queues/b", "/v1/queues/c"]
    assert cli("queue", "rm", "--yes", "b").code == 3


def test_purge_and_copy(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a/purge", (204, None))
    cli.service.on("POST /v1/queues/a/copy", (201, {"name": "b"}))

    assert cli("queue", "purge", "a", "-y").err == "purged queue 'a'\n"
    assert cli("queue", "copy", "a", "b", "-o", "name").out == "b\n"
    assert cli.service.asked[-1] == ("POST", "/v1/queues/a/copy", {"target": "b"})


def test_a_tag_is_created_with_its_filter_and_listed_with_its_counts(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a/tags", (201, {"name": "eu"}))
    cli.service.on(
        "GET /v1/queues/a/tags",
        (200, {"tags": [{**tag(backlog=2, ready=2), "start_at_ms": -1, "filter": None, "paused": None}]}),
    )

    cli("tag", "create", "a", "eu", "--where", "region=eu", "--where", "kind", "--any", "--start", "2026-11-23")
    ran = cli("tag", "ls", "a")

    assert cli.service.asked[0][2] == {
        "name": "eu",
        "start_at_ms": 1795392000000,
        "filter": {"operator": "OR", "conditions": [{"name": "region", "value": "eu"}, {"name": "kind"}]},
    }
    assert [line.split() for line in ran.out.splitlines()] == [
        ["name", "backlog", "ready", "delayed", "leased", "parked", "stored", "start_at_ms", "filter", "paused"],
        ["default", "2", "2", "0", "0", "0", "0", "-1"],
    ]


def test_parked_groups_are_listed_and_go_on(cli: Cli) -> None:
    group = {"group": "g", "message_id": "m", "receive_count": 3, "held": 2, "expires_at_ms": None}
    cli.service.on("GET /v1/queues/a/parked", (200, {"groups": [group], "next": None}))
    cli.service.on("POST /v1/queues/a/unpark", (200, {"unparked": True}), (200, {"unparked": False}))

    assert cli("queue", "parked", "a", "--tag", "t", "-o", "json").json == [group]
    assert cli("queue", "unpark", "a", "g", "--kill").err == "group 'g' goes on\n"
    assert cli("queue", "unpark", "a", "g").err == "group 'g' was not parked; nothing was changed\n"
    assert cli.service.asked == [
        ("GET", "/v1/queues/a/parked?tag=t&limit=1000", None),
        ("POST", "/v1/queues/a/unpark", {"group": "g", "kill": True}),
        ("POST", "/v1/queues/a/unpark", {"group": "g", "kill": False}),
    ]


def test_a_tag_is_deleted(cli: Cli) -> None:
    cli.service.on("DELETE /v1/queues/a/tags/eu", (204, None))

    assert cli("tag", "rm", "a", "eu", "--yes").err == "deleted tag 'eu' of queue 'a'\n"


def test_pause_and_resume_say_why_and_of_what(cli: Cli) -> None:
    paused = {"by": "me", "at_ms": 1795469815321, "reason": "late"}
    for path in ("/v1/queues/a", "/v1/queues/a/tags/eu"):
        cli.service.on(f"POST {path}/pause", (200, paused), (200, paused))
        cli.service.on(f"POST {path}/resume", (204, None))

    assert cli("queue", "pause", "a", "--reason", "late", "-o", "json").json == paused
    assert cli("tag", "pause", "a", "eu", "-o", "json").json == paused
    assert cli("queue", "resume", "a").err == "resumed queue 'a'\n"
    assert cli("tag", "resume", "a", "eu").err == "resumed tag 'eu' of queue 'a'\n"
    assert cli.service.asked == [
        ("POST", "/v1/queues/a/pause", {"reason": "late"}),
        ("POST", "/v1/queues/a/tags/eu/pause", None),
        ("POST", "/v1/queues/a/resume", None),
        ("POST", "/v1/queues/a/tags/eu/resume", None),
    ]


def test_a_seek_names_a_place_and_asks(cli: Cli) -> None:
    cli.service.on("POST /v1/queues/a/tags/eu/seek", (200, {"name": "eu"}))

    assert cli("tag", "seek", "a", "eu", "--to", "earliest").code == 2, "it needs --yes"
    assert cli("tag", "seek", "a", "eu", "--to", "soon", "--yes").code == 2
    assert cli("tag", "seek", "a", "eu", "--to", "earliest", "--yes", "-o", "name").out == "eu\n"
    assert cli("tag", "seek", "a", "eu", "--to", "2026-11-23", "--yes").code == 0
    assert [body for _, _, body in cli.service.asked] == [{"to": "earliest"}, {"to_ms": 1795392000000}]
