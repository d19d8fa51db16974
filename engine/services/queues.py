"""The verbs of queues and tags.

Each method passes the authoriser before anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.gate import Gate, bounded
from engine.meters.shapes import ReceiveCounts
from engine.plane.tallies import Tallies
from engine.queues.callers.access import Access
from engine.queues.overview.overview import page
from engine.queues.parts import QueueParts
from engine.rules.grants import any_granted
from engine.rules.limits import SORTS, check_asked
from engine.rules.masks.sight import masked
from engine.rules.queue import Queue
from engine.rules.rights import no_queue
from engine.services.accounts import (
    edit_of,
    pause_for,
    policy_for,
    policy_of,
    queue_for,
    record_for,
    settings_of,
    shared_for,
    tags_for,
)
from engine.shapes import Edit, NewTag, Principal, QueueCounts, QueueHistory, QueueInfo, SharedQueue, TagInfo
from runtime.asked import note, note_hidden
from runtime.deadline import CHANGE_S, MESSAGES_S
from schemas.accounts import account_of, full, short
from schemas.filters import Filter
from schemas.records import Pause, QueueRecord
from schemas.records.settings import QueueSettings, RedrivePolicy
from schemas.vocabulary import Verb


class QueueService:
    """Queues and tags: makes, changes, shows and deletes them."""

    def __init__(self, gate: Gate, catalog: Catalog, access: Access, parts: QueueParts, tallies: Tallies) -> None:
        self._gate = gate
        self._catalog = catalog
        self._access = access
        self._tallies = tallies
        self._info = parts.info
        self._creating = parts.creating
        self._changes = parts.changes
        self._deletions = parts.deletions
        self._purges = parts.purges
        self._pauses = parts.pauses
        self._tags = parts.tags
        self._overview = parts.overview
        self._history = parts.history

    def known(self, name: str, by: Principal | None = None) -> QueueRecord | None:
        """As `record`, without waiting; None = this worker may not have heard of it."""
        account = "" if by is None else by.account
        queue = self._catalog.queues.get(full(account, name) if account else name)
        if queue is None or not (by is None or by.admin or self._access.knows(by, queue)):
            return None
        return record_for(account, queue.record) if account else queue.record

    async def record(self, name: str, by: Principal | None = None) -> QueueRecord:
        """What this worker knows of a queue; Redis is not asked. For dialects in which a verb means
        something else in a FIFO queue.

        Nobody is authorised by it: the verb that follows does that. Raises QueueNotFound, also for
        a queue with which `by` may do nothing; None = whoever asks.
        """
        record = self.known(name, by)
        if record is None:
            await self._gate.sync()
            record = self.known(name, by)
        if record is None:
            if by is not None and (name := full(by.account, name)) in self._catalog.queues:
                note(by.id, by.key_id, "", name)
                note_hidden()
            raise no_queue(name)
        return record

    def knows(self, by: Principal, queue: str) -> bool:
        """Whether a caller is told that there is a queue of that name, which has the account in
        it.
        """
        found = self._catalog.queues.get(queue)
        return by.admin or (found is not None and self._access.knows(by, found))

    @bounded(CHANGE_S)
    async def create_queue(
        self, by: Principal, name: str, settings: QueueSettings, tags: Sequence[NewTag] = (), owner: str | None = None
    ) -> tuple[QueueInfo, bool]:
        """Makes a queue with its tags; (info, False) when an equal one exists. Raises QueueExists,
        InvalidValue, NotAllowedOnQueue.

        `owner` None = who asks; only administrators make queues for others.
        """
        name, owner = full(by.account, name), full(by.account, owner) if owner else by.id
        note(by.id, by.key_id, Verb.CREATE_QUEUE, name)
        if owner != by.id:
            self._access.authorise(by, Verb.MANAGE_USERS)
            self._access.check_account(by, owner)
        self._authorise_creation(by, name)
        if (existing := self._catalog.queues.get(name)) is not None:
            self._access.check_taken(by, existing)
        queue, made = await self._creating.create(by, name, owner, settings_of(by, settings), tags)
        self._access.check_taken(by, queue)
        return await self._shown(by, queue), made

    async def list_queues(
        self, by: Principal, prefix: str, limit: int, after: str | None
    ) -> tuple[list[str], str | None]:
        """Names in order, and the `after` of the next page: of the caller's account, or of the one
        that the prefix names. Who is not told of all: own queues only.
        """
        self._access.authorise(by, Verb.LIST_QUEUES)
        check_asked("limit", limit)
        queues, names = self._catalog.queues, self._listed(by, prefix, after)
        if not by.admin:
            names = [n for n in names if self._access.sees(by, queues[n])]
        some = [short(by.account, name) for name in names[:limit]]
        return some, some[-1] if len(names) > limit else None

    @bounded(MESSAGES_S)
    async def list_counts(
        self,
        by: Principal,
        prefix: str = "",
        limit: int = 1000,
        sort: str = "name",
        cursor: str = "",
        *,
        dead_letters: bool = False,
    ) -> tuple[list[QueueCounts], str | None]:
        """What was counted last in the queues of the caller's account, or of the one that the
        prefix names, that the caller may look at, in an order of SORTS; and the cursor of the next
        page. `dead_letters`: only queues that get those of others, or were made to. Raises
        InvalidValue, StoreUnavailable.
        """
        check_asked("limit", limit)
        if sort not in SORTS:
            raise InvalidValue(
                f"sort must be one of {', '.join(SORTS)}, given {sort[:200]!r}", field="sort", given=sort
            )
        self._access.authorise(by, Verb.LIST_QUEUES)
        names = self._listed(by, prefix, None)
        if dead_letters:
            names = [
                name
                for name in names
                if self._catalog.sources.get(name) or self._catalog.queues[name].record.dead_letter
            ]
        return page(await self._counted(by, names), sort, limit, cursor)

    @bounded(MESSAGES_S)
    async def count_each(self, by: Principal, prefix: str = "") -> list[QueueCounts]:
        """As `list_counts`, of all queues that the caller may look at, in whatever account: an
        administrator of the service has every queue. Raises StoreUnavailable.
        """
        return await self._counted(by, self._names(by, prefix))

    def count_receives(self, by: Principal, prefix: str = "") -> list[ReceiveCounts]:
        """What this worker has counted of receives, of the queues of `count_each`."""
        rows = self._tallies.of(self._looked_at(by, self._names(by, prefix)))
        return [replace(row, queue=short(by.account, row.queue)) for row in rows] if by.account else rows

    def stored_bytes(self, by: Principal, prefix: str = "") -> dict[str, int]:
        """Returns the bytes of messages (body and attributes) that Kafka has taken from sends of
        this worker, by queue, of the queues of `count_each`.
        """
        rows = self._tallies.stored(self._looked_at(by, self._names(by, prefix)))
        return {short(by.account, name): size for name, size in rows.items()}

    def _names(self, by: Principal, prefix: str) -> list[str]:
        """Those of all queues that begin so, for who may list queues."""
        self._access.authorise(by, Verb.LIST_QUEUES)
        prefix = full(by.account, prefix)
        return [name for name in self._catalog.names if name.startswith(prefix)]

    def _looked_at(self, by: Principal, names: Sequence[str]) -> Iterator[Queue]:
        """Those that the caller may look at."""
        queues = (self._catalog.queues[name] for name in names)
        return (queue for queue in queues if by.admin or self._access.may(by, Verb.GET_QUEUE, queue))

    async def _counted(self, by: Principal, names: Sequence[str]) -> list[QueueCounts]:
        rows = await self._overview.of(self._looked_at(by, names))
        return [replace(row, name=short(by.account, row.name)) for row in rows] if by.account else rows

    @bounded(MESSAGES_S)
    async def history(self, by: Principal, queue: str, span: str) -> QueueHistory:
        """The numbers of a queue over a span of time, `hour` or `day`. Raises InvalidValue,
        StoreUnavailable.
        """
        found = await self._history.of(await self._gate.queue(by, Verb.GET_STATISTICS, queue), span)
        return replace(found, queue=short(by.account, found.queue)) if by.account else found

    def kafka_ms(self) -> int:
        """Kafka's time (epoch ms) at the latest, by which messages are sent and due."""
        return self._overview.now_ms()

    @bounded(MESSAGES_S)
    async def list_shared(
        self, by: Principal, prefix: str, limit: int, after: str | None
    ) -> tuple[list[SharedQueue], str | None]:
        """Queues of others with which `by` was given a right, in order of their names, and the
        `after` of the next page. Everybody may ask.
        """
        self._access.authorise(by, Verb.LIST_QUEUES)
        check_asked("limit", limit)
        named = [
            (short(by.account, queue.name), queue)
            for queue in self._catalog.queues.values()
            if self._is_shared(by, queue)
        ]
        shared = sorted((n, queue) for n, queue in named if n.startswith(prefix) and (after is None or n > after))
        some = [shared_for(by.account, await self._info.shared(queue)) for _, queue in shared[:limit]]
        return some, some[-1].name if len(shared) > limit else None

    @bounded(MESSAGES_S)
    async def get_queue(self, by: Principal, name: str) -> QueueInfo:
        return await self._shown(by, await self._gate.queue(by, Verb.GET_QUEUE, name))

    async def _shown(self, by: Principal, queue: Queue) -> QueueInfo:
        return queue_for(by.account, await self._info.queue(queue))

    @bounded(CHANGE_S)
    async def set_queue(self, by: Principal, name: str, settings: QueueSettings, edit: Edit | None = None) -> QueueInfo:
        """Changes what is named, and what `edit` makes of what is: nothing is changed by others
        meanwhile; not the redrive policy. Who may not unmask messages may set no other mask.
        """
        found = await self._gate.queue(by, Verb.SET_QUEUE, name)
        settings = self.with_mask(by, found, settings)
        return await self._shown(
            by, await self._changes.set(by, found.name, settings_of(by, settings), edit_of(by, edit))
        )

    def with_mask(self, by: Principal, queue: Queue, settings: QueueSettings) -> QueueSettings:
        """Settings that `by` would set. Raises NotAuthorised for another mask by who may not see
        what it hides; the one that is known here is not named then: it may be older than a change.
        """
        if settings.mask is None or self._access.may(by, Verb.UNMASK, queue):
            return settings
        if settings.mask != queue.record.mask:
            raise masked(by, queue, "change its mask")
        return replace(settings, mask=None)

    @bounded(CHANGE_S)
    async def delete_queue(self, by: Principal, name: str) -> None:
        await self._deletions.delete((await self._gate.queue(by, Verb.DELETE_QUEUE, name)).name)

    def deleted_at_ms(self, by: Principal, name: str) -> int | None:
        """When the queue of that name was deleted last (epoch ms), if that was within the last
        minute; it may be there again.
        """
        return self._catalog.deleted.get(full(by.account, name))

    @bounded(CHANGE_S)
    async def purge(self, by: Principal, name: str) -> None:
        await self._purges.purge((await self._gate.queue(by, Verb.PURGE, name)).name)

    @bounded(CHANGE_S)
    async def pause(self, by: Principal, name: str, tag: str | None = None, reason: str = "") -> Pause:
        """Has nobody receive from a queue, or under a tag of it, until `resume`; may be repeated.
        Returns the pause that is in force.
        """
        return pause_for(
            by.account, await self._pauses.pause(by.id, await self._to_hold(by, Verb.PAUSE, name, tag), tag, reason)
        )

    @bounded(CHANGE_S)
    async def resume(self, by: Principal, name: str, tag: str | None = None) -> None:
        """Ends a pause of a queue, or of a tag by itself; may be repeated."""
        await self._pauses.resume(await self._to_hold(by, Verb.RESUME, name, tag), tag)

    async def _to_hold(self, by: Principal, verb: Verb, name: str, tag: str | None) -> str:
        """The full name of a queue that is to be paused or resumed."""
        note(by.id, by.key_id, verb, full(by.account, name), tag or "")
        return (await self._gate.queue(by, verb, name)).name

    @bounded(CHANGE_S)
    async def copy_queue(self, by: Principal, name: str, target: str) -> QueueInfo:
        target = full(by.account, target)
        note(by.id, by.key_id, Verb.COPY_QUEUE, full(by.account, name), subject=target)
        found = await self._gate.queue(by, Verb.COPY_QUEUE, name)
        self._authorise_creation(by, target)
        return await self._shown(by, await self._creating.copy(found.name, by.id, target))

    async def get_redrive_policy(self, by: Principal, name: str) -> tuple[RedrivePolicy | None, str]:
        """The policy, and why it moves nothing: a PolicyFault word, empty = it does."""
        policy, fault = self._info.policy(await self._gate.queue(by, Verb.GET_REDRIVE_POLICY, name))
        return policy_for(by.account, policy), fault

    @bounded(CHANGE_S)
    async def set_redrive_policy(self, by: Principal, name: str, policy: RedrivePolicy | None) -> RedrivePolicy | None:
        """Sets the policy; None removes it."""
        found = await self._gate.queue(by, Verb.SET_REDRIVE_POLICY, name)
        return policy_for(by.account, await self._changes.set_policy(by, found.name, policy_of(by, policy)))

    # Tags

    @bounded(CHANGE_S)
    async def create_tag(
        self,
        by: Principal,
        queue: str,
        name: str,
        start_at_ms: int,
        filter: Filter | None,
        user_attributes: dict[str, str],
        read_qps: int = 0,
        redrive_policy: RedrivePolicy | None = None,
    ) -> tuple[TagInfo, bool]:
        """Makes a tag; (info, False) when an equal one exists. Raises TagExists, InvalidValue,
        NotAllowedOnQueue.

        `redrive_policy`: where messages go that die under this tag; None = as in the queue.
        """
        policy = policy_of(by, redrive_policy)
        note(by.id, by.key_id, Verb.CREATE_TAG, full(by.account, queue), name)
        before = await self._gate.queue(by, Verb.CREATE_TAG, queue)
        names = [] if filter is None else [condition.name for condition in filter.conditions]
        if before.hides is not None and before.hides.hides_any(names) and not self._gate.may(by, Verb.UNMASK, before):
            raise masked(by, before, "make a tag that chooses by attributes that its mask hides")
        queue = before.name
        found, tag, made = await self._tags.create(
            by, queue, name, start_at_ms, filter, user_attributes, read_qps, policy
        )
        return tags_for(by.account, await self._info.tags(found, [tag]))[0], made

    @bounded(CHANGE_S)
    async def seek(self, by: Principal, queue: str, name: str, to_ms: int) -> TagInfo:
        """Has a tag begin anew at messages that were sent at `to_ms` or later: 0 oldest, -1 now."""
        note(by.id, by.key_id, Verb.SEEK, full(by.account, queue), name)
        found, tag = await self._tags.seek((await self._gate.queue(by, Verb.SEEK, queue)).name, name, to_ms)
        return tags_for(by.account, await self._info.tags(found, [tag]))[0]

    @bounded(MESSAGES_S)
    async def list_tags(self, by: Principal, queue: str) -> list[TagInfo]:
        found = await self._gate.queue(by, Verb.LIST_TAGS, queue)
        return tags_for(by.account, await self._info.tags(found, found.tags))

    @bounded(CHANGE_S)
    async def delete_tag(self, by: Principal, queue: str, name: str) -> None:
        note(by.id, by.key_id, Verb.DELETE_TAG, full(by.account, queue), name)
        await self._tags.delete((await self._gate.queue(by, Verb.DELETE_TAG, queue)).name, name)

    def _authorise_creation(self, by: Principal, name: str) -> None:
        """Raises NotAuthorised unless `by` may make a queue of that full name."""
        self._access.authorise(by, Verb.CREATE_QUEUE)
        self._access.check_account(by, name)

    def _is_shared(self, by: Principal, queue: Queue) -> bool:
        """Whether a queue of somebody else was granted to a caller."""
        return queue.record.owner != by.id and any_granted(queue.record.grants, by.id)

    def _listed(self, by: Principal, prefix: str, after: str | None) -> list[str]:
        """The names of queues that begin with `prefix` and come after `after`, in order: those of
        the caller's account, or of the one that the prefix names.
        """
        prefix, after = full(by.account, prefix), "" if after is None else full(by.account, after)
        accounts = self._access.accounts
        return [
            name
            for name in self._catalog.names
            if name.startswith(prefix) and name > after and (not accounts or self._is_of(name, by, prefix))
        ]

    def _is_of(self, name: str, by: Principal, prefix: str) -> bool:
        account = account_of(name)
        return account not in self._access.accounts or account == by.account or prefix.startswith(f"{account}.")
