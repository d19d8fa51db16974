"""The program as a whole: help, mistakes, exit statuses, what goes to which stream."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from facade.programs.cli.program.command import Noun
from facade.programs.cli.program.program import root
from facade.programs.cli.words import LOCAL, REMOTE
from tests.unit.cli.service import Cli

QUEUES = {"queues": ["orders", "payments"], "next": None}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def verbs() -> list[tuple[str, click.Command]]:
    """Every command of the API, by its path."""
    found = []
    for name in REMOTE:
        command = root().get_command(click.Context(root()), name)
        assert command is not None
        if isinstance(command, Noun):
            found += [(f"{name} {verb}", part) for verb, part in command.commands.items()]
        else:
            found.append((name, command))
    return found


def test_help_names_every_command_but_those_that_are_hidden(cli: Cli) -> None:
    ran = cli("--help")

    shown = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ") and line.strip()]
    assert ran.code == 0
    assert {*REMOTE, *(name for name, about in LOCAL.items() if about)} <= set(shown)
    assert not {name for name, about in LOCAL.items() if about is None} & set(shown)


@pytest.mark.parametrize(("path", "command"), verbs(), ids=[path for path, _ in verbs()])
def test_every_command_has_help_with_what_it_does_and_examples(path: str, command: click.Command, cli: Cli) -> None:
    ran = cli(*path.split(), "--help")

    assert (ran.code, ran.err) == (0, "")
    assert (command.help or "").rstrip().endswith((".", "`."))
    examples = [line.strip() for line in ran.out.partition("\nExamples:\n")[2].splitlines()]
    assert examples or path == "completion"
    assert all(f"leaseway {path}" in line for line in examples), examples


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    assert cli("--version").out == "leaseway 0.1.0\n"


def test_without_a_command_it_says_which_there_are(cli: Cli) -> None:
    ran = cli()

    assert (ran.code, ran.out) == (2, "")
    assert "queue" in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["queu"], "leaseway has no command 'queu'; did you mean queue?"),
        (["queue", "lst"], "leaseway queue has no command 'lst'; did you mean ls or set?"),
        (["tag", "xyzzy"], "leaseway tag has no command 'xyzzy'; there are: ls, create, rm"),
        (["queue", "ls", "--prefx", "a"], "Did you mean one of: '--prefix', '--profile'?"),
        (["queue", "ls", "--limit", "0"], "Invalid value for '--limit': 0 is not in the range x>=1."),
        (["queue", "ls", "-o", "xml"], "'xml' is not one of 'table', 'json', 'jsonl', 'yaml', 'name'"),
        (["queue", "ls", "--timeout", "0"], "0.0 is not in the range 0<x<=86400"),
        (["queue", "ls", "--timeout", "nan"], "a timeout is more than 0 and at most 86400 seconds, given nan"),
        (["queue", "show"], "Missing argument 'QUEUE'"),
        (["queue", "ls", "--endpoint", "here"], "http://HOST:PORT or https://HOST:PORT, given 'here'"),
        (
            ["queue", "ls", "--endpoint", "http://h:99999"],
            "the port of an endpoint is 1 to 65535, given 'http://h:99999'",
        ),
        (["queue", "ls", "--profile", "prod"], "no profile is named 'prod'"),
        (["queue", "ls", "--endpoint", "https://h", "--ca-file", "/none"], "the CA file /none can't be used"),
        (["api", "GET", "v1/queues"], "begins with /, such as /v1/queues, given 'v1/queues'"),
        (["api", "POST", "/v1/queues", "--data", "{"], "--data must be JSON"),
        (["completion", "tcsh"], "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_a_mistake_is_named_on_stderr_and_ends_with_2(arguments: list[str], said: str, cli: Cli) -> None:
    ran = cli(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert cli.service.asked == []


@pytest.mark.parametrize(
    ("status", "code"), [(400, 2), (401, 4), (403, 4), (404, 3), (409, 1), (429, 1), (500, 1), (503, 5)]
)
def test_a_problem_is_one_line_and_an_exit_status(status: int, code: int, cli: Cli) -> None:
    cli.service.on("GET /v1/queues/orders", (status, {"code": "x", "title": "T.", "detail": "It \x1b can't be."}))

    ran = cli("queue", "show", "orders")

    assert (ran.code, ran.out, ran.err) == (code, "", "leaseway queue show: It \\x1b can't be\n")


def test_a_service_that_is_not_there_ends_with_5(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    ran = cli("queue", "ls", "--endpoint", f"http://127.0.0.1:{port}")

    assert (ran.code, ran.out) == (5, "")
    assert ran.err == f"leaseway queue ls: http://127.0.0.1:{port} can't be reached: connection refused\n"


def test_a_service_that_does_not_answer_ends_with_5_and_says_what_may_be_done(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        looked = cli("queue", "ls", "--endpoint", endpoint, "--timeout", "0.05")
        changed = cli("queue", "create", "orders", "--endpoint", endpoint, "--timeout", "0.05")

    assert (looked.code, changed.code) == (5, 5)
    assert looked.err.endswith("did not answer within 0.05 s (--timeout)\n")
    assert changed.err.endswith("(--timeout); it may have been done all the same\n")


def test_something_that_is_no_leaseway_is_named(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, b"<html>"))

    ran = cli("queue", "ls")

    assert ran.code == 1
    assert "answered 200 with text/html, not JSON: is it a Leaseway?" in ran.err


@pytest.mark.parametrize(
    ("arguments", "request_", "answer", "field"),
    [
        (["queue", "ls"], "GET /v1/queues", {"next": None}, "queues"),
        (["queue", "ls"], "GET /v1/queues", {"queues": ["a"]}, "next"),
        (["queue", "ls", "--counts"], "GET /v1/queues", {"queues": [], "counts": []}, "next"),
        (["message", "send", "q", "x"], "POST /v1/queues/q/messages", {}, "messages"),
        (["message", "ack", "q", "h"], "POST /v1/queues/q/ack", {"results": [{"handle": "h"}]}, "status"),
        (["task", "show", "t", "--wait"], "GET /v1/tasks/t", {"id": "t"}, "status"),
        (["doctor"], "GET /health", {"alarms": {}, "native": "on", "plane": "on"}, "status"),
    ],
)
def test_an_answer_without_an_expected_field_is_one_line(
    arguments: list[str], request_: str, answer: dict[str, Any], field: str, cli: Cli
) -> None:
    for path in ("/live", "/ready"):
        cli.service.on(f"GET {path}", (200, {"status": "ok"}))
    cli.service.on("GET /v1/queues", (200, {"queues": [], "next": None}))
    cli.service.on(request_, (200, answer))

    ran = cli(*arguments)

    assert ran.code == (10 if arguments == ["doctor"] else 1)
    assert f"the answer has no '{field}': is it a Leaseway, and of this version?" in ran.err + ran.out
    assert ran.err.count("\n") == 1


def test_yaml_has_objects_of_an_answer(cli: Cli) -> None:
    cli.service.on("GET /v1/queues/orders", (200, {"name": "orders", "tags": [{"name": "default"}]}))

    assert cli("queue", "show", "orders", "-o", "yaml").out == "name: orders\ntags:\n- name: default\n"


def test_the_key_goes_with_every_request(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEWAY_KEY_ID", "shop-1")
    monkeypatch.setenv("LEASEWAY_KEY_SECRET", "s")
    cli.service.on("GET /v1/queues", (200, QUEUES))

    cli("queue", "ls")
    cli("queue", "ls", "--key", "other:o")

    assert [headers["authorization"] for headers in cli.service.headers] == ["Basic c2hvcC0xOnM=", "Basic b3RoZXI6bw=="]


def test_common_options_may_stand_before_and_after_the_command(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, QUEUES))

    assert cli("-o", "json", "queue", "ls").json == cli("queue", "ls", "-o", "json").json
    assert cli("-o", "json", "queue", "ls", "-o", "name").out == "orders\npayments\n"


def test_a_reader_that_goes_away_ends_it_without_a_traceback(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, {"queues": ["q" * 90] * 5000, "next": None}))
    command = f"{sys.executable} -m facade queue ls -o name --endpoint {cli.service.endpoint} | head -1"

    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)

    assert (len(done.stdout), done.stderr) == (91, "")


def test_an_interrupt_ends_with_130(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("facade.programs.connect.client.Client.exchange", interrupted)

    ran = cli("queue", "ls")

    assert (ran.code, ran.err.strip()) == (130, "leaseway: interrupted")


def test_a_command_of_this_machine_gets_its_arguments_and_gives_its_status(cli: Cli) -> None:
    ran = cli("jars", "zzz")

    assert ran.code == 2
    assert ran.err == "leaseway jars: no set of jars is called 'zzz'; there are broker and spark and s3\n"


@pytest.mark.parametrize(
    ("before", "named"),
    [(["-o", "json"], "--output"), (["--endpoint", "http://x"], "--endpoint"), (["--timeout", "5"], "--timeout")],
)
def test_options_before_a_command_of_this_machine_are_not_lost_silently(
    before: list[str], named: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("facade.programs.cli.local.main", lambda _arguments: pytest.fail("it was run"))

    ran = cli(*before, "redrive", "--where", "1=1")

    assert ran.code == 2
    assert f"{named} before `redrive` has no effect; `leaseway redrive --help` has its options" in ran.err


def test_a_stream_that_is_closed_is_no_traceback(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.service.on("GET /v1/queues", (200, QUEUES))

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", None)
        ran = cli("queue", "rm", "orders")
        assert (ran.code, "--yes" in ran.err) == (2, True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", None)
        ran = cli("message", "send", "q", "--lines")
        assert (ran.code, ran.err) == (0, "sent 0 message(s)\n")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", None)
        assert cli("queue", "rm", "orders").code == 2
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        ran = cli("message", "receive", "q", "--ack")
        assert (ran.code, ran.err) == (1, "leaseway: stdout is closed, so nothing was done\n")
    assert cli.service.asked == []


def test_a_question_is_asked_at_a_terminal_alone(cli: Cli) -> None:
    ran = cli("queue", "rm", "orders")

    assert ran.code == 2
    assert ran.err == "leaseway queue rm: delete queue 'orders'? There is no terminal to ask at: --yes agrees\n"
    assert cli.service.asked == []


@pytest.mark.parametrize(("answer", "code", "deleted"), [("y\n", 0, True), ("n\n", 1, False), ("\n", 1, False)])
def test_a_question_says_what_it_is_about_and_no_is_no(
    answer: str, code: int, deleted: bool, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    cli.service.on("GET /v1/queues/orders", (200, {"tags": [{"backlog": 12}, {"backlog": 2}]}))
    cli.service.on("DELETE /v1/queues/orders", (204, None))

    ran = cli("queue", "rm", "orders")

    assert (ran.code, ran.out) == (code, "")
    assert "delete queue 'orders' with 14 messages under 2 tag(s)? [y/N]: " in screen.getvalue()
    assert (("DELETE", "/v1/queues/orders", None) in cli.service.asked) is deleted


def test_the_api_command_sends_anything(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.service.on("PUT /v1/queues/a/grants/b", (200, {"level": "use"}))
    cli.service.on("DELETE /v1/queues/a", (204, None))

    monkeypatch.setattr(sys, "stdin", io.StringIO('{"level": "use"}'))
    assert cli("api", "put", "/v1/queues/a/grants/b", "--data", "-").json == {"level": "use"}
    assert cli("api", "DELETE", "/v1/queues/a").out == ""
    assert cli("api", "GET", "/v1/nothing", "--query", "a=1", "--query", "a=2").code == 3
    assert cli.service.asked == [
        ("PUT", "/v1/queues/a/grants/b", {"level": "use"}),
        ("DELETE", "/v1/queues/a", None),
        ("GET", "/v1/nothing?a=1&a=2", None),
    ]


def test_the_api_command_continues_a_query_and_escapes_what_a_path_can_not_have(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, QUEUES))

    assert cli("api", "GET", "/v1/queues?limit=5", "--query", "prefix=a").code == 0
    assert cli("api", "GET", "/v1/queues/ä b%2F").code == 3
    assert [path for _, path, _ in cli.service.asked] == ["/v1/queues?limit=5&prefix=a", "/v1/queues/%C3%A4%20b%2F"]


def test_the_api_command_has_no_name_for_most_answers(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, QUEUES))

    ran = cli("api", "GET", "/v1/queues", "-o", "name")

    assert (ran.code, ran.out) == (2, "")
    assert "there is no field 'name'" in ran.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_of_completion_names_the_program(shell: str, cli: Cli) -> None:
    ran = cli("completion", shell)

    assert ran.code == 0
    assert "_LEASEWAY_COMPLETE" in ran.out


def test_a_shell_completes_nouns_verbs_options_and_queues(cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, {"queues": ["orders"], "next": None}))

    def completed(*words: str, incomplete: str = "") -> set[str]:
        command = root()
        from click.shell_completion import ShellComplete

        found = ShellComplete(command, {}, "leaseway", "_LEASEWAY_COMPLETE").get_completions(list(words), incomplete)
        return {item.value for item in found}

    assert completed(incomplete="qu") == {"queue"}
    assert completed("queue", incomplete="s") == {"show", "set"}
    assert "--lease-seconds" in completed("queue", "set", incomplete="--lea")
    assert completed("queue", "show", incomplete="or") == {"orders"}
    assert cli.service.asked == [("GET", "/v1/queues?prefix=or&limit=50", None)]


@pytest.mark.parametrize("arguments", [["--version"], ["queue", "ls", "-o", "json"]], ids=" ".join)
def test_the_modules_that_a_command_imports_are_pinned(arguments: list[str], cli: Cli) -> None:
    cli.service.on("GET /v1/queues", (200, QUEUES))
    code = (
        "import sys; from facade.programs.cli.cli import main; status = main(sys.argv[1:]); "
        "import json; print(json.dumps(sorted(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            *arguments,
            *(["--endpoint", cli.service.endpoint] if arguments[0] == "queue" else []),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    imported = json.loads(done.stderr.splitlines()[-1])

    ours = {
        name
        for name in imported
        if name.partition(".")[0] in ("facade", "engine", "state", "runtime", "schemas", "spark")
    }
    program = {
        "facade",
        "facade.programs",
        "facade.programs.cli",
        "facade.programs.cli.cli",
        "facade.programs.connect",
        "facade.programs.connect.answer",
        "facade.programs.connect.client",
        "facade.programs.connect.failures",
        "facade.programs.connect.profiles",
        "facade.programs.cli.output",
        "facade.programs.cli.output.cells",
        "facade.programs.cli.output.forms",
        "facade.programs.cli.program",
        "facade.programs.cli.program.command",
        "facade.programs.cli.program.program",
        "facade.programs.cli.program.session",
        "facade.programs.cli.words",
    }
    queue = {"nouns", "nouns.queue", "program.completion", "program.each", "program.settings", "program.values"}
    assert ours == program | ({f"facade.programs.cli.{name}" for name in queue} if arguments[0] == "queue" else set())
    # Of what is installed, click alone; the largest of the standard library stay out too.
    roots = {name.partition(".")[0] for name in imported}
    assert "click" in roots
    assert not roots & {
        "rich",
        "yaml",
        "msgspec",
        "httpx",
        "pydantic",
        "typer",
        "asyncio",
    }
