"""A request that the plane has begun and that has not succeeded is begun again only if nothing was
done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import EngineError
from engine.plane.library import MAY_BE_STORED, NOT_STORED, SEND, STATE
from engine.shapes import Principal
from facade.dialect import Response
from facade.http.log.access_log import AccessLog
from facade.http.metrics import Metrics
from facade.http.sockets.answers import Answers
from facade.http.sockets.routes import Lane, Lanes
from schemas.vocabulary import Verb


class Some(Lanes):
    names = {SEND: "send"}  # noqa: RUF012
    id_header = b"x-request-id"

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        return Lane(Principal("me"), "orders", None)

    def route(self, number: int, lane: Lane) -> dict[Verb, str]:
        return {}

    def error(self, verb: int, error: Exception, call: Sequence[Any], by: Principal | None) -> Response:
        assert isinstance(error, EngineError)
        return Response(503, [], error.code.encode())


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("fault", [STATE, NOT_STORED, MAY_BE_STORED])
def test_what_may_be_done_is_not_begun_again_though_its_lane_was_forgotten(fault: int, forgets: bool) -> None:
    metrics = Metrics(dict)
    lanes = Some(cast(Any, SimpleNamespace(plane=SimpleNamespace(is_on=True))), metrics, None)
    lanes.learn(7, b"host", b"/", b"", "/orders")
    if forgets:
        lanes.forget()
    answers = Answers(lambda: None)
    lanes.failed([1, 7, SEND, fault, 2_250_000, "why", []], answers, AccessLog(1))
    begins_again = forgets and fault == NOT_STORED
    assert (answers.passed == [1], [answer[0] for answer in answers.other] == [1]) == (begins_again, not begins_again)
    found = re.search(rb'request_seconds_sum\{verb="send"\} (\S+)', metrics.text())
    assert (found is None) == begins_again and (found is None or float(found[1]) == 2.25), (
        "the time that the plane had it counts"
    )
