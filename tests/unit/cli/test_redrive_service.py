"""The requests of `leaseway redrive`."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from facade.programs.cli.redrive import Service, Unavailable
from facade.programs.stack.processes.errors import StackError
from tests.unit.cli.service import Service as Canned

START, SHOW, CANCEL = "POST /v1/queues/a.dead/redrive", "GET /v1/tasks/t", "DELETE /v1/tasks/t"


def task(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "t", "status": status, **more}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _s: None)


def test_a_task_is_watched_to_its_end_also_while_the_service_is_away(service: Canned) -> None:
    service.on(START, (202, task("running")))
    service.on(SHOW, (503, {"detail": "Away."}), (200, task("running")), (200, task("completed", moved=2)))

    with closing(Service(service.endpoint, "id:se:cret")) as used:
        assert used.redrive("a.dead", ["m"], 5)["moved"] == 2
    assert service.asked[0] == ("POST", "/v1/queues/a.dead/redrive", {"ids": ["m"], "rate": 5})
    assert {headers["authorization"] for headers in service.headers} == {"Basic aWQ6c2U6Y3JldA=="}


def test_what_ends_the_watch_cancels_the_task(service: Canned) -> None:
    service.on(START, (202, task("running")))
    service.on(SHOW, (404, {"detail": "Gone."}))
    service.on(CANCEL, (200, task("cancelled")))

    with closing(Service(service.endpoint, None)) as used, pytest.raises(StackError, match="GET /v1/tasks/t: Gone"):
        used.redrive("a.dead", ["m"], 0)
    assert service.asked[-1][:2] == ("DELETE", "/v1/tasks/t")


def test_a_service_that_is_not_there_and_an_endpoint_that_is_none_are_told_apart() -> None:
    with pytest.raises(Unavailable, match="can't be reached"):
        Service("http://127.0.0.1:1", None).redrive("a.dead", ["m"], 0)
    with pytest.raises(StackError, match="http://HOST:PORT"):
        Service("127.0.0.1:9400", None)
