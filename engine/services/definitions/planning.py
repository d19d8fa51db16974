"""Compares the queues of a document with what is there: what has to be done, by which verbs, in
which order.

All that can be seen beforehand is checked before anything is done: values, names, the rights of
each verb, policies against the queues as they will be.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, cast

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue, TagExists
from engine.queues.callers.access import Access
from engine.queues.lives.creating import Creating
from engine.queues.queues import Policies, changed_record
from engine.rules.fifo import with_exhausted
from engine.rules.limits import MAX_TAGS, check_asked, check_filter, check_name, check_range, check_user_attributes
from engine.rules.queue import Queue
from engine.rules.rights import Rights, Targets, as_asked
from engine.services.accounts import policy_of, record_for, settings_of
from engine.services.definitions.shapes import (
    MAX_DEFINITIONS,
    Difference,
    QueueDefinition,
    Step,
    TagDefinition,
    at,
    check_once,
)
from engine.services.queues import QueueService
from engine.shapes import Principal
from schemas.accounts import full, short
from schemas.records import QueueRecord, TagRecord
from schemas.records.settings import DEAD_LETTER, PARK, QueueSettings, RedrivePolicy, named
from schemas.vocabulary import Verb


class Future:
    """A copy of what the catalog has; nothing of it is written."""

    def __init__(self, catalog: Catalog, rights: Rights) -> None:
        tables = self._tables = catalog.future()
        self._policies = Policies(cast(Catalog, tables), rights, Targets(tables, rights))

    def put(self, record: QueueRecord) -> None:
        """A queue will be so."""
        self._tables.put("queue", record.name, record, 0)

    def queue(self, name: str) -> Queue:
        """A queue as it will be."""
        return self._tables.queues[name]

    def set_policy(self, by: Principal, name: str, policy: RedrivePolicy | None, tag: str = "") -> None:
        """A queue, or a tag of it, will have this policy. Raises what setting it would."""
        record = self.queue(name).record
        policy = self._policies.checked(by, name, policy, fifo=record.fifo, dead_letter=record.dead_letter)
        if not tag:
            self.put(replace(record, redrive_policy=policy))
        else:
            self.put(
                replace(
                    record,
                    tags=[replace(one, redrive_policy=policy) if one.name == tag else one for one in record.tags],
                )
            )

    def finish(self, name: str, settings: QueueSettings) -> None:
        """All that a queue needs is there by now. Raises InvalidValue."""
        self.put(with_exhausted(self.queue(name).record, settings))


# Steps are done in this order. A queue without a policy comes first, for it may be the dead-letter
# queue of another; policies go before others come.
USERS, CREATE, CREATE_WITH_POLICY, SET_AND_FREE, FREE, SET, TAGS, FINISH, GRANTS, ALERTS = range(10)
PRUNE_ALERTS, PRUNE_GRANTS, PRUNE_TAGS, PRUNE_QUEUES = range(10, 14)


class Planner:
    """Plans for one caller. `steps` has what is to be done, `future` the queues as they will be."""

    def __init__(
        self, by: Principal, catalog: Catalog, access: Access, creating: Creating, future: Future, queues: QueueService
    ) -> None:
        self.by = by
        self.future = future
        self.steps: list[Step] = []
        self._catalog = catalog
        self._access = access
        self._creating = creating
        self._queues = queues

    def add(self, phase: int, path: str, run: Callable[[], Coroutine[Any, Any, Any]], *differences: Difference) -> None:
        """A step is to be done."""
        self.steps.append(Step(phase, path, list(differences), run))

    def authorise(self, verb: Verb, queue: Queue | None) -> None:
        """Raises NotAuthorised unless the caller may do a verb with a queue; None = it is to be
        made, and then it is theirs.
        """
        if queue is not None:
            self._access.authorise(self.by, verb, queue)

    def known(self, name: str) -> Queue | None:
        """The queue that is there."""
        return self._catalog.queues.get(full(self.by.account, name))

    def plan(self, definitions: Sequence[QueueDefinition]) -> None:
        """Queues with their tags, settings and policies. Raises what is wrong with the first that
        can't be made so.
        """
        check_range("queues", len(definitions), 0, MAX_DEFINITIONS)
        check_once("queues", [one.name for one in definitions])
        placed = [(f"queues[{place}]", one) for place, one in enumerate(definitions)]
        for path, one in placed:
            with at(path):
                self._begin(one)
            self._plan_tags(path, one)
        for path, one in placed:
            self._plan_policies(path, one)
        for path, one in placed:
            with at(path):
                self.future.finish(full(self.by.account, one.name), one.settings)
            queue = self.known(one.name)
            if queue is None:
                self._create(path, one)
            else:
                self._change(path, one, queue)

    def _begin(self, one: QueueDefinition) -> None:
        """The queue without the policy that it is to have, and with its new tags."""
        name, queue = full(self.by.account, one.name), self.known(one.name)
        if queue is None:
            self._access.authorise(self.by, Verb.CREATE_QUEUE)
            self._access.check_account(self.by, name)
            record = self._creating.checked_record(name, self.by.id, settings_of(self.by, one.settings))
            self._creating.check_room(record)
        else:
            self._access.check_taken(self.by, queue)
            self.authorise(Verb.GET_QUEUE, queue)
            changes = self.changes(one, queue.record)
            if changes:
                self.authorise(Verb.SET_QUEUE, queue)
                self._queues.with_mask(self.by, queue, one.settings)
            record = changed_record(queue.record, settings_of(self.by, QueueSettings(**changes)))
            if one.redrive_policy is not UNSET:
                record = replace(record, redrive_policy=None)
        more = [tag for tag in one.tags or () if all(tag.name != there.name for there in record.tags)]
        first, starts = record.next_tag_id, [0] * record.partitions
        new = [
            TagRecord(first + number, tag.name, 0, 0, starts, tag.filter, tag.user_attributes, tag.read_qps)
            for number, tag in enumerate(more)
        ]
        self.future.put(replace(record, tags=[*record.tags, *new], next_tag_id=first + len(new)))

    def changes(self, one: QueueDefinition, record: QueueRecord) -> dict[str, Any]:
        """The settings that are another than is wanted, in the caller's names."""
        shown = record_for(self.by.account, record)
        return {field: value for field, value in named(one.settings).items() if getattr(shown, field) != value}

    def _plan_tags(self, path: str, one: QueueDefinition) -> None:
        queue, tags = self.known(one.name), one.tags or []
        with at(path):
            check_range("tags", len(tags), 0, MAX_TAGS)
        check_once(f"{path}.tags", [tag.name for tag in tags])
        for place, tag in enumerate(tags):
            with at(f"{path}.tags[{place}]"):
                check_name("tag", tag.name)
                check_filter(tag.filter)
                check_user_attributes(tag.user_attributes)
                check_asked("read_qps", tag.read_qps)
                there = None if queue is None else queue.by_name.get(tag.name)
                if there is not None:
                    self._check_same(one.name, tag, there)
                    continue
                self.authorise(Verb.CREATE_TAG, queue)
            # A tag of a new queue sees all that was sent since that was made.
            start = 0 if queue is None else -1
            made = Difference("create", "tag", tag.name, one.name, after=tag)
            self.add(TAGS, f"{path}.tags[{place}]", self._creates_tag(one.name, tag, start), made)

    def _creates_tag(self, queue: str, tag: TagDefinition, start_at_ms: int) -> Callable[[], Coroutine[Any, Any, Any]]:
        more = tag.filter, tag.user_attributes, tag.read_qps, tag.redrive_policy
        return lambda: self._queues.create_tag(self.by, queue, tag.name, start_at_ms, *more)

    def _check_same(self, queue: str, tag: TagDefinition, there: TagRecord) -> None:
        """Raises TagExists, InvalidValue: a tag can't be changed, and the default one not even be
        made.
        """
        if there.id == 0:
            raise InvalidValue("the default tag is there always: it is not defined", field="name", given=tag.name)
        policy = None if tag.redrive_policy is None else policy_of(self.by, tag.redrive_policy)
        for field, known, wanted in (
            ("filter", there.filter, tag.filter),
            ("user_attributes", there.user_attributes, tag.user_attributes),
            ("read_qps", there.read_qps, tag.read_qps),
            ("redrive_policy", as_asked(there.redrive_policy), policy),
        ):
            if known != wanted:
                about = (
                    f"queue {queue!r} has a tag {tag.name!r} with another {field}: a tag can't be changed, "
                    "delete it first"
                )
                raise TagExists(about, field=field, given=tag.name)

    def _plan_policies(self, path: str, one: QueueDefinition) -> None:
        """Checks the policies that are asked for against what all queues will be."""
        name, queue = full(self.by.account, one.name), self.known(one.name)
        if self.new_policy(one) is not UNSET:
            self.authorise(Verb.SET_REDRIVE_POLICY, queue)
        if one.redrive_policy is not UNSET:
            with at(f"{path}.redrive_policy"):
                policy = policy_of(self.by, one.redrive_policy)
                changed_record(self.future.queue(name).record, QueueSettings(redrive_policy=policy))
                self.future.set_policy(self.by, name, policy)
        for place, tag in enumerate(one.tags or ()):
            if tag.redrive_policy is not None and (queue is None or tag.name not in queue.by_name):
                with at(f"{path}.tags[{place}].redrive_policy"):
                    self.future.set_policy(self.by, name, policy_of(self.by, tag.redrive_policy), tag.name)

    def new_policy(self, one: QueueDefinition) -> RedrivePolicy | UnsetType | None:
        """The policy that a queue is to have in place of the one that it has; UNSET = it stays."""
        queue, wanted = self.known(one.name), one.redrive_policy
        if wanted is UNSET:
            return UNSET
        before = None if queue is None else as_asked(queue.record.redrive_policy)
        return UNSET if before == policy_of(self.by, wanted) else wanted

    def _create(self, path: str, one: QueueDefinition) -> None:
        """What a queue needs that can't be there before it, or before its tags, is set last."""
        by, settings = self.by, one.settings
        policy = None if one.redrive_policy is UNSET else one.redrive_policy
        waits = settings.on_exhausted in (DEAD_LETTER, PARK) and policy is None and not settings.max_receive_count
        if waits or (policy is not None and policy.dead_letter_queue == one.name):
            last = QueueSettings(
                on_exhausted=settings.on_exhausted, max_receive_count=settings.max_receive_count, redrive_policy=policy
            )
            settings = replace(settings, on_exhausted=None, max_receive_count=None)
            self.add(FINISH, path, lambda: self._queues.set_queue(by, one.name, last))
        else:
            settings = replace(settings, redrive_policy=policy)
        phase = CREATE if settings.redrive_policy is None else CREATE_WITH_POLICY
        self.add(
            phase,
            path,
            lambda: self._queues.create_queue(by, one.name, settings),
            Difference("create", "queue", one.name, after=one),
        )

    def _change(self, path: str, one: QueueDefinition, queue: Queue) -> None:
        by, shown = self.by, record_for(self.by.account, queue.record)
        changes, policy = self.changes(one, queue.record), self.new_policy(one)
        found = [
            Difference("change", "queue", one.name, "", field, getattr(shown, field), value)
            for field, value in changes.items()
        ]
        freed = Difference("change", "queue", one.name, "", "redrive_policy", as_asked(shown.redrive_policy), policy)
        if policy is None:
            self.add(FREE, path, lambda: self._queues.set_redrive_policy(by, one.name, None), freed)
        elif policy is not UNSET:
            found.append(freed)
            changes["redrive_policy"] = policy
        if changes:
            settings = QueueSettings(**changes)
            self.add(
                SET_AND_FREE if policy is None else SET,
                path,
                lambda: self._queues.set_queue(by, one.name, settings),
                *found,
            )

    def prune_tags(self, path: str, one: QueueDefinition) -> None:
        """Deletes the tags that a definition does not have."""
        queue, kept = self.known(one.name), {tag.name for tag in one.tags or ()}
        for tag in () if queue is None or one.tags is None else queue.tags[1:]:
            if tag.name not in kept:
                self.authorise(Verb.DELETE_TAG, queue)
                self.add(
                    PRUNE_TAGS,
                    path,
                    self._deletes_tag(one.name, tag.name),
                    Difference("delete", "tag", tag.name, one.name),
                )

    def _deletes_tag(self, queue: str, tag: str) -> Callable[[], Coroutine[Any, Any, Any]]:
        return lambda: self._queues.delete_tag(self.by, queue, tag)

    def prune_queues(self, queues: Iterable[Queue]) -> None:
        """Deletes queues."""
        for queue in queues:
            name = short(self.by.account, queue.name)
            self.authorise(Verb.DELETE_QUEUE, queue)
            self.add(PRUNE_QUEUES, "queues", self._deletes(name), Difference("delete", "queue", name))

    def _deletes(self, name: str) -> Callable[[], Coroutine[Any, Any, Any]]:
        return lambda: self._queues.delete_queue(self.by, name)
