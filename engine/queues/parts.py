"""What the verbs of queues are made of."""

from __future__ import annotations

from dataclasses import dataclass

from engine.queues.info import Info
from engine.queues.lives.creating import Creating
from engine.queues.lives.deletions import Deletions
from engine.queues.lives.making import Making
from engine.queues.lives.purges import Purges
from engine.queues.overview.collector import Collector
from engine.queues.overview.overview import Overview
from engine.queues.queues import Queues
from engine.queues.records import QueueRecords
from engine.queues.tags import Tags


@dataclass(frozen=True)
class QueueParts:
    """One of each for a worker."""

    info: Info
    records: QueueRecords
    making: Making
    creating: Creating
    changes: Queues
    deletions: Deletions
    purges: Purges
    tags: Tags
    overview: Overview
    collector: Collector
