"""What an owner of a unit asks of whoever drains its outbox in its place, and what comes back."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from msgspec import Struct

from state.keys import Unit


class DrainRequest(Struct, frozen=True):
    """A drain for the owner of `epoch`. `topic`, `place` and `key` say where the journal has the
    entries of the unit. The drain first confirms the entries up to `done_seq` (0 = none). Each call
    of the script shows `most` entries. It ends after `rounds` appends (0 = before the first), or
    when entries were moved, by it or by the `moved` before, and fewer than `most` are left.
    """

    queue: str
    unit: Unit
    epoch: int
    topic: str
    place: int
    key: bytes
    done_seq: int
    most: int
    rounds: int
    moved: int


class DrainResult(Struct, frozen=True):
    """How a drain has ended: the journal got `moved` entries by it. The outbox may still hold those
    up to `done_seq` (0 = none). The oldest entry of the last look was made at `since_ms` (0 = there
    was none). `has_more`: the owner is to go on, by itself if `is_passed`. `error`: why the journal
    may lack what was appended last.
    """

    moved: int
    has_more: bool
    done_seq: int = 0
    since_ms: int = 0
    is_fenced: bool = False
    is_passed: bool = False
    error: str = ""


class Drainer(Protocol):
    """Drains outboxes for their owners."""

    def drain(self, request: DrainRequest) -> Awaitable[DrainResult] | None:
        """Begins a drain; returns None when the owner has to do it by itself."""
