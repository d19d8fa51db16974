"""A request as an action gets it, and an action as a value.

Neighbours: `dialect` makes calls and runs actions; `actions` lists them. This module must not know any action.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from engine.verbs import Principal

if TYPE_CHECKING:
    from engine.engine import Engine


class Call(Struct, frozen=True):
    """Who asks; `base` is scheme and host as the client called us; `body` is the action's input."""

    by: Principal
    base: str
    body: Any


@dataclass(frozen=True)
class Action:
    """One action: its input, and what runs it. `long_poll` = the call is cancelled when the client goes."""

    body: Any
    run: Callable[[Engine, Call], Coroutine[Any, Any, Struct]]
    long_poll: bool = False
    decoder: msgspec.json.Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.body))
