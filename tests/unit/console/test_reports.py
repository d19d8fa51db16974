"""Causes of dead letters that the console reads from Spark's reports."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from facade.programs.console.order import Order
from facade.programs.console.web import reports
from facade.programs.console.web.reports import Cause, Reports
from tests.unit.cli.service import Service
from tests.unit.console.answers import PAGE
from tests.unit.console.conftest import EVIL, READER, Browser, client_of, lets, queue

CAUSE: dict[str, Any] = {
    "says": f"country {EVIL}", "dead_letters": 1200, "at_rest": 7, "share": 0.5, "queues": ["orders"],
    "source_queues": ["shop", None], "reasons": ["exhausted"],
}  # fmt: skip
SUMMARY: dict[str, Any] = {"from": "2026-11-01T00:00:00", "to": "2026-11-02T00:00:00", "totals": [], "causes": [CAUSE]}


def written(folder: Path, name: str, summary: object, at_s: int) -> Path:
    path = folder / name / "summary.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(summary if isinstance(summary, str) else json.dumps(summary), encoding="utf-8")
    os.utime(path, (at_s, at_s))
    return path


def test_the_report_that_was_written_last_is_read_again_only_when_another_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Reports(str(tmp_path / "reports"))
    assert known.newest() is None
    path = written(tmp_path / "reports", "b", SUMMARY, 100)
    found = known.newest()
    assert found is not None and (found.begin, found.about("orders")[0].dead_letters) == ("2026-11-01T00:00:00", 1200)
    assert found.about("shop") == []
    assert known.newest() is found
    written(tmp_path / "reports", "a", {**SUMMARY, "causes": []}, 200)
    newer = known.newest()
    assert newer is not None and newer.about("orders") == []
    (tmp_path / "reports" / "a" / "summary.json").unlink()
    older = known.newest()
    assert older is not None and isinstance(older.causes[0], Cause)
    monkeypatch.setattr(reports, "MOST_BYTES", 10)
    os.utime(path, (300, 300))
    assert known.newest() is None


@pytest.mark.parametrize("summary", ["{", "[]", {"from": "x", "to": "y"}, {**SUMMARY, "causes": [{"says": 1}]}])
def test_a_summary_that_is_none_is_logged_and_is_no_report(
    tmp_path: Path, summary: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, "a", summary, 100)
    assert Reports(str(tmp_path)).newest() is None
    assert f"action=read_report file={path}" in caplog.text
    assert Reports("").newest() is None


async def test_letters_have_their_causes_beside_them(tmp_path: Path, service: Service) -> None:
    service.on("GET /v1/queues/orders/messages", (200, PAGE))
    written(tmp_path, "a", SUMMARY, 100)
    async with client_of(Order(service.endpoint, key="a key of sixteen letters", reports=str(tmp_path))) as client:
        browser = Browser(client)
        shown = (await browser.get("/queue/orders/letters")).text
        assert "country &lt;script&gt;" in shown and EVIL not in shown
        assert "1,200" in shown and "2026-11-02" in shown
        written(tmp_path, "a", {**SUMMARY, "causes": []}, 200)
        assert "knows no cause" in (await browser.get("/queue/orders/letters")).text
        service.on("GET /v1/queues/orders", (200, queue(mask=["country"])))
        lets(service, ["get_queue", "query"], [])
        assert "h-causes" not in (await browser.get("/queue/orders/letters")).text
        lets(service, ["get_queue", "query", "unmask"], [])
        assert "h-causes" in (await browser.get("/queue/orders/letters")).text
        # Who may not look at messages is not told what their bodies have in common.
        lets(service, [*READER, "redrive"], [])
        assert "h-causes" not in (await browser.get("/queue/orders/letters")).text
