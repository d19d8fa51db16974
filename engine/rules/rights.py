"""Who may do what: `Rights` is the one authoriser. An administrator of the default account may do
everything, an owner everything with their queues, anybody may create and list queues of their own,
others what a queue's grants allow: at least one must, and none deny. The role of a key adds to that
what it may on every queue of its account; a reader may that alone. What somebody has asked for and
the service does later (a redrive policy, a task, a transaction) is asked about again each time, by
the name of who asked. Accounts are those that a key names (docs/decisions/0034).

`Targets` says where the dead letters of a queue go: to the life of the dead-letter queue that its
policy names, and only while somebody may send there who answers for it. A name alone is no right:
whoever creates a queue of the name of a deleted one would get what was meant for the old one
(docs/decisions/0031).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import msgspec

from engine.errors import KeyNotFound, NotAuthorised, QueueNotFound
from engine.rules.grants import OF_NO_QUEUE, ROLES, any_granted, granted
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from engine.shapes import Principal
from runtime.asked import note
from runtime.clock import now_ms
from schemas.accounts import DEFAULT_ACCOUNT, account_of, full
from schemas.records import KeyRecord, QueueRecord
from schemas.records.settings import RedrivePolicy
from schemas.vocabulary import NO_INCARNATION, PolicyFault, Role, Verb


class Records(Protocol):
    """The records of now, as the catalog has them; `changes` counts those that were applied."""

    queues: dict[str, Queue]
    by_incarnation: dict[str, Queue]
    by_life: dict[str, Queue]
    keys: dict[str, KeyRecord]
    accounts: dict[str, int]
    sources: dict[str, set[str]]
    changes: int


_OF_NOBODY: Final = frozenset((Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.SET_PRODUCER_GROUP))
# What a role may that is about no queue; the service's administrators may everything.
_OF_ROLES: Final[Mapping[Role, frozenset[Verb]]] = MappingProxyType({
    Role.MEMBER: _OF_NOBODY,
    Role.READER: ROLES[Role.READER],
    Role.OPERATOR: _OF_NOBODY,
    Role.ADMIN: OF_NO_QUEUE,
})  # fmt: skip


class Rights:
    """The authoriser. No call waits for anything."""

    def __init__(self, settings: EngineSettings, catalog: Records) -> None:
        self._settings = settings
        self._catalog = catalog

    @property
    def accounts(self) -> Collection[str]:
        """The accounts that there are beside the default one."""
        return () if self._settings.auth == "open" else self._catalog.accounts

    def is_admin(self, principal: str) -> bool:
        """Whether one of the keys of a principal may do everything with what is of its account;
        without keys everybody may.
        """
        return Role.ADMIN in self._roles(principal)

    def _roles(self, principal: str) -> set[Role]:
        """The roles of the keys of a principal that count now."""
        settings = self._settings
        if settings.auth == "open" or (settings.admin_key_secret and principal == settings.admin_key_id):
            return {Role.ADMIN}
        at_ms = now_ms()
        return {
            role_of(key) for key in self._catalog.keys.values() if key.principal == principal and counts(key, at_ms)
        }

    def may(self, by: Principal, verb: Verb, queue: Queue, tag: str = "") -> bool:
        """Whether `by` may do `verb` with `queue`, or with messages of `tag` ("" = the default
        one).
        """
        if by.role is Role.READER:
            return verb in ROLES[Role.READER] and self._is_of(by.account, queue)
        if by.admin or queue.record.owner == by.id:
            return True
        if verb in ROLES[by.role] and self._is_of(by.account, queue):
            return True
        known = queue.by_name.get(tag)  # the default tag may have another name
        return granted(queue.record.grants, by.id, verb, known.name if known else tag)

    def may_alone(self, by: Principal, verb: Verb) -> bool:
        """Whether `by` may do `verb`, which is about no queue."""
        return by.admin or verb in _OF_ROLES[by.role]

    def still_may(self, principal: str, verb: Verb, queue: Queue) -> bool:
        """The same of a principal that is not here: its keys say what else it may."""
        if self.may(Principal(principal), verb, queue):
            return True
        account = account_of(principal) if self.accounts else ""
        every = self._is_of(account, queue)
        return any(
            verb in ROLES[role] and (every or (role is Role.ADMIN and not account)) for role in self._roles(principal)
        )

    def _is_of(self, account: str, queue: Queue) -> bool:
        """Whether a queue is of an account; the default one has those of accounts that nobody
        has.
        """
        return queue.account == account or (not account and queue.account not in self.accounts)

    def knows(self, by: Principal, queue: Queue) -> bool:
        """Whether `by` may do anything at all with `queue`; if not, it is not told that there is
        one.
        """
        return self.sees(by, queue) or any_granted(queue.record.grants, by.id)

    def sees(self, by: Principal, queue: Queue) -> bool:
        """Whether `by` is told of `queue` without any grant."""
        return (
            by.admin or queue.record.owner == by.id or (by.role is not Role.MEMBER and self._is_of(by.account, queue))
        )

    def authorise(self, by: Principal, verb: Verb, queue: Queue | None = None, tag: str = "") -> None:
        """Raises NotAuthorised unless `by` may do `verb` (with `queue`, or messages of `tag`), and
        for a queue with which they may do nothing QueueNotFound, as if there was none.
        """
        note(by.id, by.key_id, verb, "" if queue is None else queue.name)
        if by.admin or (queue is None and self.may_alone(by, verb)):
            return
        if queue is not None:
            if self.may(by, verb, queue, tag):
                return
            if not self.knows(by, queue):
                raise no_queue(queue.name)
        of = f" queue {queue.name!r}" if queue is not None else ""
        raise NotAuthorised(f"principal {by.id!r} may not {verb}{of}", field="principal", given=by.id)

    def check_account(self, by: Principal, name: str) -> None:
        """Raises NotAuthorised when a queue or principal that `by` would make, or manage, is of
        another account, also of one that nobody has yet: its callers would share what they think is
        theirs. A principal of the default account may be called as an account is.
        """
        account = account_of(name)
        if by.admin or account == by.account:
            return
        if by.account or account not in (DEFAULT_ACCOUNT, by.id):
            raise NotAuthorised(f"{name!r} is of another account", field="principal", given=by.id)

    def key_of(self, by: Principal, key_id: str) -> str:
        """The whole id of a key that `by` names, with its account or, in an account, without.
        Raises KeyNotFound for a key of another account; administrators may manage every one.
        """
        for whole in (key_id, full(by.account, key_id)):
            key = self._catalog.keys.get(whole)
            if by.admin or (key is not None and account_of(key.principal) == by.account):
                return whole
        raise KeyNotFound(f"there is no key {key_id!r}", field="key_id", given=key_id)

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


class WaitBound(NamedTuple):
    """How many receives of somebody, or something, may wait at a worker."""

    whose: str
    most: int


class Asker(NamedTuple):
    """Who waits: `bounds` that count it, and `check`, which raises NotAuthorised when they may not
    receive any more.
    """

    bounds: tuple[WaitBound, ...]
    check: Callable[[], None]


NOBODY = Asker((), lambda: None)


KNOWN = 10_000  # of `Targets`


class Targets:
    """Dead-letter queues, as the records of now name them. No call waits for anything."""

    def __init__(self, catalog: Records, rights: Rights) -> None:
        self.catalog = catalog
        self._rights = rights
        # What `most_receives` has found since a record was applied last: each receive asks. Keys
        # that expire are no records, so whoever moves something asks by `of`.
        self.known: dict[tuple[str, int, int], int] = {}

    def of(self, queue: Queue, tag: int) -> Queue | None:
        """Where what dies under a tag goes now; None = nothing is moved."""
        policy = queue.policies[tag]
        if policy is None or self.fault(queue.record, policy):
            return None
        return self.catalog.queues.get(policy.dead_letter_queue)

    def most_receives(self, queue: Queue, tag: int) -> int:
        """After how many deliveries a message dies under a tag; 0 = never. Noted in `known`."""
        policy = queue.policies[tag]
        most = 0 if policy is None or self.fault(queue.record, policy) else policy.max_receive_count
        if len(self.known) >= KNOWN:
            self.known.clear()
        self.known[queue.incarnation, tag, self.catalog.changes] = most
        return most

    def fault(self, record: QueueRecord, policy: RedrivePolicy) -> str:
        """Why a policy moves nothing, a PolicyFault word; empty = it does."""
        target = self.catalog.queues.get(policy.dead_letter_queue)
        if target is None:
            return PolicyFault.MISSING
        if not _means(record, policy, target):
            return PolicyFault.ANOTHER
        # Who set it, or whose messages they are: that an administrator leaves must stop no dead
        # letters that the owner may send.
        return (
            ""
            if any(self._may_send(who, target) for who in (record.owner, policy.set_by) if who)
            else PolicyFault.FORBIDDEN
        )

    def stopped(self, queue: Queue) -> int:
        """How many policies of a queue and its tags move nothing."""
        policies = (queue.record.redrive_policy, *(tag.redrive_policy for tag in queue.tags))
        return sum(policy is not None and bool(self.fault(queue.record, policy)) for policy in policies)

    def _may_send(self, principal: str, target: Queue) -> bool:
        return self._rights.still_may(principal, Verb.SEND, target)

    def sources(self, target: Queue) -> list[str]:
        """Queues with a policy that means this life of a queue, in order."""
        names = self.catalog.sources.get(target.name, ())
        return sorted(name for name in names if self._is_source(self.catalog.queues[name].record, target))

    def _is_source(self, record: QueueRecord, target: Queue) -> bool:
        policies = (record.redrive_policy, *(tag.redrive_policy for tag in record.tags))
        return any(p is not None and p.dead_letter_queue == target.name and _means(record, p, target) for p in policies)

    def noted(self, record: QueueRecord) -> QueueRecord:
        """The record with the lives that its policies mean: to be called before it is written, for
        what is not noted is judged by when that was last.
        """
        policy = self._noted(record, record.redrive_policy)
        tags = [
            msgspec.structs.replace(tag, redrive_policy=self._noted(record, tag.redrive_policy)) for tag in record.tags
        ]
        if policy == record.redrive_policy and tags == record.tags:
            return record
        return msgspec.structs.replace(record, redrive_policy=policy, tags=tags)

    def _noted(self, record: QueueRecord, policy: RedrivePolicy | None) -> RedrivePolicy | None:
        if policy is None or policy.dead_letter_incarnation:
            return policy
        target = self.catalog.queues.get(policy.dead_letter_queue)
        known = target is not None and _means(record, policy, target)
        return msgspec.structs.replace(
            policy, dead_letter_incarnation=target.incarnation if target and known else NO_INCARNATION
        )


def _means(record: QueueRecord, policy: RedrivePolicy, target: Queue) -> bool:
    """Whether a policy of a queue means this life of its dead-letter queue."""
    if policy.dead_letter_incarnation:
        return policy.dead_letter_incarnation in target.lives
    return target.record.created_at_ms <= record.modified_at_ms


def as_asked(policy: RedrivePolicy | None) -> RedrivePolicy | None:
    """What a caller asks for, and is shown: without what was noted of it."""
    return None if policy is None else RedrivePolicy(policy.dead_letter_queue, policy.max_receive_count)
