"""The MNS dialect: which requests are MNS's. They have a header of MNS, its signature, or one of
its paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from facade.config import Settings
from facade.dialects.mns.actions import is_own
from facade.dialects.mns.exchange import Common, MnsExchange
from facade.dialects.mns.queues.call import Options
from facade.dialects.mns.wire.errors import ERRORS
from facade.http.bounds.peers import peers_of

if TYPE_CHECKING:
    from engine.engine import Engine


class MnsDialect:
    """Requests of MNS."""

    name: Final = "mns"
    errors: Final = ERRORS

    def __init__(self, engine: Engine, settings: Settings) -> None:
        options = Options(settings.mns_priority == "yes", settings.mns_missing_deleted == "yes")
        self._common = Common(
            engine,
            settings.auth == "open",
            settings.trust_proxy == "yes",
            options,
            peers_of(settings.auth, settings.trust_proxy),
        )

    def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> MnsExchange | None:
        """See `Dialect`."""
        is_mns = (
            is_own(scope["path"])
            or b"x-mns-version" in headers
            or headers.get(b"authorization", b"").startswith(b"MNS")
        )
        return MnsExchange(self._common, scope, headers) if is_mns else None
