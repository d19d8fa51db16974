"""Which requests of a connection the plane serves."""

from __future__ import annotations

from engine.catalog.catalog import Catalog
from engine.gate import Gate
from engine.plane import whys
from engine.plane.plane import Plane
from engine.shapes import Principal
from schemas.accounts import full
from schemas.vocabulary import Verb
from state.redis.wake import Wake


class Routes:
    """Has the plane serve what callers ask of a queue."""

    def __init__(self, gate: Gate, catalog: Catalog, plane: Plane, wake: Wake) -> None:
        self._gate = gate
        self._catalog = catalog
        self._plane = plane
        self._wake = wake

    def route(
        self,
        by: Principal,
        queue: str,
        tag: str | None,
        lane: int,
        *,
        most_bytes: int,
        most_leased_s: int = 0,
        some: int | None = None,
    ) -> dict[Verb, str]:
        """Has the plane serve what it can of what `by` asks of a queue. Returns which verbs it does
        not serve, and why. `most_leased_s`: as `ExtendEntry.in_all_s`, 0 = as long as may be.
        """
        if not self._plane.is_on:
            return whys.of_all(whys.OFF)
        refused = {
            verb: whys.REFUSED for verb in whys.VERBS.values() if self._gate.permitted(by, verb, queue, tag) is None
        }
        found = self._catalog.queues.get(full(by.account, queue))
        if len(refused) == len(whys.VERBS) or found is None or (tag and tag not in found.by_name):
            return whys.of_all(whys.REFUSED)
        self._wake.want(found.incarnation)
        if self._gate.counts(found, "read_qps"):
            refused.setdefault(Verb.RECEIVE, whys.QUOTA)
        if self._gate.counts(found, "write_qps"):
            refused.setdefault(Verb.SEND, whys.QUOTA)
        at = found.tag(tag)
        bounds = self._gate.asker(by, found, at.name).bounds
        counts_bytes = self._gate.counts(found, "daily_bytes")
        return self._plane.route(
            by, found, at, lane, refused, some=some, most_bytes=most_bytes, most_leased_ms=most_leased_s * 1000,
            bounds=bounds, counts_bytes=counts_bytes,
        )  # fmt: skip
