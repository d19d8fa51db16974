"""Compares what is around queues: levels, alert policies, users."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from engine.alerts.watches import Watches
from engine.catalog.catalog import Catalog
from engine.queues.callers.access import Access
from engine.queues.callers.users import check_changes, check_level, with_grant
from engine.rules.alerts import MAX_POLICIES, check_policy
from engine.rules.grants import levels_of
from engine.rules.limits import check_range
from engine.rules.queue import Queue
from engine.services.accounts import record_for
from engine.services.alerts import AlertService
from engine.services.callers import CallerService
from engine.services.definitions.planning import ALERTS, GRANTS, PRUNE_ALERTS, PRUNE_GRANTS, USERS, Planner
from engine.services.definitions.shapes import (
    MAX_DEFINITIONS,
    AlertDefinition,
    Difference,
    GrantDefinition,
    QueueDefinition,
    UserDefinition,
    at,
    check_once,
)
from engine.services.queues import QueueService
from engine.shapes import Principal
from schemas.accounts import full, full_principal
from schemas.records import QueueRecord, UserRecord
from schemas.vocabulary import Level, Verb

CONTACTS = ("display_name", "email", "phone", "webhook")
QUOTAS = ("read_qps", "write_qps", "queues", "partitions", "daily_bytes", "waits")


def grants_of(record: QueueRecord) -> list[GrantDefinition]:
    """The levels on a queue and on its tags, in order."""
    tags = ["", *(tag.name for tag in record.tags)]
    found = (
        GrantDefinition(who, str(level), tag) for tag in tags for who, level in levels_of(record.grants, tag).items()
    )
    return sorted(found, key=lambda grant: (grant.tag, grant.principal))


def alerts_of(watches: Watches, queue: Queue) -> list[AlertDefinition]:
    """The alert policies of a queue and of its tags, in order."""
    found = (
        AlertDefinition(one.subject, one.measurement, one.threshold, one.tag) for one in watches.of(queue).policies
    )
    return sorted(found, key=lambda alert: (alert.tag, alert.subject, alert.measurement, alert.threshold))


def values_of(record: UserRecord) -> dict[str, Any]:
    """What a definition says of a user."""
    return {field: getattr(record, field) for field in (*CONTACTS, *QUOTAS)}


class Services:
    """The services whose verbs a document is made true by."""

    def __init__(self, queues: QueueService, callers: CallerService, alerts: AlertService) -> None:
        self.queues = queues
        self.callers = callers
        self.alerts = alerts


class Around:
    """Plans for the caller of a planner, whose queues are planned already."""

    def __init__(
        self, planner: Planner, catalog: Catalog, access: Access, watches: Watches, services: Services
    ) -> None:
        self._planner = planner
        self._by: Principal = planner.by
        self._catalog = catalog
        self._access = access
        self._watches = watches
        self._callers = services.callers
        self._alerts = services.alerts

    def plan_grants(self, path: str, one: QueueDefinition, *, prune: bool) -> None:
        """Levels on a queue and its tags. `none` takes one away; with `prune` so are those that the
        definition does not have.
        """
        queue, by = self._planner.known(one.name), self._by
        known_grants = [] if queue is None else grants_of(record_for(by.account, queue.record))
        there = {(grant.principal, grant.tag): grant for grant in known_grants}
        wanted = [(grant.principal, grant.tag) for grant in one.grants or ()]
        check_once(f"{path}.grants", wanted)
        for place, grant in enumerate(one.grants or ()):
            before = there.get((grant.principal, grant.tag))
            known = before.level if before else Level.NONE
            with at(f"{path}.grants[{place}]"):
                self._check_grant(full(by.account, one.name), grant)
            if known != grant.level:
                self._planner.authorise(Verb.GRANT, queue)
                action = "delete" if grant.level == Level.NONE else "change" if before else "create"
                field = "level" if action == "change" else ""
                told = (known, grant.level) if field else (before, None if action == "delete" else grant)
                difference = Difference(action, "grant", grant.principal, one.name, field, *told)
                self._planner.add(GRANTS, f"{path}.grants[{place}]", self._grants(one.name, grant), difference)
        for at_key, grant in there.items() if prune and one.grants is not None else ():
            if at_key not in wanted:
                self._planner.authorise(Verb.GRANT, queue)
                nothing = GrantDefinition(grant.principal, Level.NONE, grant.tag)
                difference = Difference("delete", "grant", grant.principal, one.name, before=grant)
                self._planner.add(PRUNE_GRANTS, path, self._grants(one.name, nothing), difference)

    def _check_grant(self, name: str, grant: GrantDefinition) -> None:
        principal, future = full_principal(self._by.account, grant.principal), self._planner.future
        check_level(principal, grant.level, grant.tag)
        tag = future.queue(name).tag(grant.tag).name if grant.tag else ""
        future.put(with_grant(future.queue(name).record, principal, grant.level, tag))

    def _grants(self, queue: str, grant: GrantDefinition) -> Callable[[], Coroutine[Any, Any, Any]]:
        return lambda: self._callers.grant(self._by, queue, grant.principal, grant.level, grant.tag)

    def plan_alerts(self, path: str, one: QueueDefinition, *, prune: bool) -> None:
        """Alert policies of a queue and its tags, and whether its statistics are mailed."""
        queue = self._planner.known(one.name)
        there = [] if queue is None else alerts_of(self._watches, queue)
        wanted = one.alerts or []
        check_once(f"{path}.alerts", wanted)
        for place, alert in enumerate(wanted):
            with at(f"{path}.alerts[{place}]"):
                check_policy(alert.tag or None, alert.subject, alert.measurement, alert.threshold)
                if alert.tag:
                    self._planner.future.queue(full(self._by.account, one.name)).tag(alert.tag)
                check_range("alerts", len({*wanted[: place + 1], *there}), 0, MAX_POLICIES)
            if alert not in there:
                self._planner.authorise(Verb.ADD_ALERT, queue)
                difference = Difference("create", "alert", alert.subject, one.name, after=alert)
                self._planner.add(ALERTS, f"{path}.alerts[{place}]", self._adds(one.name, alert), difference)
        if one.daily_statistics is not None:
            self._plan_daily(path, one, queue, one.daily_statistics)
        if prune and one.alerts is not None and queue is not None:
            self._prune_alerts(path, one, queue)

    def _adds(self, queue: str, alert: AlertDefinition) -> Callable[[], Coroutine[Any, Any, Any]]:
        return lambda: self._alerts.add_alert(
            self._by, queue, alert.tag or None, alert.subject, alert.measurement, alert.threshold
        )

    def _plan_daily(self, path: str, one: QueueDefinition, queue: Queue | None, enabled: bool) -> None:
        before = queue is not None and self._watches.of(queue).daily_statistics
        if before != enabled:
            self._planner.authorise(Verb.SET_DAILY_STATISTICS, queue)
            difference = Difference("change", "queue", one.name, "", "daily_statistics", before, enabled)
            shown = [] if queue is None else [difference]
            self._planner.add(
                ALERTS, path, lambda: self._alerts.set_daily_statistics(self._by, one.name, enabled), *shown
            )

    def _prune_alerts(self, path: str, one: QueueDefinition, queue: Queue) -> None:
        for policy in self._watches.of(queue).policies:
            alert = AlertDefinition(policy.subject, policy.measurement, policy.threshold, policy.tag)
            if alert not in (one.alerts or ()):
                self._planner.authorise(Verb.DELETE_ALERT, queue)
                difference = Difference("delete", "alert", alert.subject, one.name, before=alert)
                self._planner.add(PRUNE_ALERTS, path, self._deletes(one.name, policy.id), difference)

    def _deletes(self, queue: str, id: str) -> Callable[[], Coroutine[Any, Any, Any]]:
        return lambda: self._alerts.delete_alert(self._by, queue, id)

    def plan_users(self, users: Sequence[UserDefinition]) -> None:
        """Contacts and quotas; whoever names users may manage them."""
        check_range("users", len(users), 0, MAX_DEFINITIONS)
        check_once("users", [user.name for user in users])
        for place, user in enumerate(users):
            path, name = f"users[{place}]", full_principal(self._by.account, user.name)
            self._access.authorise(self._by, Verb.MANAGE_USERS)
            self._access.check_account(self._by, name)
            with at(path):
                check_changes(name, user.values)
            before = values_of(self._catalog.users.get(name) or UserRecord(name, 0))
            changes = {field: value for field, value in user.values.items() if before[field] != value}
            found = [
                Difference("change", "user", user.name, "", field, before[field], value)
                for field, value in changes.items()
            ]
            if changes:
                self._planner.add(USERS, path, self._sets_user(user.name, {**before, **user.values}, changes), *found)

    def _sets_user(
        self, name: str, values: Mapping[str, Any], changes: Mapping[str, Any]
    ) -> Callable[[], Coroutine[Any, Any, Any]]:
        async def set_user() -> None:
            if changes.keys() & set(CONTACTS):
                await self._callers.set_contacts(self._by, name, *(values[field] for field in CONTACTS))
            if changes.keys() & set(QUOTAS):
                await self._callers.set_user_quota(self._by, name, **{field: values[field] for field in QUOTAS})

        return set_user
