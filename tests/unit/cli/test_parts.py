"""Documents that are too large for one request, and what becomes of their parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.services.definitions.shapes import MAX_DEFINITIONS
from facade.http.decode import MOST_VALUES, check_values
from facade.programs.cli.tools.document import MOST_COMMAS, MOST_QUEUES, parts
from facade.programs.connect.failures import Failure
from tests.unit.cli.service import Cli


def queue(name: str, dead: str = "", **more: Any) -> dict[str, Any]:
    policy = {"redrive_policy": {"dead_letter_queue": dead, "max_receive_count": 3}} if dead else {}
    return {"name": name, **policy, **more}


def test_a_document_that_fits_goes_as_it_is() -> None:
    for document in ({}, {"queues": [queue("a")]}, {"queues": "bad"}, {"queues": [queue("a")] * 2_000}):
        assert parts(document) == [document]


def test_ten_thousand_queues_go_in_parts_that_can_be_planned_by_themselves() -> None:
    many = [queue(f"q{n}", "dead" if n % 2 else f"q{n - 1}", lease_seconds=n) for n in range(1, 10_000)]
    tagged = queue("last", tags=[{"name": "t", **queue("", "far")}])
    document = {"users": [{"name": "u"}], "queues": [*many, queue("dead", "dead"), queue("far", "last"), tagged]}
    cut = parts(document)
    assert 10 <= len(cut) <= 14
    assert [part.get("users") for part in cut] == [[{"name": "u"}], *[None] * (len(cut) - 1)]
    known: set[str] = set()
    for part in cut:
        names = {one["name"] for one in part["queues"]}
        assert len(names) == len(part["queues"]) <= MOST_QUEUES == MAX_DEFINITIONS
        for one in part["queues"]:
            policies = [one, *one.get("tags", ())]
            assert {
                each["redrive_policy"]["dead_letter_queue"] for each in policies if "redrive_policy" in each
            } <= names
        check_values(json.dumps(part).encode())
        known |= names
    assert known == {one["name"] for one in document["queues"]}
    assert MOST_COMMAS < MOST_VALUES


def test_queues_with_many_values_go_in_more_parts() -> None:
    document = {"queues": [queue(f"q{n}", user_attributes={f"a{k}": "," for k in range(50)}) for n in range(1_000)]}
    cut = parts(document)
    assert len(cut) == 3
    for part in cut:
        check_values(json.dumps(part).encode())


def test_a_chain_that_does_not_fit_is_refused() -> None:
    chain = [queue(f"q{n}", f"q{n + 1}") for n in range(1_001)]
    with pytest.raises(Failure, match="queue 'q0' and the queues of its dead letters are too much for one request"):
        parts({"queues": chain})


def test_changes_of_all_parts_are_told_once_and_a_failure_says_how_far_it_went(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "queues.json"
    file.write_text(json.dumps({"queues": [*(queue(f"q{n}", "dead") for n in range(1_500)), queue("dead")]}))

    def told(*names: str) -> tuple[int, Any]:
        changes = [{"action": "create", "kind": "queue", "queue": "", "name": name, "field": ""} for name in names]
        return 200, {"changes": changes}

    path = "PUT /v1/definitions"
    cli.service.on(path, told("dead", "q0"), told("dead", "q1499"))
    ran = cli("diff", "-f", str(file), "-o", "name")
    assert (ran.code, ran.out.split()) == (1, ["dead", "q0", "q1499"])
    assert [len(body["queues"]) for _, _, body in cli.service.asked] == [1_000, 502]

    cli.service.on(path, told("q0"), (409, {"code": "queue_exists", "detail": "queues[3] exists"}))
    ran = cli("apply", "-f", str(file))
    assert ran.code != 0 and "queues[3] exists; 1 of 2 parts of the document are applied" in ran.err
    cli.service.asked.clear()
    refused = cli("apply", "-f", str(file), "--prune", "queues", "--yes")
    assert (refused.code, "--prune queues needs a document that goes in one request" in refused.err) == (2, True)
    assert cli.service.asked == []
