"""A request as a method gets it, a method as a value, and what EMQ refuses."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from facade import dialect
from facade.dialect import Refusal
from facade.dialects.emq.wire.errors import ErrorCode

if TYPE_CHECKING:
    from engine.engine import Engine


class EmqError(Refusal):
    """A business error: the client gets it as a GalaxyEmqServiceException. `details` is the
    sentence for people.
    """

    def __init__(self, code: ErrorCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class Call(dialect.Call, frozen=True, gc=False):
    """`body` is the argument of the method. `old_permissions`: the client numbers levels as clients
    before 2017-09 do.
    """

    old_permissions: bool


class Action(Struct, frozen=True):
    """What does a method. `long_poll` = the call is cancelled when the client goes."""

    run: Callable[[Engine, Call], Coroutine[Any, Any, Any]]
    long_poll: bool = False


def out_of_range(name: str, given: int, low: int, high: int) -> EmqError:
    """A number that is not within what EMQ allows."""
    return EmqError(ErrorCode.INVALID_ATTRIBUTE, f"{name} must be {low} to {high}, given {given}")


def checked(name: str, given: int | None, low: int, high: int) -> int | None:
    """A number in its range; None stays None. Raises EmqError."""
    if given is not None and not low <= given <= high:
        raise out_of_range(name, given, low, high)
    return given
