"""What callers name, and what they are shown, in names of their account (schemas/accounts.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import structs

from engine.shapes import (
    Edit,
    KeyInfo,
    Principal,
    QueueInfo,
    SharedQueue,
    TagInfo,
    TaskInfo,
    TransactionInfo,
    UserInfo,
    Webhook,
)
from schemas.accounts import full, full_principal, short, short_principal
from schemas.records import Pause, QueueRecord, TagRecord
from schemas.records.settings import ANY, Grant, QueueSettings, RedrivePolicy
from schemas.records.watching import AuditRecord

Tag = TypeVar("Tag", TagInfo, TagRecord)

# What callers name.


def settings_of(by: Principal, settings: QueueSettings) -> QueueSettings:
    """Settings with full names of queues and principals."""
    account = by.account
    if not account:
        return settings
    policy, sources, grants = settings.redrive_policy, settings.allowed_sources, settings.grants
    return structs.replace(
        settings,
        redrive_policy=policy_of(by, policy),
        allowed_sources=None if sources is None else [name if name == ANY else full(account, name) for name in sources],
        grants=None
        if grants is None
        else [_grant(grant, [full_principal(account, who) for who in grant.principals]) for grant in grants],
    )


def policy_of(by: Principal, policy: RedrivePolicy | None) -> RedrivePolicy | None:
    """A redrive policy with the full name of its queue."""
    if policy is None or not by.account:
        return policy
    return structs.replace(policy, dead_letter_queue=full(by.account, policy.dead_letter_queue))


def edit_of(by: Principal, edit: Edit | None) -> Edit | None:
    """An edit that is given the record as its caller is shown it, and answers with full names."""
    if edit is None or not by.account:
        return edit
    return lambda record: settings_of(by, edit(record_for(by.account, record)))


def _grant(grant: Grant, principals: list[str]) -> Grant:
    return structs.replace(grant, principals=principals)


# What callers are shown.


def record_for(account: str, record: QueueRecord) -> QueueRecord:
    """A queue's record as a caller of `account` is shown it."""
    if not account:
        return record
    return structs.replace(record, **_names(account, record), tags=tags_for(account, record.tags))


def queue_for(account: str, queue: QueueInfo) -> QueueInfo:
    """A queue as a caller of `account` is shown it."""
    if not account:
        return queue
    sources = _shorts(account, queue.source_queues)
    return structs.replace(queue, **_names(account, queue), tags=tags_for(account, queue.tags), source_queues=sources)


def _names(account: str, queue: QueueRecord | QueueInfo) -> dict[str, Any]:
    return {
        "name": short(account, queue.name),
        "owner": short_principal(account, queue.owner),
        "redrive_policy": policy_for(account, queue.redrive_policy),
        "paused": queue.paused and pause_for(account, queue.paused),
        "allowed_sources": _shorts(account, queue.allowed_sources),
        "grants": [
            _grant(grant, [short_principal(account, who) for who in grant.principals]) for grant in queue.grants
        ],
    }


def tags_for(account: str, tags: Sequence[Tag]) -> list[Tag]:
    """Tags as a caller of `account` is shown them."""
    if not account:
        return list(tags)
    return [
        structs.replace(
            tag,
            redrive_policy=policy_for(account, tag.redrive_policy),
            paused=tag.paused and pause_for(account, tag.paused),
        )
        for tag in tags
    ]


def policy_for(account: str, policy: RedrivePolicy | None) -> RedrivePolicy | None:
    """A redrive policy as a caller of `account` is shown it."""
    if policy is None or not account:
        return policy
    return structs.replace(policy, dead_letter_queue=short(account, policy.dead_letter_queue))


def pause_for(account: str, paused: Pause) -> Pause:
    """A pause as a caller of `account` is shown it."""
    return structs.replace(paused, by=short_principal(account, paused.by)) if account else paused


def shared_for(account: str, queue: SharedQueue) -> SharedQueue:
    """A queue of somebody else as a caller of `account` is shown it."""
    return (
        structs.replace(queue, name=short(account, queue.name), owner=short_principal(account, queue.owner))
        if account
        else queue
    )


def task_for(account: str, task: TaskInfo) -> TaskInfo:
    """A redrive task as a caller of `account` is shown it."""
    if not account:
        return task
    destination = None if task.destination is None else short(account, task.destination)
    choice = task.choice
    if choice is not None and choice.source:
        choice = structs.replace(choice, source=short(account, choice.source))
    return structs.replace(task, source=short(account, task.source), destination=destination, choice=choice)


def transaction_for(account: str, transaction: TransactionInfo) -> TransactionInfo:
    """A transaction as a caller of `account` is shown it."""
    if not account:
        return transaction
    return structs.replace(
        transaction,
        queue=short(account, transaction.queue),
        producer_group=short(account, transaction.producer_group),
        principal=short_principal(account, transaction.principal),
        decided_by=short_principal(account, transaction.decided_by) if transaction.decided_by else "",
    )


def webhook_for(account: str, webhook: Webhook) -> Webhook:
    """Where a producer group is asked, as a caller of `account` is shown it."""
    if not account:
        return webhook
    group, owner = short(account, webhook.producer_group), short_principal(account, webhook.owner)
    return structs.replace(webhook, producer_group=group, owner=owner)


def key_for(account: str, key: KeyInfo) -> KeyInfo:
    """A key as a caller of `account` is shown it."""
    return structs.replace(key, principal=short_principal(account, key.principal)) if account else key


def audit_for(account: str, record: AuditRecord) -> AuditRecord:
    """A record of the audit as a caller of `account` is shown it; its subject is what the engine
    noted.
    """
    if not account:
        return record
    who = short_principal(account, record.principal) if record.principal else ""
    return structs.replace(record, principal=who, queue=short(account, record.queue) if record.queue else "")


def user_for(account: str, user: UserInfo) -> UserInfo:
    """A user as a caller of `account` is shown it."""
    return structs.replace(user, name=short_principal(account, user.name)) if account else user


def _shorts(account: str, names: Sequence[str]) -> list[str]:
    return [name if name == ANY else short(account, name) for name in names]
