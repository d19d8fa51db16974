"""Requests of the plane, counted by who has asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from engine.plane import library as lib
from engine.shapes import Principal
from facade.dialects.native.dialect import NativeLanes
from facade.http.metrics import Metrics
from facade.http.sockets.routes import Lane
from schemas.records.watching import Request


class Lanes(NativeLanes):
    """Has lanes of alice, who is of an account."""

    def lane(self, host: bytes, path: bytes, signer: bytes, url: str) -> Lane:
        return Lane(Principal("123456789012.alice", account="123456789012"), "orders", None)

    def route(self, number: int, lane: Lane) -> dict[Any, str]:
        return {}


def test_who_has_asked_is_known_of_requests_from_before_rights_were_looked_up_again() -> None:
    counted: list[tuple[Request, int, int, int]] = []
    lanes = Lanes(cast(Any, SimpleNamespace()), {}, Metrics(dict, counted=lambda *row: counted.append(row)), None)
    lanes.learn(1, b"host", b"/", b"", "")
    lanes.count(1, lib.NATIVE_SEND, False, 2, 10, 6)
    lanes.forget()
    lanes.count(1, lib.NATIVE_ACK, True, 1, 3, 3)
    lanes.forget()
    lanes.count(1, lib.NATIVE_ACK, False, 1, 1, 1)

    account = "123456789012"
    assert counted == [
        (Request(f"{account}.alice", f"{account}.orders", "send", "send", "ok"), 2, 10, 6),
        (Request(f"{account}.alice", f"{account}.orders", "ack", "ack", "gone"), 1, 3, 3),
        (Request("", "", "ack", "ack", "ok"), 1, 1, 1),
    ]
