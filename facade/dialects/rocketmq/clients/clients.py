"""What a worker knows of its clients."""

from __future__ import annotations

from msgspec import Struct

from facade.dialects.rocketmq.clients.producers import Producers
from facade.dialects.rocketmq.clients.renewals import Renewals


class Clients(Struct, frozen=True):
    """Leases that are renewed for clients, and producers that can be asked."""

    renewals: Renewals
    producers: Producers
