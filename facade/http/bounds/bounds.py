"""The bounds of one worker, which its server and its front share by the state of the lifespan."""

from __future__ import annotations

from dataclasses import dataclass, field

from facade.http.bounds.connections import Connections
from facade.http.bounds.shares import Shares

# The name in the lifespan's state.
BOUNDS = "leaseway.bounds"
CONNECTIONS = 20_000


@dataclass(slots=True)
class Bounds:
    """For one event loop."""

    shares: Shares = field(default_factory=Shares)
    connections: Connections = field(default_factory=lambda: Connections(CONNECTIONS))

    # Requests that gave way in the native front, whose heads or hot bodies were not whole.
    gave_way: int = 0

    def count(self, refused: int, closed: int, gave_way: int) -> None:
        """Notes what the native front has counted so far: connections refused, idle ones closed for
        others, requests that gave way.
        """
        self.connections.count(refused, closed)
        self.gave_way = gave_way

    def counts(self) -> dict[str, float]:
        """What the metrics show."""
        shares, connections = self.shares, self.connections
        return {
            "request_bytes_held": shares.held,
            "requests_coming": shares.coming,
            "requests_gave_way_total": shares.given_way + self.gave_way,
            "requests_without_room_total": shares.refused,
            "connections_refused_total": connections.refused,
            "connections_idle_closed_total": connections.closed,
        }
