"""Builds what is known of callers: keys, rights, quotas, the audit."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.queues.callers.audit import Audit
from engine.queues.callers.audited import AuditReader
from engine.queues.callers.grants import Grants
from engine.queues.callers.keys import Keys, KeyUses
from engine.queues.callers.quotas import Quotas, Unused, UserBounds
from engine.queues.callers.users import Users
from engine.queues.records import QueueRecords
from schemas.topics import audit_topic
from state.shared.allotments import Allotments


@dataclass(frozen=True, kw_only=True)
class CallerParts:
    """One of each for a worker."""

    audit: Audit
    audited: AuditReader
    keys: Keys
    grants: Grants
    quotas: Quotas
    users: Users


def wire_callers(*, ground: Ground, bounds: UserBounds, records: QueueRecords, key_uses: KeyUses, unused: Unused) -> CallerParts:
    """Builds them; nothing is started. `unused`: as of Quotas."""
    settings, catalog = ground.settings, ground.catalog
    quotas = Quotas(Allotments(ground.connection, settings.topic_prefix), bounds, unused)
    ground.queue_gone.connect(quotas.forget_queue)
    return CallerParts(
        audit=Audit(settings, ground.worker, ground.log, ground.counters),
        audited=AuditReader(audit_topic(settings.topic_prefix), ground.log),
        keys=Keys(settings, catalog, key_uses),
        grants=Grants(catalog, records),
        quotas=quotas,
        users=Users(catalog, settings.secret, bounds),
    )
