"""The access log: which requests have a line, and what it says."""

from __future__ import annotations

import logging

import pytest

from facade.http.log.access_log import AccessLog, log


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == log.name]


@pytest.mark.parametrize(("every", "lines"), [(0, 0), (1, 1_000), (3, 333), (1_000, 1), (1_001, 0)])
def test_every_so_many_th_request_has_a_line(every: int, lines: int) -> None:
    access = AccessLog(every)
    assert sum(access.wants(200) for _ in range(1_000)) == lines


def test_a_failure_has_one_in_any_case_unless_there_is_no_log() -> None:
    assert AccessLog(1_000).wants(503) and not AccessLog(1_000).wants(404)
    assert not AccessLog(0).wants(503)


def test_a_line_says_who_asked_for_what_and_how_it_ended(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, log.name)
    access = AccessLog(1)
    who = {"principal": "shop", "queue": "orders", "tag": "b"}
    access.write("receive", 200, 0.0125, "id-1", by="python", peer="10.0.0.1", client_id="a b\nc" + "x" * 200, **who)
    access.write("send", 503, 0.001, "id-2", by="plane", **who)
    first, second = said(caplog)
    assert first.startswith(
        "action=request verb=receive status=200 ms=12.500 principal=shop queue=orders tag=b peer=10.0.0.1 by=python "
    )
    assert len(first) < 400
    assert "client_id=a?b?cxxx" in first and first.endswith("request_id=id-1")
    assert "status=503" in second and "by=plane" in second and second.endswith("request_id=id-2")
