"""A request as a method gets it, and what all requests of a worker have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from facade import dialect
from facade.config import RocketmqSettings
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb

if TYPE_CHECKING:
    from engine.engine import Engine


class Common(Struct, frozen=True):
    """What all requests of a worker have in common. `own` is where clients reach us that do not say
    how they did.
    """

    engine: Engine
    settings: RocketmqSettings
    own: pb.Endpoints


class Call(dialect.Call, frozen=True, gc=False):
    """`body` is the request; `client_id` the name that a client has given itself. `left_s`: until
    the client's deadline, None = it has none.
    """

    common: Common
    client_id: str
    left_s: float | None = None

    @property
    def engine(self) -> Engine:
        """The engine of this worker."""
        return self.common.engine
