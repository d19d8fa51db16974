"""`leaseway export`, `diff` and `apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.services.definitions.shapes import PRUNED
from facade.programs.cli.tools import document
from tests.unit.cli.service import Cli

DOCUMENT = {"version": 1, "queues": [{"name": "orders", "lease_seconds": 60, "tags": []}], "users": []}


def change(action: str = "change", **more: Any) -> dict[str, Any]:
    row = {"kind": "queue", "name": "orders", "queue": None, "field": "lease_seconds", "before": 30, "after": 60}
    return {"action": action, **row, **more}


def applied(*changes: dict[str, Any], dry_run: bool = False) -> tuple[int, Any]:
    return 200, {"dry_run": dry_run, "changes": list(changes)}


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump(DOCUMENT))
    return str(tmp_path / "queues.yaml")


def test_export_prints_the_document_as_yaml_or_json(cli: Cli) -> None:
    cli.service.on("GET /v1/definitions", (200, DOCUMENT))

    assert yaml.safe_load(cli("export").out) == DOCUMENT
    assert cli("export", "--prefix", "o", "-o", "json").json == DOCUMENT
    assert [path for _, path, _ in cli.service.asked] == ["/v1/definitions", "/v1/definitions?prefix=o"]


def test_diff_ends_with_1_where_something_differs(cli: Cli, file: str) -> None:
    cli.service.on("PUT /v1/definitions", applied(change()), applied())

    ran = cli("diff", "-f", file, "-o", "json", "--prune", "tags", "--prune", "grants")
    assert (ran.code, ran.json, ran.err) == (1, [change()], "leaseway diff: 1 difference(s)\n")
    assert cli("diff", "-f", file).code == 0
    assert [path for _, path, _ in cli.service.asked] == [
        "/v1/definitions?dry_run=true&prune=tags&prune=grants",
        "/v1/definitions?dry_run=true",
    ]
    assert cli.service.asked[0][2] == DOCUMENT


def test_apply_says_what_was_done(cli: Cli, file: str) -> None:
    cli.service.on("PUT /v1/definitions", applied(change()))

    ran = cli("apply", "-f", file)
    assert (ran.code, ran.err) == (0, "1 change(s) made\n")
    assert ran.out.splitlines()[1].split() == ["change", "queue", "orders", "lease_seconds", "30", "60"]
    assert cli("apply", "-f", file, "--dry-run", "--prune", "tags").err == "1 change(s) to make\n"
    assert [path for _, path, _ in cli.service.asked] == [
        "/v1/definitions",
        "/v1/definitions?dry_run=true&prune=tags",
    ]


def test_apply_deletes_only_what_somebody_has_agreed_to(cli: Cli, file: str) -> None:
    gone = change("delete", kind="tag", name="eu", queue="orders", field=None, before=None, after=None)
    cli.service.on("PUT /v1/definitions", applied(gone, dry_run=True))

    ran = cli("apply", "-f", file, "--prune", "tags")
    assert ran.code == 2 and "delete tag 'orders/eu'? There is no terminal" in ran.err
    assert [path for _, path, _ in cli.service.asked] == ["/v1/definitions?dry_run=true&prune=tags"]
    assert cli("apply", "-f", file, "--prune", "tags", "--yes").code == 0
    assert cli.service.asked[-1][1] == "/v1/definitions?prune=tags"


def test_what_is_refused_is_told_with_its_path(cli: Cli, file: str) -> None:
    detail = "queues[0].lease_seconds must be 0 to 43200, given -1."
    problem = {"code": "invalid_value", "title": "x", "detail": detail, "field": "queues[0].lease_seconds"}
    cli.service.on("PUT /v1/definitions", (400, problem))

    ran = cli("apply", "-f", file)
    assert ran.code == 2 and "queues[0].lease_seconds must be 0 to 43200" in ran.err


@pytest.mark.parametrize("text", ["- a\n", "a: [", "plain"])
def test_a_file_that_is_no_document_is_wrong_use(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)

    assert cli("apply", "-f", str(tmp_path / "x")).code == 2
    assert cli("diff", "-f", str(tmp_path / "none")).code == 2
    assert cli.service.asked == []


def test_what_may_be_pruned_is_what_the_engine_says() -> None:
    assert document.PRUNED == PRUNED
