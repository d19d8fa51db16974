"""A front that has ended is of no use any more: each call says so at once, and none waits."""

from __future__ import annotations

import inspect
import os
import socket
from typing import Any

import pytest

from engine.plane.library import COUNTS, STOP
from facade.http.sockets.library import NOTHING, FrontEndedError, NativeFront

pytestmark = pytest.mark.usefixtures("library")

CALLS: dict[str, tuple[Any, ...]] = {
    "look": (),
    "receive": (1,),
    "answer": (b"\x90",),
    "unsent": (),
    "tick": (1.0, 1.0),
    "drain": (),
    "waiting": (1,),
    "certify": (b"", b""),
    "learn": (b"k", b"a", bytes(32), 1),
    "forget": (),
    "start_plane": ([],),
    "tell": (STOP, 0),
    "ask": (COUNTS,),
}
LOOKS = ("descriptor", "connections", "ended")


@pytest.fixture
def freed() -> NativeFront:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        front = NativeFront(os.dup(bound.fileno()), b"p", 10, NOTHING)
    front.free()
    return front


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_a_front_that_has_ended_is_an_error(freed: NativeFront, name: str) -> None:
    with pytest.raises(FrontEndedError, match="ended"):
        getattr(freed, name)(*CALLS[name])


@pytest.mark.parametrize("name", LOOKS)
def test_nothing_is_known_of_a_front_that_has_ended(freed: NativeFront, name: str) -> None:
    with pytest.raises(FrontEndedError, match="ended"):
        getattr(freed, name)


def test_a_front_may_be_ended_twice(freed: NativeFront) -> None:
    freed.free()


def test_no_call_is_left_out() -> None:
    public = {name for name, _ in inspect.getmembers(NativeFront) if not name.startswith("_")}
    assert public == {*CALLS, *LOOKS, "free"}
