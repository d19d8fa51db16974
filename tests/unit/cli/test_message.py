"""`leaseway message`: what it asks of the API, and what it prints."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.service import Cli

SEND, RECEIVE, LOOK = "POST /v1/queues/q/messages", "POST /v1/queues/q/receive", "GET /v1/queues/q/messages"


def sent(*ids: str) -> tuple[int, Any]:
    return 200, {"messages": [{"id": one, "body_md5": "m", "sent_at_ms": 1795469815321} for one in ids]}


def delivery(name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "handle": f"h-{name}",
        "body": f"body {name}",
        "attributes": {},
        "sent_at_ms": 1,
        "receive_count": 1,
        **more,
    }


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Any:
    def given(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    return given


def test_send_makes_one_batch_of_arguments_and_files(cli: Cli, tmp_path: Path) -> None:
    cli.service.on(SEND, sent("m1", "m2"))
    (tmp_path / "f").write_bytes(b"\xff")
    options = "--attribute kind=a=b --number price=3 --group g --dedup-id d --priority 2"
    options += " --delay-seconds 1.5 --lease-seconds 9"

    ran = cli("message", "send", "q", "hello", "--file", str(tmp_path / "f"), *options.split(), "-o", "name")

    common = {
        "attributes": {"kind": "a=b", "price": {"type": "number", "value": "3"}},
        "group": "g",
        "dedup_id": "d",
        "priority": 2,
        "delay_seconds": 1.5,
        "lease_seconds": 9.0,
    }
    assert (ran.code, ran.out) == (0, "m1\nm2\n")
    assert cli.service.asked[0][2] == {"messages": [{**common, "body": "hello"}, {**common, "body_base64": "/w=="}]}


def test_a_file_that_is_a_hyphen_is_all_of_stdin(cli: Cli, stdin: Any) -> None:
    stdin(b"two\nlines\n")
    cli.service.on("POST /v1/queues/q/messages", (200, {"messages": [{"id": "a", "body_md5": "", "sent_at_ms": 1}]}))

    assert cli("message", "send", "q", "--file", "-", "-o", "name").out == "a\n"
    assert cli.service.asked[0][2] == {"messages": [{"body": "two\nlines\n"}]}


def test_send_of_lines_prints_what_was_sent_as_it_goes(cli: Cli, stdin: Any) -> None:
    cli.service.on(SEND, sent(*(str(n) for n in range(100))), sent("last"))
    stdin(b"".join(b"line %d\n" % n for n in range(101)))

    ran = cli("message", "send", "q", "--lines", "-o", "name")

    assert ran.out.splitlines() == [*(str(n) for n in range(100)), "last"]
    assert ran.err == "sent 101 message(s)\n"
    assert [len(body["messages"]) for _, _, body in cli.service.asked] == [100, 1]


def test_send_of_lines_that_fails_says_how_many_were_sent(cli: Cli, stdin: Any) -> None:
    cli.service.on(SEND, sent(*(str(n) for n in range(100))), (503, {"detail": "Kafka is away."}))
    stdin(b"x\n" * 150)

    ran = cli("message", "send", "q", "--lines", "-o", "name")

    assert (ran.code, len(ran.out.splitlines())) == (5, 100)
    assert ran.err == "leaseway message send: Kafka is away; 100 message(s) were sent before\n"


def test_send_of_objects_keeps_their_fields(cli: Cli, stdin: Any) -> None:
    cli.service.on(SEND, sent("m"))
    stdin(json.dumps(delivery("a", group="g")).encode() + b"\n")

    assert cli("message", "send", "q", "--jsonl", "--priority", "3").code == 0
    assert cli.service.asked[0][2] == {"messages": [{"priority": 3, "body": "body a", "attributes": {}, "group": "g"}]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["send", "q"], "give a BODY, --file FILE, --lines or --jsonl"),
        (["send", "q", *["x"] * 101], "at most 100 messages, given 101"),
        (["send", "q", "x", "--lines"], "takes no BODY or --file beside it"),
        (["send", "q", "x", "--attribute", "kind"], "must be NAME=TEXT, given 'kind'"),
        (["send", "q", "x", "--at", "soon"], "must be a time in ISO 8601"),
        (["peek", "q", "--state", "lost"], "'lost' is not one of 'delayed'"),
        (
            ["receive", "q", "--wait-seconds", "soon"],
            "'--wait-seconds': must be a number of seconds, such as 30 or 0.5, given 'soon'",
        ),
        (["send", "q", "x", "--delay-seconds", "nan"], "'--delay-seconds': must be a number of seconds"),
        (["extend", "q", "h"], "Missing option '--lease-seconds'"),
        (["ack", "q"], "Missing argument 'HANDLE...'"),
        (["rm", "q", "m"], "delete 1 message(s) of queue 'q'? There is no terminal"),
    ],
)
def test_a_mistake_is_named_before_anything_is_asked(arguments: list[str], said: str, cli: Cli) -> None:
    ran = cli("message", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert cli.service.asked == []


def test_receive_asks_for_one_and_prints_its_handle(cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": [delivery("a")]}))

    assert cli("message", "receive", "q", "-o", "name").out == "h-a\n"
    assert cli.service.asked == [("POST", "/v1/queues/q/receive", {"max": 1})]


def test_receive_says_on_stderr_that_nothing_came(cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": []}))

    ran = cli("message", "receive", "q", "--wait-seconds", "0", "--tag", "t", "--where", "kind", "-o", "json")

    assert (ran.code, ran.json, ran.err) == (0, [], "no message came\n")
    assert cli.service.asked[0][2] == {
        "max": 1,
        "wait_seconds": 0.0,
        "tag": "t",
        "filter": {"operator": "AND", "conditions": [{"name": "kind"}]},
    }


def test_receive_with_ack_acknowledges_what_it_has_printed(cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": [delivery("a"), delivery("b", body=None, body_base64="/w==")]}))
    cli.service.on(
        "POST /v1/queues/q/ack",
        (200, {"results": [{"handle": "h-a", "status": "ok"}, {"handle": "h-b", "status": "ok"}]}),
    )

    assert cli("message", "receive", "q", "--max", "2", "--ack", "-o", "jsonl").code == 0
    assert cli.service.asked[1] == ("POST", "/v1/queues/q/ack", {"handles": ["h-a", "h-b"]})


def test_receive_acknowledges_nothing_that_it_could_not_print(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.service.on(RECEIVE, (200, {"messages": [delivery("a")]}))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("facade.programs.cli.output.forms.Printer._write", full)

    ran = cli("message", "receive", "q", "--ack")

    assert (ran.code, len(cli.service.asked)) == (1, 1)
    assert "No space left on device" in ran.err


def test_bodies_alone_are_the_bytes_that_were_sent(cli: Cli) -> None:
    cli.service.on(LOOK, (200, {"messages": [delivery("a"), {"id": "b", "body_base64": "w7w="}], "next": None}))

    assert cli("message", "peek", "q", "--body").out == "body a\nü\n"
    assert cli.service.asked == [("GET", "/v1/queues/q/messages?limit=50", None)]


def test_stale_handles_are_shown_and_end_with_1(cli: Cli) -> None:
    results = [{"handle": "h1", "status": "ok"}, {"handle": "h2", "status": "stale", "reason": "superseded"}]
    cli.service.on("POST /v1/queues/q/release", (200, {"results": results}))

    ran = cli("message", "release", "q", "h1", "h2", "--delay-seconds", "2", "-o", "json")

    assert (ran.code, ran.json) == (1, results)
    assert ran.err == "leaseway message release: nothing was changed by 1 of 2 handle(s) (stale: superseded)\n"
    assert cli.service.asked == [("POST", "/v1/queues/q/release", {"handles": ["h1", "h2"], "delay_seconds": 2.0})]


def test_handles_of_stdin_go_100_in_a_request_and_what_was_done_is_shown(cli: Cli, stdin: Any) -> None:
    ok = [{"handle": f"h{n}", "status": "ok"} for n in range(100)]
    cli.service.on("POST /v1/queues/q/ack", (200, {"results": ok}), (503, {"detail": "Away."}))
    stdin(b"".join(b"h%d\n" % n for n in range(150)))

    ran = cli("message", "ack", "q", "-", "-o", "name")

    assert (ran.code, ran.out.splitlines()) == (5, [f"h{n}" for n in range(100)])
    assert [len(body["handles"]) for _, _, body in cli.service.asked] == [100, 50]


def test_extend_and_kill(cli: Cli) -> None:
    done = (200, {"results": [{"handle": "h", "status": "ok", "next_visible_at_ms": 1}]})
    cli.service.on("POST /v1/queues/q/extend", done)
    cli.service.on("POST /v1/queues/q/kill", done)

    assert cli("message", "extend", "q", "h", "--lease-seconds", "60").code == 0
    assert cli("message", "kill", "q", "h").code == 0
    assert cli("message", "kill", "q", "h", "--reason", "late").code == 0
    assert [body for _, _, body in cli.service.asked] == [
        {"entries": [{"handle": "h", "lease_seconds": 60.0}]},
        {"handles": ["h"]},
        {"handles": ["h"], "reason": "late"},
    ]


def test_peek_follows_pages_up_to_its_limit(cli: Cli) -> None:
    pages = [
        (200, {"messages": [], "next": "n1"}),
        (200, {"messages": [delivery("a", state="ready")], "next": "n2"}),
        (200, {"messages": [delivery("b", state="ready")], "next": "n3"}),
    ]
    cli.service.on(LOOK, *pages)

    ran = cli("message", "peek", "q", "--limit", "2", "--where", "kind=a b", "--state", "ready", "-o", "name")

    assert ran.out == "a\nb\n"
    assert [path for _, path, _ in cli.service.asked] == [
        "/v1/queues/q/messages?state=ready&attribute=kind%3Da+b&limit=2",
        "/v1/queues/q/messages?state=ready&attribute=kind%3Da+b&next=n1&limit=2",
        "/v1/queues/q/messages?state=ready&attribute=kind%3Da+b&next=n2&limit=1",
    ]


@pytest.mark.parametrize(
    ("queue", "words", "said"),
    [
        ({}, [], ""),
        ({"paused": {"by": "anna", "reason": "we move"}}, [], ": queue 'q' is paused by anna: we move"),
        (
            {"tags": [{"name": "t", "paused": {"by": "eve", "reason": ""}}]},
            ["--tag", "t"],
            ": tag 't' is paused by eve",
        ),
        ({"tags": [{"name": "t", "paused": {"by": "eve", "reason": ""}}]}, [], ""),
        (
            {"default_tag_name": "main", "tags": [{"name": "default", "paused": {"by": "eve", "reason": ""}}]},
            ["--tag", "main"],
            ": tag 'default' is paused by eve",
        ),
        (None, [], ""),
    ],
)
def test_receive_says_why_nobody_receives(queue: dict[str, Any] | None, words: list[str], said: str, cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": []}))
    denied = {"code": "not_authorised", "detail": "no"}
    cli.service.on("GET /v1/queues/q", (403, denied) if queue is None else (200, queue))
    ran = cli("message", "receive", "q", *words)
    assert (ran.code, ran.err) == (0, f"no message came{said}\n")


def test_a_hyphen_as_a_body_is_all_of_stdin_once(cli: Cli, stdin: Any) -> None:
    cli.service.on(SEND, (200, {"messages": []}))
    stdin(b"of stdin")
    assert cli("message", "send", "q", "first", "-").code == 0
    assert [one["body"] for one in cli.service.asked[-1][2]["messages"]] == ["first", "of stdin"]
    asked = len(cli.service.asked)
    for words in (["-", "-"], ["-", "--file", "-"], ["--file", "-", "--file", "-"]):
        refused = cli("message", "send", "q", *words)
        assert (refused.code, "stdin (-) can be read once" in refused.err) == (2, True)
    assert len(cli.service.asked) == asked


def test_a_masked_message_is_said_to_be_so_once_and_is_not_sent_on(cli: Cli, stdin: Any) -> None:
    rows = [delivery(one, state="ready", masked=True, partition=0, offset=1) for one in "ab"]
    page = (200, {"messages": rows, "next": None, "scanned": 2, "cut": None})
    cli.service.on(LOOK, page)
    cli.service.on(f"{LOOK}/a", (200, rows[0]))
    for words in (["peek", "q"], ["search", "q"], ["tail", "q", "--since", "0"], ["show", "q", "a"]):
        ran = cli("message", *words, "-o", "jsonl")
        assert ran.err.count("the mask of the queue hides something") == 1, words
        assert '"masked": true' in ran.out or '"masked":true' in ran.out, words
    assert cli("dlq", "show", "q").err.count("the mask of the queue hides something") == 1
    assert "*** stands for a value" in cli("message", "peek", "q", "--body").err

    stdin(ran.out.encode())
    refused = cli("message", "send", "q", "--jsonl")
    assert (refused.code, "line 1 is masked" in refused.err) == (2, True)
    assert not [one for one in cli.service.asked if one[0] == "POST"]


def test_search_goes_on_until_it_has_enough_and_says_where_it_ended(cli: Cli) -> None:
    pages = [
        (200, {"messages": [], "next": "n1", "scanned": 20_000, "cut": "records"}),
        (200, {"messages": [delivery("a", state="ready")], "next": "n2", "scanned": 7, "cut": "time"}),
    ]
    cli.service.on(LOOK, *pages)
    words = "--text order --ignore-case --attribute kind=a --attribute vip --since 0 --until 2026-11-23T21:36:55 --scan"

    ran = cli("message", "search", "q", *words.split(), "20001", "--next", "n0", "-o", "name")

    assert (ran.code, ran.out, ran.err) == (0, "a\n", "looked at 20007 message(s); --next n2 goes on\n")
    asked = "from=0&to=1795469815000&text=order&attribute=kind%3Da&attribute=vip&ignore_case=true"
    assert [path for _, path, _ in cli.service.asked] == [
        f"/v1/queues/q/messages?{asked}&next=n0&limit=50",
        f"/v1/queues/q/messages?{asked}&next=n1&limit=50",
    ]


def test_search_ends_with_the_last_page_or_when_it_has_enough(cli: Cli) -> None:
    cli.service.on(LOOK, (200, {"messages": [delivery("a", state="ready")], "next": None, "scanned": 3, "cut": None}))

    assert cli("message", "search", "q").err == "looked at 3 message(s)\n"
    assert cli.service.asked == [("GET", "/v1/queues/q/messages?limit=50", None)]

    cli.service.on(LOOK, (200, {"messages": [delivery("a", state="ready")], "next": "n", "scanned": 3, "cut": None}))
    assert cli("message", "search", "q", "--limit", "1").err == "looked at 3 message(s); --next n goes on\n"


def test_copy_sends_what_was_edited_and_says_when_the_message_stays(cli: Cli, tmp_path: Path) -> None:
    copied = {"id": "n", "queue": "q2", "copied_from": "m", "removed": True}
    kept = [(200, {**copied, "removed": removed}) for removed in (False, None)]
    cli.service.on("POST /v1/queues/q/messages/m/copy", (200, copied), *kept)
    (tmp_path / "f").write_bytes(b"\xff")

    words = ["--to", "q2", "--attribute", "kind=a", "--group", "g", "--dedup-id", "d", "--remove"]
    ran = cli("message", "copy", "q", "m", "mended", *words, "-o", "name")
    assert (ran.code, ran.out) == (0, "n\n")
    ran = cli("message", "copy", "q", "m", "--file", str(tmp_path / "f"), "--remove", "-o", "name")
    assert (ran.code, ran.out) == (1, "n\n")
    assert "the copy n was sent, and message m was not deleted" in ran.err
    ran = cli("message", "copy", "q", "m", "--remove", "-o", "name")
    assert (ran.code, ran.out) == (1, "n\n")
    assert "the copy n was sent; whether message m was deleted is not known" in ran.err
    assert cli("message", "copy", "q", "m", "x", "--file", "f").code == 2

    edited = {"body": "mended", "destination": "q2", "attributes": {"kind": "a"}, "group": "g", "dedup_id": "d"}
    assert [body for _, _, body in cli.service.asked] == [
        {**edited, "remove": True},
        {"body_base64": "/w==", "remove": True},
        {"remove": True},
    ]


def test_show_events_has_all_pages_and_says_what_is_not_known(cli: Cli) -> None:
    sent, leased = {"kind": "sent", "at_ms": 1}, {"kind": "leased", "at_ms": 2, "tag": "default"}
    pages = [
        (200, {"events": [sent], "next": "n1", "complete": False, "since_ms": 7}),
        (200, {"events": [leased], "next": None, "complete": False, "since_ms": 7}),
    ]
    cli.service.on("GET /v1/queues/q/messages/m/events", *pages)

    ran = cli("message", "show", "q", "m", "--events", "-o", "json")

    assert (ran.code, ran.json) == (0, [sent, leased])
    assert ran.err == "the journal does not have all; what happened before 7 (epoch ms) is not known\n"


def test_rm_cancel_and_reschedule_take_several_ids(cli: Cli, stdin: Any) -> None:
    cli.service.on("DELETE /v1/queues/q/messages/a", (204, None))
    cli.service.on("POST /v1/queues/q/messages/a/cancel", (204, None))
    cli.service.on("POST /v1/queues/q/messages/a/reschedule", (204, None))
    stdin(b"a\n")

    assert cli("message", "rm", "q", "-", "--yes").err == "deleted message a\n"
    assert cli("message", "cancel", "q", "a").err == "cancelled message a\n"
    assert cli("message", "reschedule", "q", "a", "--at", "0").err == "rescheduled message a\n"
    assert cli.service.asked[-1][2] == {"deliver_at_ms": 0}


def test_tail_prints_in_the_order_of_time(cli: Cli) -> None:
    late, early = (
        {"id": name, "sent_at_ms": at, "partition": 0, "offset": 0, "body": "x"}
        for name, at in (("late", 9), ("early", 5))
    )
    cli.service.on(LOOK, (200, {"messages": [late, early], "next": None}))

    assert cli("message", "tail", "q", "--since", "0", "-o", "name").out == "early\nlate\n"
    assert cli.service.asked == [("GET", "/v1/queues/q/messages?from=0&limit=100", None)]


def test_tail_begins_a_minute_ago_by_the_clock_of_the_service(cli: Cli) -> None:
    cli.service.ahead_s = -3600
    cli.service.on("GET /live", (200, {"status": "ok"}))
    cli.service.on(LOOK, (200, {"messages": [], "next": None}))

    cli("message", "tail", "q")

    from_ms = int(cli.service.asked[1][1].partition("from=")[2].partition("&")[0])
    assert abs(from_ms / 1000 - (time.time() - 3660)) < 30


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_receive_with_ack_prints_all_of_a_message_also_at_a_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {"kind": {"type": "string", "value": "retail"}}
    message = delivery("a", body="x" * 400, attributes=attributes)
    cli.service.on(RECEIVE, (200, {"messages": [message]}))
    cli.service.on("POST /v1/queues/q/ack", (200, {"results": [{"handle": "h-a", "status": "ok"}]}))
    monkeypatch.setenv("COLUMNS", "2000")
    monkeypatch.setattr(sys, "stdout", screen := Terminal())

    assert cli("message", "receive", "q", "--ack").code == 0
    assert "x" * 400 in screen.getvalue()
    assert json.dumps(attributes) in screen.getvalue()

    screen.truncate(0)
    assert cli("message", "receive", "q").code == 0
    assert "(100 more characters)" in screen.getvalue()


def test_a_table_without_attributes_has_no_column_of_them(cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": [delivery("a")]}))

    assert "attributes" not in cli("message", "receive", "q").out


def test_several_ids_go_on_after_one_that_fails(cli: Cli) -> None:
    for name in ("a", "c"):
        cli.service.on(f"DELETE /v1/queues/q/messages/{name}", (204, None))
        cli.service.on(f"POST /v1/queues/q/messages/{name}/cancel", (204, None))
        cli.service.on(f"POST /v1/queues/q/messages/{name}/reschedule", (204, None))

    for arguments, done in (
        (["rm", "--yes"], "deleted"),
        (["cancel"], "cancelled"),
        (["reschedule", "--at", "0"], "rescheduled"),
    ):
        verb, *options = arguments
        ran = cli("message", verb, "q", "a", "b", "c", *options)
        assert ran.code == 1
        first, failed, last, end = ran.err.splitlines()
        assert (first, last) == (f"{done} message a", f"{done} message c")
        assert failed.startswith("'b': No /v1/queues/q/messages/b")
        assert end == f"leaseway message {verb}: 1 of 3 failed"
        assert cli("message", verb, "q", "b", *options).code == 3


def test_attributes_of_a_line_and_of_the_options_are_joined(cli: Cli, stdin: Any) -> None:
    cli.service.on(SEND, sent("m", "n"))
    stdin(b'{"body": "x", "attributes": {"a": "own", "b": "own"}}\r\n\r\n{"body": "y"}\r\n')

    assert cli("message", "send", "q", "--jsonl", "--attribute", "a=all", "--attribute", "c=all").code == 0
    assert [one["attributes"] for one in cli.service.asked[0][2]["messages"]] == [
        {"a": "own", "b": "own", "c": "all"},
        {"a": "all", "c": "all"},
    ]


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (OSError, 1)])
def test_a_send_of_lines_that_is_ended_says_how_many_were_sent(
    error: type[BaseException], code: int, cli: Cli, stdin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.service.on(SEND, sent(*(str(n) for n in range(100))))
    stdin(b"x\n" * 150)

    def ended(*_: object) -> None:
        raise error

    monkeypatch.setattr("facade.programs.cli.output.forms.Printer._write", ended)

    ran = cli("message", "send", "q", "--lines")

    assert ran.code == code
    assert ran.err.splitlines()[0] == "100 message(s) were sent before"
    assert len(cli.service.asked) == 1


def test_a_send_that_is_interrupted_while_it_asks_says_that_there_may_be_more(
    cli: Cli, stdin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("facade.programs.connect.client.Client.exchange", interrupted)
    stdin(b"x\n")

    ran = cli("message", "send", "q", "--lines")

    assert (ran.code, ran.err.splitlines()[0]) == (130, "0 message(s) and perhaps the next ones were sent before")


@pytest.mark.parametrize("form", [["-o", "name"], ["--columns", "id"]], ids=["name", "columns"])
def test_receive_takes_nothing_that_it_would_not_print(form: list[str], cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": [delivery("a")]}))

    ran = cli("message", "receive", "q", "--ack", *form)

    assert (ran.code, ran.out, cli.service.asked) == (2, "", [])
    assert "--ack loses what is not printed" in ran.err


def test_bodies_alone_may_be_acked(cli: Cli) -> None:
    cli.service.on(RECEIVE, (200, {"messages": [delivery("a")]}))
    cli.service.on("POST /v1/queues/q/ack", (200, {"results": [{"handle": "h-a", "status": "ok"}]}))

    ran = cli("message", "receive", "q", "--ack", "--body", "-o", "name")

    assert (ran.code, ran.out, len(cli.service.asked)) == (0, "body a\n", 2)
