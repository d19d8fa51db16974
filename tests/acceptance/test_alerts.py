"""Alerts through the real `leaseway up` with two workers and minutes of two seconds; the worker
that judges is killed. With true minutes: `python -m tests.acceptance.alert_bar`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.alert_bar import BAR_S, Watched, watched
from tests.conftest import StartUp


@pytest.fixture(scope="module")
def service(leaseway_up_module: StartUp) -> Iterator[Watched]:
    with watched(leaseway_up_module, 2) as found:
        yield found


@pytest.mark.parametrize("kill", [False, True], ids=["both live", "the judge is killed"])
def test_a_breach_is_told_and_clears(service: Watched, kill: bool) -> None:
    queue = f"killed-{kill}"
    service.warm_up(f"first-{kill}")
    service.policy(queue, 3, kill=kill)
    service.breach(queue, 10)
    if kill:
        service.kill_judge()
    service.seconds_to(queue, "fired", BAR_S)
    service.insist("POST", f"/v1/queues/{queue}/purge")
    service.seconds_to(queue, "cleared", BAR_S)
    posted = [post.json for post in service.hook.posted if post.json["queue"] == queue]
    # Who takes over may tell once more what the killed one had told and not noted.
    assert len({post["event"] for post in posted}) == 2
    assert len(posted) <= 3 if kill else len(posted) == 2
    assert service.told(queue) == [("fired", "told"), ("cleared", "told")]
