"""A call that the plane has begun, and that has not succeeded, is answered as Python would have
answered it: an exception in the protocol and with the number of the call.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import EngineError, LogUnavailable, NotStored, StoreUnavailable
from engine.shapes import Principal
from facade.dialects.emq.exchange import Common
from facade.dialects.emq.lanes import METHOD, EmqLanes
from facade.dialects.emq.wire.errors import code_of
from facade.dialects.emq.wire.protocols import encode_exception
from facade.dialects.emq.wire.services import MESSAGE_SERVICE
from facade.http.metrics import Metrics
from tests.unit.emq.values import CODECS, TYPES

ALICE = Principal("alice")


def lanes() -> EmqLanes:
    engine = cast(Any, SimpleNamespace())
    return EmqLanes(Common(engine, True, False, cast(Any, None)), Metrics(dict), None)


@pytest.mark.parametrize("protocol", TYPES)
@pytest.mark.parametrize("verb", METHOD)
@pytest.mark.parametrize("error", [NotStored.of("alice-orders"), LogUnavailable("why"), StoreUnavailable("why")])
def test_it_is_an_exception_of_the_method(protocol: str, verb: int, error: EngineError) -> None:
    media = TYPES[protocol]
    found = lanes().error(verb, error, [media, 7, "orders", b"id=abcdef01&type=x"], ALICE)

    assert (found.status, dict(found.headers)[b"content-type"]) == (200, media)
    opened = CODECS[protocol].open(found.body)
    method = MESSAGE_SERVICE.methods[METHOD[verb]]
    assert (opened.name, opened.seqid) == (method.name, 7)
    told = CODECS[protocol].read(opened, method.answer).e
    assert (told.error_code, told.queue_name, told.request_id) == (code_of(type(error)), "orders", "abcdef01")
    assert "alice-orders" not in told.details
    call = cast(Any, SimpleNamespace(method=method, seqid=7))
    assert found.body == encode_exception(media, call, told)


def test_who_has_gone_is_told_nothing_of_a_method() -> None:
    found = lanes().error(next(iter(METHOD)), LogUnavailable("why"), [], ALICE)
    assert found.status == 503
