"""Which share of the hot requests of a client the plane serves, and why Python serves others."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import httpx

from engine.plane.whys import FIFO, ON_EXHAUSTED, PARTITIONS, PRIORITY, RETENTION_FROM
from facade.dialects.native.dialect import NAME
from facade.dialects.sqs.lanes import ACTION
from tests.conformance.conftest import Running
from tests.services import Up

HOT: Final = {*(f"sqs.{name}" for name in ACTION.values()), *NAME.values()}
# Reasons of requests to queues that are not plain.
OTHER_QUEUES: Final = {FIFO, PRIORITY, ON_EXHAUSTED, RETENTION_FROM, PARTITIONS}
# Reasons of requests that are not hot.
OTHER_VERBS: Final = {"verb"}
LEAST: Final = 0.95


def served(up: Up | Running) -> tuple[float, Counter[str]]:
    """Returns how many hot requests a service has served, and how many of all by reason; "" = the
    plane has served them.
    """
    text = httpx.get(f"{up.endpoint}/metrics").text
    rows = re.findall(r'^leaseway_requests_total{[^}]*verb="([^"]*)"[^}]*} (\S+)', text, re.MULTILINE)
    hot = sum(float(number) for verb, number in rows if verb in HOT)
    ways = re.findall(r'^leaseway_plane_requests_total{reason="([^"]*)",way="[^"]*"} (\S+)', text, re.MULTILINE)
    return hot, Counter({reason: float(number) for reason, number in ways})


@contextlib.contextmanager
def shared(up: Up | Running, client: str, least: float = LEAST, elsewhere: int = 0) -> Iterator[None]:
    """Prints which share of what a client asks meanwhile of plain queues the plane serves. Nobody
    else may ask for anything. `elsewhere`: how many requests to queues that are not plain have
    fields that only Python reads. Raises AssertionError when it is less than `least`.
    """
    if httpx.get(f"{up.endpoint}/health").json()["plane"] != "on":
        yield
        return
    before, reasons = served(up)
    yield
    after, since = served(up)
    since.subtract(reasons)
    since["fields"] -= elsewhere
    hot = after - before - elsewhere - sum(since.pop(reason, 0) for reason in OTHER_QUEUES)
    others = {
        reason: int(number) for reason, number in since.most_common() if reason and number and reason not in OTHER_VERBS
    }
    said = f"{client}: {since[''] / hot:.1%} of {hot:.0f} hot requests; by Python {others}"
    print(said)
    assert since[""] >= least * hot, said
