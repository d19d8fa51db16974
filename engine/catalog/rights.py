"""What a principal may, by the records of now: the one authoriser.

An administrator may do everything, an owner everything with their queues, anybody may create and
list queues of their own, others what a queue's grants allow: at least one must, and none deny. The
role of a key adds to that what it may on every queue; a reader may that alone. What
somebody has asked for and the service does later (a redrive policy, a task, a transaction) is asked
about again each time, by the name of who asked. Neighbours: `rules.rights` has the table,
`callers.access` says who asks.
"""

from __future__ import annotations

from engine.catalog.catalog import Catalog
from engine.errors import NotAuthorised, QueueNotFound
from engine.rules.queue import Queue
from engine.rules.rights import ROLES, any_granted, granted
from engine.runtime.asked import note
from engine.runtime.clock import now_ms
from engine.settings import EngineSettings
from engine.shapes import Principal
from schemas.records import KeyRecord
from schemas.vocabulary import Role, Verb

_OF_NOBODY = (Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.SET_PRODUCER_GROUP)


class Rights:
    """The authoriser. No call waits for anything."""

    def __init__(self, settings: EngineSettings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog

    def is_admin(self, principal: str) -> bool:
        """Whether one of the keys of a principal may do everything; without keys everybody may."""
        return Role.ADMIN in self._roles(principal)

    def _roles(self, principal: str) -> set[Role]:
        """The roles of the keys of a principal that count now."""
        settings = self._settings
        if settings.auth == "open" or (settings.admin_key_secret and principal == settings.admin_key_id):
            return {Role.ADMIN}
        at_ms = now_ms()
        return {role_of(key) for key in self._catalog.keys.values() if key.principal == principal and counts(key, at_ms)}

    def may(self, by: Principal, verb: Verb, queue: Queue) -> bool:
        """Whether `by` may do `verb` with `queue`."""
        if by.role is Role.READER:
            return verb in ROLES[Role.READER]
        return by.admin or queue.record.owner == by.id or verb in ROLES[by.role] or granted(queue.record.grants, by.id, verb)

    def still_may(self, principal: str, verb: Verb, queue: Queue) -> bool:
        """The same of a principal that is not here: its keys say what else it may."""
        return self.may(Principal(principal), verb, queue) or any(verb in ROLES[role] for role in self._roles(principal))

    def knows(self, by: Principal, queue: Queue) -> bool:
        """Whether `by` may do anything at all with `queue`; if not, it is not told that there is
        one.
        """
        return self.sees_all(by) or queue.record.owner == by.id or any_granted(queue.record.grants, by.id)

    def sees_all(self, by: Principal) -> bool:
        """Whether `by` is told of every queue."""
        return by.admin or by.role is not Role.MEMBER

    def authorise(self, by: Principal, verb: Verb, queue: Queue | None = None) -> None:
        """Raises NotAuthorised unless `by` may do `verb` (with `queue`), and for a queue with which
        they may do nothing QueueNotFound, as if there was none.
        """
        note(by.id, by.key_id, verb, "" if queue is None else queue.name)
        if by.admin or (queue is None and verb in (_OF_NOBODY if by.role is not Role.READER else ROLES[Role.READER])):
            return
        if queue is not None:
            if self.may(by, verb, queue):
                return
            if not self.knows(by, queue):
                raise no_queue(queue.name)
        of = f" queue {queue.name!r}" if queue is not None else ""
        raise NotAuthorised(f"principal {by.id!r} may not {verb}{of}", field="principal", given=by.id)

    def check_taken(self, by: Principal, queue: Queue) -> None:
        """Raises NotAuthorised when a queue that `by` would create is there and somebody else's.
        That its name is taken can't be hidden from them.
        """
        if not self.may(by, Verb.GET_QUEUE, queue):
            raise NotAuthorised(f"the name {queue.name!r} is taken", field="principal", given=by.id)


def role_of(key: KeyRecord) -> Role:
    """The role of a key, also of one that was written before there were roles."""
    return Role(key.role) if key.role else Role.ADMIN if key.admin else Role.MEMBER


def counts(key: KeyRecord, at_ms: int) -> bool:
    """Whether a key opens anything at that time."""
    return not key.disabled and (not key.expires_at_ms or at_ms < key.expires_at_ms)


def no_queue(name: str) -> QueueNotFound:
    """The same for a queue that does not exist and for one that who asks is not told of."""
    return QueueNotFound(f"there is no queue {name!r}", field="queue", given=name)
