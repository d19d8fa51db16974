"""The SQS dialect: which requests are SQS's, at any path, and in which of its two protocols.

It claims before the native dialect does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.types import Scope

from facade.config import Settings
from facade.dialects.sqs.actions import ACTIONS
from facade.dialects.sqs.exchange import OTHER, GetExchange, JsonExchange, QueryExchange, Service
from facade.dialects.sqs.lanes import SqsLanes
from facade.dialects.sqs.paths import is_own, of_queue
from facade.dialects.sqs.places import Places
from facade.dialects.sqs.queues.call import Action
from facade.dialects.sqs.wire.errors import ERRORS
from facade.dialects.sqs.wire.limits import LIMITS
from facade.http.bounds.peers import peers_of
from facade.http.front import Hosts
from facade.http.metrics import Metrics

if TYPE_CHECKING:
    from engine.engine import Engine

_TARGET: Final = b"AmazonSQS."
_FORM: Final = b"application/x-www-form-urlencoded"
_SIGNED: Final = b"AWS4-HMAC-SHA256"
_BY_TARGET: Final[dict[bytes, tuple[str, str, Action | None, bool]]] = {
    _TARGET + name.encode(): (name, f"sqs.{name}", action, action.long_poll) for name, action in ACTIONS.items()
}


class SqsDialect:
    """Requests with a target of SQS, and those of the query protocol."""

    name: Final = "sqs"
    errors: Final = ERRORS

    def __init__(self, engine: Engine, settings: Settings) -> None:
        places = Places(settings, trust_proxy=settings.trust_proxy == "yes")
        limits, cool_down_s = LIMITS[settings.sqs_limits], settings.sqs_cool_down_s
        self._service = Service(
            engine,
            places,
            limits,
            cool_down_s,
            is_open=settings.auth == "open",
            peers=peers_of(settings.auth, settings.trust_proxy),
        )

    def lanes(self, metrics: Metrics, hosts: Hosts | None) -> SqsLanes:
        """Returns what knows the requests that the native library has read."""
        return SqsLanes(self._service, metrics, hosts)

    def claims(self, scope: Scope, headers: Mapping[bytes, bytes]) -> JsonExchange | QueryExchange | None:
        """See `Dialect`. A signed form is SQS's at any path."""
        method = scope["method"]
        if method == "POST":
            target = headers.get(b"x-amz-target")
            if target is not None and target.startswith(_TARGET):
                known = _BY_TARGET.get(target)
                if known is None:
                    known = target[len(_TARGET) :].decode("latin-1"), OTHER, None, False
                return JsonExchange(self._service, scope, headers, *known)
            form = headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == _FORM
            mine = form and (
                headers.get(b"authorization", b"").startswith(_SIGNED)
                or is_own(scope["path"])
                or _SIGNED in scope["query_string"]
            )
        elif method == "GET":
            path, query = scope["path"], scope["query_string"]
            mine = of_queue(path) or (b"Action=" in query and (is_own(path) or _SIGNED in query))
            return GetExchange(self._service, scope, headers) if mine else None
        else:
            return None
        return QueryExchange(self._service, scope, headers) if mine else None
