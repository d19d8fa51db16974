"""A request as an action gets it, and an action as a value."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from facade import dialect
from facade.dialect import Carried
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.wire.limits import Limits

if TYPE_CHECKING:
    from engine.engine import Engine


class Call(dialect.Call, frozen=True, gc=False):
    """`body` is the action's input; `place` names queues; `cool_down_s` 0 = no waiting after a
    purge or a deletion.

    `trace`: the X-Ray trace that the request is part of, by its header.
    """

    place: Place
    limits: Limits
    cool_down_s: int
    trace: bytes = b""


@dataclass(frozen=True)
class Action:
    """One action: its input, and what runs it. `long_poll` = the call is cancelled when the client
    goes.
    """

    body: Any
    run: Callable[[Engine, Call], Coroutine[Any, Any, Struct | Carried]]
    long_poll: bool = False
    decoder: msgspec.json.Decoder[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.body))
