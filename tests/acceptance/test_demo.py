"""`leaseway demo`, run as its users run it: the account it prints is right, and it ends with the
right status.

The figures are typed by hand from the data set: 3,376 rows; 12 airports without city and state; 8
islands on the wrong side of the equator or of the date line; 614 airports in the states of tag
`pacific`, those 8 among them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from facade.programs.demo.account import Outcome, Tag, checks
from facade.programs.demo.airports import BadRow, Directory, Distances, rows
from facade.programs.demo.flow import Duty, Sent, Tally
from facade.programs.demo.page import account_page
from facade.programs.stack.processes.ports import free_port
from tests.acceptance.traffic import Client
from tests.conftest import StartUp

FIGURES = {
    "sent to it": ("3,376", "614"),
    "received a first time": ("3,376", "614"),
    "acked": ("3,356", "606"),
    "dead-lettered": ("20", "8"),
    "left in the queue": ("0", "0"),
}
NO_CITY = ["CLD", "HHH", "MIB", "MQT", "RCA", "RDR", "ROP", "ROR", "SCE", "SKA", "SPN", "YAP"]
WRONG_LATITUDE, WRONG_LONGITUDE = ["FAQ", "PPG", "Z08"], ["GRO", "GSN", "GUM", "TNI", "TT01"]
BOUND_S = 90


def demo(*options: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "facade.programs.demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


def assert_account(page: str) -> None:
    figures = {}
    for line in page.splitlines():
        if match := re.fullmatch(r"  (\D+?)  +([\d,]+)  +([\d,]+)", line):
            figures[match[1]] = (match[2], match[3])
    # Three deliveries of what is bad make two retries; a slow machine may lose leases and add some.
    again = tuple(int(figure) for figure in figures.pop("received again (retries)"))
    assert again[0] >= 40 and again[1] >= 16
    assert figures == FIGURES
    for codes in (NO_CITY, WRONG_LATITUDE, WRONG_LONGITUDE):
        assert f"      {' '.join(codes)}\n" in page
    assert page.count("\n  yes  ") == 11 and "\n  NO " not in page


@pytest.mark.usefixtures("programs")
def test_the_demo_starts_its_own_stack_and_its_account_adds_up(tmp_path: Path) -> None:
    began = time.monotonic()
    process = demo(environment={"TMPDIR": str(tmp_path)})
    try:
        page, said = process.communicate(timeout=BOUND_S)
    finally:
        process.terminate()
        process.wait()

    assert (process.returncode, said) == (0, ""), page
    assert_account(page)
    assert page.endswith("\nIt adds up.\n")
    assert time.monotonic() - began < BOUND_S
    assert_nothing_is_left(tmp_path)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("number", "during"), [(signal.SIGINT, "traffic"), (signal.SIGTERM, "traffic"), (signal.SIGTERM, "start")]
)
def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path, number: signal.Signals, during: str) -> None:
    process = demo(environment={"TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    while during == "traffic" and "sent" not in process.stdout.readline():
        assert process.poll() is None
    while during == "start" and not list(tmp_path.glob("leaseway-demo-*/data/stack.json")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=BOUND_S)

    assert (process.returncode, said) == (130, "leaseway demo: interrupted\n")
    assert_nothing_is_left(tmp_path)


def test_the_demo_uses_a_running_leaseway_and_leaves_its_queues_there(leaseway_up: StartUp) -> None:
    up = leaseway_up("--workers", "2")
    up.wait_ready()

    process = demo("--endpoint", up.endpoint)
    page, said = process.communicate(timeout=BOUND_S)
    again = demo("--endpoint", up.endpoint)
    _, refused = again.communicate(timeout=BOUND_S)

    assert (process.returncode, said) == (0, ""), page
    assert_account(page)
    with contextlib.closing(Client(up.endpoint)) as client:
        queue = client.call("GET", "/v1/queues/airports")[1]
        assert {tag["name"]: tag["backlog"] for tag in queue["tags"]} == {"default": 3376, "all": 0, "pacific": 0}
        dead_letters = client.call("GET", "/v1/queues/airports-dlq/messages?limit=100")[1]["messages"]
    assert Counter(dead_letter["origin"]["from_tag"] for dead_letter in dead_letters) == {"all": 20, "pacific": 8}
    assert again.returncode == 2
    assert refused == "leaseway demo: queue airports is there already; delete it, or give --queue another name\n"


def test_the_demo_says_in_one_line_that_nobody_answers() -> None:
    process = demo("--endpoint", f"http://127.0.0.1:{free_port()}")
    _, said = process.communicate(timeout=BOUND_S)

    assert process.returncode == 2
    assert said.startswith("leaseway demo: ") and "connection refused" in said and said.count("\n") == 1


def test_the_data_has_exactly_the_faults_that_it_is_known_for() -> None:
    found: dict[str, list[str]] = {}
    directory, distances = Directory(), Distances()
    for row in rows():
        try:
            directory.take(row)
            distances.take(row)
        except BadRow as fault:
            found.setdefault(fault.kind, []).append(row["iata"])

    assert {kind: sorted(codes) for kind, codes in found.items()} == {
        "city missing": NO_CITY,
        "latitude outside its state": WRONG_LATITUDE,
        "longitude outside its state": WRONG_LONGITUDE,
    }


def outcome_of_one_good_and_one_bad_row() -> Outcome:
    bad = BadRow("city missing", "city is 'NA'")
    tally = Tally(2, 4, Counter(good=1, bad=3), Counter(good=1), {"bad": bad}, 3)
    sent = Sent(2, 1, {"good": {"iata": "ABC", "name": "Abc"}, "bad": {"iata": "XYZ", "name": "Xyz"}}, 1.0, 2.0)
    origin = {"from_tag": "all", "original_id": "bad", "reason": "exhausted", "receive_count": 3}
    duty = Duty("worker", "all", Directory(), 30.0, 0.5)
    return Outcome("dlq", [Tag("all", "every row", None)], sent, {duty: tally}, [{"origin": origin}], {"all": 0})


def test_an_account_that_adds_up_has_no_check_that_fails() -> None:
    assert [check.text for check in checks(outcome_of_one_good_and_one_bad_row()) if not check.holds] == []


def without_the_dead_letter(outcome: Outcome) -> Outcome:
    return dataclasses.replace(outcome, dead_letters=[])


def with_the_dead_letter_twice(outcome: Outcome) -> Outcome:
    return dataclasses.replace(outcome, dead_letters=[*outcome.dead_letters, *outcome.dead_letters])


def with_an_ack_of_what_died(outcome: Outcome) -> Outcome:
    next(iter(outcome.tallies.values())).acked["bad"] += 1
    return outcome


def with_an_ack_that_counted_twice(outcome: Outcome) -> Outcome:
    next(iter(outcome.tallies.values())).acked["good"] += 1
    return outcome


def with_an_unsent_row(outcome: Outcome) -> Outcome:
    outcome.sent.read += 1
    return outcome


def with_a_stranger_acked(outcome: Outcome) -> Outcome:
    next(iter(outcome.tallies.values())).acked["stranger"] += 1
    return outcome


def with_something_left(outcome: Outcome) -> Outcome:
    return dataclasses.replace(outcome, backlogs={"all": 1})


def with_an_early_death(outcome: Outcome) -> Outcome:
    outcome.dead_letters[0]["origin"]["receive_count"] = 2
    return outcome


def with_a_death_for_nothing(outcome: Outcome) -> Outcome:
    next(iter(outcome.tallies.values())).failures.clear()
    return outcome


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (without_the_dead_letter, "all: 2 sent = 1 acked + 0 dead"),
        (with_the_dead_letter_twice, "2 dead letters in dlq = 1 dead under the tags"),
        (with_an_ack_of_what_died, "all: 2 sent = 2 acked + 1 dead"),
        (with_an_ack_that_counted_twice, "all: each message ended once"),
        (with_an_unsent_row, "3 rows read = 2 sent"),
        (with_a_stranger_acked, "all: each message ended once"),
        (with_something_left, "all: 1 left in the queue"),
        (with_an_early_death, "0 of 1 dead letters died after 3 deliveries"),
        (with_a_death_for_nothing, "all: 1 dead = 0 that its consumers could not use"),
    ],
)
def test_an_account_that_does_not_add_up_says_which_sum_is_wrong(spoil: object, says: str) -> None:
    assert callable(spoil)
    outcome = spoil(outcome_of_one_good_and_one_bad_row())

    verdicts = checks(outcome)

    assert any(check.text.startswith(says) for check in verdicts if not check.holds), verdicts
    assert f"  NO   {says}" in account_page(outcome, verdicts)


def assert_nothing_is_left(folder: Path) -> None:
    """Neither a file of the demo's nor a process that was started with `folder` as its place for
    temporary files.
    """
    assert [path.name for path in folder.iterdir() if path.name.startswith("leaseway-demo-")] == []
    mark = f"TMPDIR={folder}".encode()
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                left.append((process / "cmdline").read_bytes())
    assert left == []
