"""The verbs of definitions: what is there as one document, and a document made true."""

from __future__ import annotations

from collections.abc import Collection
from operator import attrgetter

from engine.alerts.watches import Watches
from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.gate import Gate, bounded
from engine.queues.callers.access import Access
from engine.queues.lives.creating import Creating
from engine.rules.queue import Queue
from engine.rules.rights import as_asked
from engine.services.accounts import record_for
from engine.services.definitions.around import Around, Services, alerts_of, grants_of, values_of
from engine.services.definitions.planning import Future, Planner
from engine.services.definitions.shapes import (
    PRUNED,
    Definitions,
    Difference,
    QueueDefinition,
    Step,
    TagDefinition,
    UserDefinition,
    at,
)
from engine.shapes import Principal
from runtime.asked import current
from schemas.accounts import account_of, full, short_principal
from schemas.records.settings import TABLE, QueueSettings, effective
from schemas.vocabulary import Verb

# How long all changes of a document may take together.
APPLY_S = 600.0
PAGE = 1_000
# Shown and set by themselves, or in the words of a dialect alone.
_APART = ("redrive_policy", "grants", "policy")


class DefinitionService:
    """Shows and applies documents. Any number of tasks may ask; each change is made under the right
    to change its queue, so of two documents the last one holds, part by part.
    """

    def __init__(
        self, gate: Gate, catalog: Catalog, access: Access, creating: Creating, watches: Watches, services: Services
    ) -> None:
        self._gate = gate
        self._catalog = catalog
        self._access = access
        self._creating = creating
        self._watches = watches
        self._services = services

    @bounded(APPLY_S)
    async def get_definitions(self, by: Principal, prefix: str = "") -> Definitions:
        """What the caller may see of the queues of their account whose names begin with `prefix`,
        by name, and of its users, if they may manage them.
        """
        self._access.authorise(by, Verb.LIST_QUEUES)
        await self._gate.sync()
        queues = [
            self._defined(by, queue)
            for queue in await self._listed(by, prefix)
            if self._access.may(by, Verb.GET_QUEUE, queue)
        ]
        users: list[UserDefinition] = []
        if self._access.may_alone(by, Verb.MANAGE_USERS):
            records = [
                one
                for one in self._catalog.users.values()
                if account_of(one.name) == by.account or one.name == by.account != ""
            ]
            users = [UserDefinition(short_principal(by.account, one.name), values_of(one)) for one in records]
        return Definitions(queues, sorted(users, key=attrgetter("name")))

    async def _listed(self, by: Principal, prefix: str) -> list[Queue]:
        names: list[str] = []
        after: str | None = None
        while True:
            some, after = await self._services.queues.list_queues(by, prefix, PAGE, after)
            names += some
            if after is None:
                break
        found = (self._catalog.queues.get(full(by.account, name)) for name in names)
        return [queue for queue in found if queue is not None]

    def _defined(self, by: Principal, queue: Queue) -> QueueDefinition:
        """A queue as its caller may see it."""
        record = record_for(by.account, queue.record)
        settings = {
            name: value
            for name, value in effective(record).items()
            if name not in _APART and _counts(name, value, fifo=record.fifo)
        }
        tags = [
            TagDefinition(tag.name, tag.filter, tag.user_attributes, tag.read_qps, as_asked(tag.redrive_policy))
            for tag in record.tags[1:]
        ]
        daily = self._watches.of(queue).daily_statistics
        return QueueDefinition(
            record.name,
            QueueSettings(**settings),
            as_asked(record.redrive_policy),
            sorted(tags, key=attrgetter("name")) if self._access.may(by, Verb.LIST_TAGS, queue) else None,
            grants_of(record) if self._access.may(by, Verb.LIST_GRANTS, queue) else None,
            alerts_of(self._watches, queue) if self._access.may(by, Verb.LIST_ALERTS, queue) else None,
            daily if self._access.may(by, Verb.GET_STATISTICS, queue) else None,
        )

    @bounded(APPLY_S)
    async def put_definitions(
        self, by: Principal, wanted: Definitions, *, dry_run: bool = False, prune: Collection[str] = ()
    ) -> list[Difference]:
        """Makes what is there as a document says, and returns what was done; with `dry_run` what
        would be. What the document does not name stays; of the kinds in `prune` (words of PRUNED)
        what it does not have is deleted. What is wrong with it is raised before anything is
        changed, with its path. What only shows later (Kafka is away, a quota, another's change)
        ends it there: the same document goes on.
        """
        if wrong := sorted(set(prune) - set(PRUNED)):
            about = f"prune must be of {', '.join(PRUNED)}, given {wrong[0][:100]!r}"
            raise InvalidValue(about, field="prune", limit=list(PRUNED), given=wrong[0][:100])
        self._access.authorise(by, Verb.LIST_QUEUES)
        await self._gate.sync()
        asked = current.get()
        current.set(None)  # what is only planned is not asked for
        try:
            steps = await self._planned(by, wanted, prune)
        finally:
            current.set(asked)
        for step in () if dry_run else steps:
            with at(step.path):
                await step.run()
        return [difference for step in steps for difference in step.differences]

    async def _planned(self, by: Principal, wanted: Definitions, prune: Collection[str]) -> list[Step]:
        services, catalog, access = self._services, self._catalog, self._access
        planner = Planner(by, catalog, access, self._creating, Future(catalog, access), services.queues)
        around = Around(planner, catalog, access, self._watches, services)
        around.plan_users(wanted.users)
        planner.plan(wanted.queues)
        for place, one in enumerate(wanted.queues):
            around.plan_grants(f"queues[{place}]", one, prune="grants" in prune)
            around.plan_alerts(f"queues[{place}]", one, prune="alerts" in prune)
            if "tags" in prune:
                planner.prune_tags(f"queues[{place}]", one)
        if "queues" in prune:
            kept = {full(by.account, one.name) for one in wanted.queues}
            planner.prune_queues([queue for queue in await self._listed(by, "") if queue.name not in kept])
        return sorted(planner.steps, key=attrgetter("phase"))


def _counts(name: str, value: object, *, fifo: bool) -> bool:
    """Whether a setting says something of a queue of this kind."""
    setting = TABLE[name]
    return (fifo or not setting.fifo) and bool(value or not (setting.none or name == "default_tag_name"))
