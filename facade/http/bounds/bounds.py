"""The bounds of one worker, which its connections and its front share.

Neighbours: `facade.app` makes them; the server hands them to connections in its state of the
lifespan. This module must not know how they are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from facade.http.bounds.connections import Connections
from facade.http.bounds.shares import Shares

# The name in the lifespan's state.
BOUNDS = "leaseway.bounds"
CONNECTIONS = 20_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """For one event loop."""

    shares: Shares = field(default_factory=Shares)
    connections: Connections = field(default_factory=lambda: Connections(CONNECTIONS))

    def counts(self) -> dict[str, float]:
        """What the metrics show."""
        shares, connections = self.shares, self.connections
        return {
            "request_bytes_held": shares.held,
            "requests_coming": shares.coming,
            "requests_gave_way_total": shares.given_way,
            "requests_without_room_total": shares.refused,
            "connections_refused_total": connections.refused,
            "connections_idle_closed_total": connections.closed,
        }
