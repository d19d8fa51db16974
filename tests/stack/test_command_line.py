"""The command line's everyday tasks: the real program as a process, against one Kafka and one Redis
with two workers, of which one asks for keys.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from facade.programs.cli.output.cells import cell
from tests.services import Services
from tests.stack.serving import serving

ROOT = Path(__file__).parents[2]
SECRET = "kq8Zr2vWm5Xt7Yp1Bn4C"
ADMIN = f"admin:{SECRET}"


@dataclass(frozen=True)
class Ran:
    """What a process has printed, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Leaseway:
    """The program with an environment that names a service."""

    endpoint: str
    key: str = ""
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        key_id, _, secret = self.key.partition(":")
        own = {"LEASEWAY_ENDPOINT": self.endpoint, **self.variables, "COLUMNS": "200"}
        return {**os.environ, **own, **({"LEASEWAY_KEY_ID": key_id, "LEASEWAY_KEY_SECRET": secret} if key_id else {})}

    def popen(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "facade", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=self.environment, cwd=ROOT, **{**pipes, **more})

    def run(self, *arguments: str, given: str = "") -> Ran:
        with self.popen(*arguments, stdin=subprocess.PIPE) as process:
            out, err = process.communicate(given, timeout=60)
        return Ran(process.returncode, out, err)

    def ok(self, *arguments: str, given: str = "") -> Ran:
        """A run that must succeed."""
        ran = self.run(*arguments, given=given)
        assert ran.code == 0, (arguments, ran.err)
        return ran

    def json(self, *arguments: str, given: str = "") -> Any:
        """What a run prints as JSON."""
        return self.ok(*arguments, "-o", "json", given=given).json

    def names(self, *arguments: str, given: str = "") -> list[str]:
        """The names that a run prints."""
        return self.ok(*arguments, "-o", "name", given=given).out.split()


@pytest.fixture(scope="module")
def services(stack: Services) -> Iterator[tuple[str, str]]:
    """The endpoints of an open service and of one that asks for keys."""
    with ExitStack() as both:
        yield (
            both.enter_context(serving(stack, "lwcli")),
            both.enter_context(serving(stack, "lwclikeys", "--auth", "required", ADMIN_KEY_SECRET=SECRET)),
        )


@pytest.fixture
def leaseway(services: tuple[str, str], tmp_path: Path) -> Leaseway:
    return Leaseway(services[0], variables={"XDG_CONFIG_HOME": str(tmp_path)})


@pytest.fixture
def admin(services: tuple[str, str], tmp_path: Path) -> Leaseway:
    return Leaseway(services[1], ADMIN, variables={"XDG_CONFIG_HOME": str(tmp_path)})


def table(text: str) -> list[dict[str, str]]:
    """A table of cells without blanks and none empty."""
    head, *lines = text.splitlines()
    return [dict(zip(head.split(), line.split(), strict=True)) for line in lines]


def test_queues_and_tags_from_first_to_last(leaseway: Leaseway) -> None:
    made = leaseway.ok(
        "queue", "create", "books", "--lease-seconds", "60", "--user-attribute", "team=a=b", "-o", "json"
    ).json
    assert (made["lease_seconds"], made["user_attributes"]) == (60, {"team": "a=b"})
    assert (
        leaseway.ok(
            "queue", "create", "books", "--lease-seconds", "60", "--user-attribute", "team=a=b", "-o", "name"
        ).out
        == "books\n"
    )
    assert leaseway.run("queue", "create", "books", "--lease-seconds", "61").code == 1
    leaseway.ok("tag", "create", "books", "eu", "--where", "region=eu")
    leaseway.ok("message", "send", "books", "one", "two", "--attribute", "region=eu")
    leaseway.ok("message", "send", "books", "three")

    # One worker counts for all, every few seconds.
    end = time.monotonic() + 30
    while (rows := leaseway.json("queue", "ls", "--prefix", "books", "--counts"))[0]["backlog"] != 5:
        assert time.monotonic() < end, rows
        time.sleep(0.5)
    (shown,) = table(leaseway.ok("queue", "ls", "--prefix", "books", "--sort", "oldest").out)
    assert [shown[name] for name in ("name", "backlog", "oldest_at_ms")] == [
        cell(name, rows[0][name]) for name in ("name", "backlog", "oldest_at_ms")
    ]
    tags = leaseway.json("tag", "ls", "books")
    assert [(tag["name"], tag["backlog"]) for tag in tags] == [("default", 3), ("eu", 2)]
    listed = leaseway.ok("tag", "ls", "books", "--columns", "name,backlog,ready,leased").out
    assert table(listed) == [{name: str(tag[name]) for name in ("name", "backlog", "ready", "leased")} for tag in tags]

    paused = leaseway.json("queue", "pause", "books", "--reason", "late")
    leaseway.ok("tag", "pause", "books", "eu")
    assert leaseway.json("queue", "show", "books")["paused"] == paused and paused["reason"] == "late"
    assert [tag["paused"] is None for tag in leaseway.json("tag", "ls", "books")] == [True, False]
    assert leaseway.json("queue", "ls", "--prefix", "books", "--counts")[0]["paused"] is True
    assert leaseway.json("message", "receive", "books") == []
    sought = leaseway.json("tag", "seek", "books", "eu", "--to", "earliest", "--yes")
    assert (sought["start_at_ms"], sought["paused"] is None) == (0, False)
    leaseway.ok("queue", "resume", "books")
    leaseway.ok("tag", "resume", "books", "eu")

    changed = leaseway.json("queue", "set", "books", "--receive-wait-seconds", "1")
    assert (changed["receive_wait_seconds"], changed["lease_seconds"]) == (1, 60)
    assert leaseway.json("queue", "copy", "books", "books-2")["lease_seconds"] == 60
    leaseway.ok("queue", "purge", "books", "--yes")
    assert leaseway.json("queue", "show", "books")["tags"][0]["backlog"] == 0
    leaseway.ok("tag", "rm", "books", "eu", "--yes")
    assert leaseway.ok("tag", "ls", "books", "-o", "name").out == "default\n"
    assert leaseway.run("queue", "rm", "books").code == 2
    leaseway.ok("queue", "rm", "books", "books-2", "--yes")
    assert leaseway.ok("queue", "ls", "--prefix", "books", "-o", "name").out == ""
    assert leaseway.run("queue", "show", "books").code == 3


def test_messages_of_arguments_files_and_lines_come_as_they_were(leaseway: Leaseway, tmp_path: Path) -> None:
    leaseway.ok("queue", "create", "in")
    leaseway.ok("queue", "create", "out")
    (tmp_path / "body").write_bytes(b"\xff\x00binary\n")
    leaseway.ok(
        "message", "send", "in", "grüße", "--file", str(tmp_path / "body"), "--attribute", "kind=a", "--number", "n=1.5"
    )
    assert len(leaseway.names("message", "send", "in", "--lines", given="x\ny\n" * 75)) == 150

    rows = [
        json.loads(line)
        for line in leaseway.ok("message", "peek", "in", "--limit", "1000", "-o", "jsonl").out.splitlines()
    ]
    assert sorted(row.get("body", row.get("body_base64")) for row in rows) == sorted(
        ["grüße", "/wBiaW5hcnkK", *["x", "y"] * 75]
    )
    copied = "".join(json.dumps(row) + "\n" for row in rows)
    leaseway.ok("message", "send", "out", "--jsonl", given=copied)
    again = leaseway.json("message", "peek", "out", "--limit", "1000", "--where", "kind=a")
    (binary,) = [row for row in again if "body_base64" in row]
    assert binary["attributes"]["n"] == {"type": "number", "value": "1.5"}

    found = leaseway.ok(
        "message", "search", "in", "--text", "GRÜSSE", "--ignore-case", "--attribute", "kind=a", "-o", "jsonl"
    )
    assert json.loads(found.out)["body"] == "grüße"
    assert found.err == "looked at 152 message(s)\n"

    one = leaseway.json("message", "show", "out", binary["id"])
    assert one == binary
    command = [sys.executable, "-m", "facade", "message", "show", "out", binary["id"], "--body"]
    shown = subprocess.run(command, env=leaseway.environment, cwd=ROOT, capture_output=True, timeout=60, check=True)
    assert shown.stdout == b"\xff\x00binary\n\n"
    assert leaseway.ok("message", "rm", "out", binary["id"], "--yes").err == f"deleted message {binary['id']}\n"
    assert leaseway.run("message", "rm", "out", binary["id"], "--yes").code == 3
    leaseway.ok("queue", "rm", "in", "out", "--yes")


def test_messages_are_received_settled_and_given_back(leaseway: Leaseway) -> None:
    leaseway.ok("queue", "create", "work")
    leaseway.ok("message", "send", "work", "a")
    handle = leaseway.ok("message", "receive", "work", "--wait-seconds", "5", "-o", "name").out.strip()
    assert leaseway.json("message", "peek", "work", "--state", "leased")[0]["receive_count"] == 1
    assert leaseway.json("message", "extend", "work", handle, "--lease-seconds", "90")[0]["status"] == "ok"
    leaseway.ok("message", "release", "work", handle)
    (again,) = leaseway.json("message", "receive", "work", "--wait-seconds", "5")
    assert again["receive_count"] == 2

    stale = leaseway.run("message", "ack", "work", handle, "-o", "json")
    assert (stale.code, stale.json[0]["status"]) == (1, "stale")
    assert "nothing was changed by 1 of 1 handle(s) (stale: " in stale.err
    assert leaseway.json("message", "ack", "work", "-", given=again["handle"] + "\n")[0]["status"] == "ok"
    assert leaseway.run("message", "ack", "work", "nonsense").code == 2

    leaseway.ok("message", "send", "work", "b", "c")
    assert sorted(leaseway.ok("message", "receive", "work", "--max", "2", "--ack", "--body").out.splitlines()) == [
        "b",
        "c",
    ]
    nothing = leaseway.ok("message", "receive", "work", "-o", "json")
    assert (nothing.json, nothing.err) == ([], "no message came\n")

    late = leaseway.ok("message", "send", "work", "late", "--delay-seconds", "600", "-o", "name").out.strip()
    leaseway.ok("message", "reschedule", "work", late, "--at", "2000-01-01")
    assert leaseway.ok("message", "receive", "work", "--wait-seconds", "10", "--ack", "--body").out == "late\n"
    never = leaseway.ok("message", "send", "work", "never", "--delay-seconds", "600", "-o", "name").out.strip()
    leaseway.ok("message", "cancel", "work", never)
    assert leaseway.json("queue", "show", "work")["tags"][0]["backlog"] == 0
    leaseway.ok("queue", "rm", "work", "--yes")


def test_dead_letters_are_seen_and_moved_back(leaseway: Leaseway) -> None:
    leaseway.ok("queue", "create", "shop.dead")
    leaseway.ok("queue", "create", "shop", "--dead-letter-queue", "shop.dead", "--dead-letter-after", "1")
    for body in ("a", "b", "c"):
        leaseway.ok("message", "send", "shop", body)
    handles = leaseway.names("message", "receive", "shop", "--max", "3", "--wait-seconds", "5")
    handles += leaseway.run("message", "receive", "shop", "--max", "3", "--wait-seconds", "2", "-o", "name").out.split()
    leaseway.ok("message", "kill", "shop", *handles)

    end = time.monotonic() + 30
    while len(letters := leaseway.json("dlq", "show", "shop.dead")) < 3 and time.monotonic() < end:
        time.sleep(0.2)
    assert {letter["origin"]["original_queue"] for letter in letters} == {"shop"}
    # One worker counts for all, every few seconds.
    while (rows := leaseway.json("dlq", "ls", "--prefix", "shop")) and rows[0]["backlog"] != 3:
        assert time.monotonic() < end, rows
        time.sleep(0.5)
    assert [row["name"] for row in rows] == ["shop.dead"]
    assert leaseway.json("queue", "show", "shop.dead")["source_queues"] == ["shop"]

    chosen = letters[0]["id"]
    task = leaseway.json("dlq", "redrive", "shop.dead", chosen, "--wait")
    assert (task["status"], task["moved"], task["failed"]) == ("completed", 1, 0)
    assert leaseway.json("task", "show", task["id"], "--wait") == task
    assert leaseway.run("task", "cancel", task["id"]).code == 1
    (outcome,) = leaseway.json("task", "outcomes", task["id"])
    assert (outcome["id"], outcome["outcome"], outcome["queue"]) == (chosen, "moved", "shop")
    assert leaseway.json("message", "show", "shop", outcome["moved_id"])["origin"]["from_id"] == chosen
    told = leaseway.json("message", "show", "shop.dead", chosen, "--events")
    assert [(told[0]["kind"], told[0]["queue"]), (told[-1]["kind"], told[-1]["id"])] == [
        ("sent", "shop"),
        ("moved", outcome["moved_id"]),
    ]
    assert task["id"] in leaseway.names("task", "ls")
    (preview,) = leaseway.json("dlq", "redrive", "shop.dead", "--source", "shop", "--dry-run")
    assert (preview["moved"], preview["failed"]) == (2, {})
    copied = leaseway.json("message", "copy", "shop.dead", letters[1]["id"], "mended")
    assert leaseway.ok("message", "show", "shop", copied["id"], "--body").out == "mended\n"
    leaseway.ok("message", "rm", "shop", copied["id"], "--yes")
    rest = leaseway.ok("dlq", "show", "shop.dead", "-o", "name").out
    assert leaseway.json("dlq", "redrive", "shop.dead", "-", "--wait", given=rest)["moved"] == 2
    assert leaseway.json("queue", "show", "shop")["tags"][0]["backlog"] == 3
    leaseway.ok("queue", "rm", "shop", "shop.dead", "--yes")


def test_a_tail_prints_what_is_sent_until_it_is_interrupted(leaseway: Leaseway) -> None:
    leaseway.ok("queue", "create", "log")
    leaseway.ok("message", "send", "log", "before")
    with leaseway.popen("message", "tail", "log", "-f", "-o", "jsonl") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        leaseway.ok("message", "send", "log", "--lines", given="\n".join(f"line {n}" for n in range(20)))
        then = [json.loads(process.stdout.readline())["body"] for _ in range(20)]
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=30)
    assert first["body"] == "before"
    assert sorted(then) == sorted(f"line {n}" for n in range(20))
    assert (process.returncode, rest, err.strip()) == (130, "", "leaseway: interrupted")
    leaseway.ok("queue", "rm", "log", "--yes")


def test_transactions_alerts_and_the_tools(leaseway: Leaseway) -> None:
    leaseway.ok("queue", "create", "pay")
    half = leaseway.ok("tx", "prepare", "pay", "paid", "--producer-group", "shop", "-o", "name").out.strip()
    assert leaseway.json("tx", "show", half)["status"] == "open"
    # A worker lists what it has read of the topic of half messages.
    end = time.monotonic() + 30
    while (listed := leaseway.names("tx", "ls", "pay", "--status", "open")) != [half] and time.monotonic() < end:
        time.sleep(0.2)
    assert listed == [half]
    assert leaseway.json("tx", "commit", half)["status"] == "committed"
    assert leaseway.ok("message", "receive", "pay", "--wait-seconds", "10", "--ack", "--body").out == "paid\n"
    assert leaseway.run("tx", "rollback", half).code == 1

    options = "--subject queue_message_number --measurement count --threshold 10"
    policy = leaseway.ok("alert", "create", "pay", *options.split(), "-o", "name").out.strip()
    assert leaseway.json("alert", "ls", "pay")[0]["threshold"] == 10
    assert leaseway.json("alert", "history", "pay") == []
    leaseway.ok("alert", "rm", "pay", policy, "--yes")

    checks = leaseway.json("doctor")
    assert {check["check"]: check["status"] for check in checks} == dict.fromkeys(
        ("reachable", "ready", "healthy", "key"), "ok"
    )
    assert "pay" in leaseway.names("top", "--once", "--limit", "1000")
    figures = leaseway.json("bench", "--messages", "200")
    assert figures["sent"]["messages"] == 200
    assert figures["received"]["messages"] >= 200
    assert leaseway.ok("queue", "ls", "--prefix", "bench-", "-o", "name").out == ""
    assert leaseway.ok("api", "GET", "/v1/queues/pay/tags", "-o", "jsonl").json["tags"][0]["name"] == "default"
    leaseway.ok("queue", "rm", "pay", "--yes")


def test_keys_open_what_their_roles_allow_and_exit_statuses_say_so(admin: Leaseway, tmp_path: Path) -> None:
    nobody, wrong = Leaseway(admin.endpoint), Leaseway(admin.endpoint, "admin:wrong")
    assert nobody.run("queue", "ls").code == 4
    assert wrong.run("queue", "ls").code == 4
    assert nobody.run("doctor").code == 10

    admin.ok("queue", "create", "vault")
    secret = admin.json("key", "create", "night-1", "--principal", "night", "--role", "reader")["secret"]
    assert "night-1" in admin.names("key", "ls")
    (tmp_path / "leaseway").mkdir()
    profiles = tmp_path / "leaseway" / "profiles.toml"
    profiles.write_text(
        f'[profiles.night]\nendpoint = "{admin.endpoint}"\nkey_id = "night-1"\nkey_secret = "{secret}"\n'
    )
    profiles.chmod(0o600)
    reader = Leaseway("http://127.0.0.1:1", variables=admin.variables)

    assert reader.json("--profile", "night", "queue", "show", "vault")["name"] == "vault"
    for arguments in (
        ("queue", "purge", "vault", "--yes"),
        ("message", "send", "vault", "x"),
        ("message", "peek", "vault"),
        ("key", "ls"),
    ):
        refused = reader.run(*arguments, "--profile", "night")
        assert (refused.code, refused.out) == (4, ""), arguments

    rotated = reader.json("key", "rotate", "night-1", "--grace-seconds", "0", "--profile", "night")["secret"]
    assert reader.run("queue", "ls", "--profile", "night").code == 4
    assert Leaseway(admin.endpoint, f"night-1:{rotated}").ok("queue", "show", "vault", "-o", "name").out == "vault\n"
    assert admin.json("user", "quota", "night", "--queues", "7")["queues"] == 7
    assert admin.json("user", "show", "night")["queues"] == 7
    admin.ok("key", "rm", "night-1", "--yes")
    admin.ok("queue", "rm", "vault", "--yes")


def test_a_list_of_queues_costs_at_most_a_fifth_of_a_second_of_processor(leaseway: Leaseway) -> None:
    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    costs = []
    for _ in range(5):
        before = spent()
        leaseway.ok("queue", "ls", "-o", "json")
        costs.append(spent() - before)

    assert min(costs) <= 0.2, costs


def test_definitions_go_from_one_service_to_another(leaseway: Leaseway, admin: Leaseway, tmp_path: Path) -> None:
    leaseway.ok("queue", "create", "defs-line", "--fifo", "--lease-seconds", "7")
    leaseway.ok("queue", "create", "defs-zdead")
    leaseway.ok("queue", "create", "defs-orders", "--dead-letter-queue", "defs-zdead", "--dead-letter-after", "5")
    leaseway.ok("tag", "create", "defs-orders", "eu", "--where", "region=eu", "--where", "kind")
    leaseway.ok("grant", "set", "defs-orders", "billing", "handle", "--tag", "eu")
    leaseway.ok("api", "POST", "/v1/queues/defs-orders/alerts", "--data",
                '{"subject": "send_request", "measurement": "count", "threshold": 1000}')  # fmt: skip
    given = yaml.safe_load(leaseway.ok("export", "--prefix", "defs-").out)
    assert [queue["name"] for queue in given["queues"]] == ["defs-line", "defs-orders", "defs-zdead"]
    given["users"] = [{"name": "billing", "queues": 7}]
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump(given))

    bad = json.dumps({"queues": [{"name": "defs-new"}, {**given["queues"][1], "lease_seconds": 99999}]})
    refused = admin.run("apply", "-f", "-", given=bad)
    assert (refused.code, "queues[1].lease_seconds must be 0 to 43200" in refused.err) == (2, True), refused.err
    assert admin.run("diff", "-f", str(file)).code == 1
    assert len(admin.json("apply", "-f", str(file), "--dry-run")) == 7
    assert admin.names("queue", "ls", "--prefix", "defs-") == []
    assert len(admin.json("apply", "-f", str(file))) == 7
    assert admin.ok("diff", "-f", str(file)).out == "" or admin.json("diff", "-f", str(file)) == []
    shown = yaml.safe_load(admin.ok("export", "--prefix", "defs-").out)
    assert shown["queues"] == given["queues"]
    assert admin.json("user", "show", "billing")["queues"] == 7
    assert leaseway.json("apply", "-f", "-", given=admin.ok("export", "--prefix", "defs-").out)[0]["kind"] == "user"

    del given["queues"][1]["tags"][0], given["users"]
    file.write_text(json.dumps(given))
    assert admin.json("apply", "-f", str(file)) == []
    assert admin.run("apply", "-f", str(file), "--prune", "tags").code == 2
    (gone,) = admin.json("apply", "-f", str(file), "--prune", "tags", "--yes")
    assert (gone["action"], gone["kind"], gone["queue"], gone["name"]) == ("delete", "tag", "defs-orders", "eu")
    assert admin.names("tag", "ls", "defs-orders") == ["default"]


def until(look: Callable[[], bool]) -> None:
    """Returns when something is so, within 30 s."""
    end = time.monotonic() + 30
    while not look():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_the_everyday_tasks_of_the_console_are_done_by_the_command_line_alone(  # noqa: PLR0915 - a day of work
    admin: Leaseway, tmp_path: Path
) -> None:
    """What tests/stack/test_console.py does with pages, task by task, and how each ends is asked of
    the command line, too.
    """
    ok, ask, names = admin.ok, admin.json, admin.names
    # 1, 2: queues for dead letters and with a policy; 3: another setting; what is wrong is said.
    for name in ("day.dead", "day"):
        ok("queue", "create", name, "--lease-seconds", "45")
    ok("queue", "set", "day", "--dead-letter-queue", "day.dead", "--dead-letter-after", "3")
    assert ask("queue", "set", "day", "--lease-seconds", "60")["redrive_policy"]["max_receive_count"] == 3
    assert "99999" in admin.run("queue", "set", "day", "--lease-seconds", "99999").err
    # 4: a tag; 5: nobody receives under it, and who asks is told why; 6: it begins anew.
    ok("tag", "create", "day", "audit", "--where", "kind=retail")
    ok("tag", "pause", "day", "audit", "--reason", "the shop moves")
    assert "paused by admin: the shop moves" in admin.run("message", "receive", "day", "--tag", "audit").err
    ok("tag", "resume", "day", "audit")
    ok("tag", "seek", "day", "audit", "--to", "earliest", "--yes")
    # 7: a message with an attribute, of stdin; 8: looks that count nothing; 9: its life.
    (one,) = names("message", "send", "day", "-", "--attribute", "kind=retail", given="hello")
    assert [row["body"] for row in ask("message", "search", "day", "--text", "hell")] == ["hello"]
    assert ask("message", "peek", "day", "--where", "kind=other") == []
    assert ask("message", "show", "day", one)["receive_count"] == 0
    assert [event["kind"] for event in ask("message", "show", "day", one, "--events")] == ["sent"]
    # 10: it dies with others; 11: a dry run; 12: one goes back; 13: what came of it; 14: the rest.
    ok("message", "send", "day", *(f"letter {number}" for number in range(9)))
    killed = 0
    while killed < 10:
        handles = names("message", "receive", "day", "--max", "100", "--wait-seconds", "5")
        if handles:
            ok("message", "kill", "day", *handles, "--reason", "bad address")
        killed += len(handles)
    letters = names("dlq", "show", "day.dead")
    assert len(letters) == 10
    assert [row["moved"] for row in ask("dlq", "redrive", "day.dead", "--dry-run")] == [10]
    task = ask("dlq", "redrive", "day.dead", letters[0], "--wait")
    assert [row["outcome"] for row in ask("task", "outcomes", task["id"])] == ["moved"]
    assert ask("dlq", "redrive", "day.dead", "--wait")["moved"] == 9
    assert task["id"] in names("task", "ls")
    # 15: a document is compared, and made true.
    document = ask("export", "--prefix", "day")
    next(queue for queue in document["queues"] if queue["name"] == "day")["lease_seconds"] = 61
    file = tmp_path / "day.json"
    file.write_text(json.dumps({"queues": document["queues"]}))
    differs = admin.run("diff", "-f", str(file), "-o", "json")
    assert (differs.code, [change["field"] for change in differs.json]) == (1, ["lease_seconds"])
    ok("apply", "-f", str(file))
    assert ask("queue", "show", "day")["lease_seconds"] == 61
    # 16: a level; an alert; a transaction that is rolled back; a key that only looks.
    ok("grant", "set", "day", "eve", "use")
    assert ask("grant", "ls", "day") == [{"principal": "eve", "level": "use"}]
    ok("grant", "rm", "day", "eve", "--yes")
    watch = "--subject queue_message_number --measurement count --threshold 1000"
    assert names("alert", "create", "day", *watch.split()) == names("alert", "ls", "day")
    (half,) = names("tx", "prepare", "day", "t", "--producer-group", "g")
    until(lambda: half in names("tx", "ls", "day"))
    assert ask("tx", "rollback", half)["status"] == "rolled_back"
    key = ask("key", "create", "day-looker", "--principal", "day-looker", "--role", "reader")
    looker = Leaseway(admin.endpoint, f"{key['key_id']}:{key['secret']}", admin.variables)
    assert looker.json("queue", "show", "day")["name"] == "day"
    assert (looker.run("message", "peek", "day").code, looker.run("queue", "purge", "day", "--yes").code) == (4, 4)
    # 17: health, and what is in queues; 18: what can't be undone wants a yes.
    assert {check["status"] for check in ask("doctor")} == {"ok"}
    until(lambda: "day" in names("top", "--once", "--limit", "1000"))
    refused = admin.run("queue", "purge", "day")
    assert (refused.code, "There is no terminal" in refused.err) == (2, True)
    ok("queue", "purge", "day", "--yes")
    ok("tag", "rm", "day", "audit", "--yes")
    ok("queue", "rm", "day", "day.dead", "--yes")
    assert admin.run("queue", "show", "day").code == 3
