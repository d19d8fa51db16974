"""The EMQ dialect: which requests are EMQ's. They are Thrift messages at three paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from facade.config import Settings
from facade.dialects.emq.exchange import Common, EmqExchange
from facade.dialects.emq.lanes import EmqLanes
from facade.dialects.emq.wire.errors import ERRORS
from facade.dialects.emq.wire.protocols import is_thrift
from facade.dialects.emq.wire.services import SERVICES
from facade.http.bounds.peers import peers_of
from facade.http.front import Hosts
from facade.http.metrics import Metrics

if TYPE_CHECKING:
    from engine.engine import Engine


class EmqDialect:
    """Requests with a Thrift body at the path of a service."""

    name: Final = "emq"
    errors: Final = ERRORS

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._common = Common(
            engine,
            settings.auth == "open",
            settings.emq_permissions == "old",
            peers_of(settings.auth, settings.trust_proxy),
        )

    def lanes(self, metrics: Metrics, hosts: Hosts | None) -> EmqLanes:
        """Returns what knows the requests that the native library has read."""
        return EmqLanes(self._common, metrics, hosts)

    def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> EmqExchange | None:
        """See `Dialect`."""
        service = SERVICES.get(scope["path"])
        if service is None or scope["method"] != "POST" or not is_thrift(headers.get(b"content-type", b"")):
            return None
        return EmqExchange(self._common, service, scope, headers)
