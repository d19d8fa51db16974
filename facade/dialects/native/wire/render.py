"""The engine's shapes -> the native dialect's replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from msgspec import UNSET, Struct, UnsetType, structs

from engine.shapes import (
    Check,
    Delivery,
    EntryResult,
    KeyInfo,
    ParkedPage,
    Peeked,
    QueueCounts,
    QueueInfo,
    Sent,
    TagInfo,
    TaskInfo,
    TransactionInfo,
    UserInfo,
    UserUse,
    Webhook,
)
from facade.dialects.native.wire.keys import KeyReply, UseReply, UserReply
from facade.dialects.native.wire.replies import (
    AttributeReply,
    ChoiceReply,
    ConditionReply,
    DeliveryReply,
    DoneReply,
    FilterReply,
    OriginReply,
    ParkedGroupReply,
    ParkedReply,
    PauseReply,
    PeekedReply,
    QueueCountsReply,
    RedrivePolicyReply,
    ResultReply,
    ResultsReply,
    ResultStatus,
    SentReply,
    TagReply,
    TaskReply,
)
from facade.dialects.native.wire.settings import QueueReply, settings_reply
from facade.dialects.native.wire.transaction_replies import (
    CheckReply,
    ChecksReply,
    HalfMessageReply,
    TransactionReply,
    WebhookReply,
)
from schemas.filters import Filter
from schemas.records import Attribute, Choice, Origin, Pause, trace_context
from schemas.records.settings import RedrivePolicy
from schemas.vocabulary import DEFAULT_PRIORITY, NATIVE_SENDER, SOURCE_QUEUE_ATTRIBUTE, Role


def policy_reply(policy: RedrivePolicy, fault: str) -> RedrivePolicyReply:
    """A redrive policy, and why it moves nothing."""
    return RedrivePolicyReply(
        dead_letter_queue=policy.dead_letter_queue, max_receive_count=policy.max_receive_count, stopped=fault
    )


def pause_reply(paused: Pause) -> PauseReply:
    """Who paused something, when and why."""
    return PauseReply(by=paused.by, at_ms=paused.at_ms, reason=paused.reason)


def counts_reply(row: QueueCounts) -> QueueCountsReply:
    """What was counted in a queue."""
    return QueueCountsReply(
        name=row.name,
        backlog=row.backlog,
        ready=row.ready,
        delayed=row.delayed,
        leased=row.leased,
        parked=row.parked,
        stored=row.stored,
        oldest_at_ms=row.oldest_at_ms or None,
        as_of_ms=row.as_of_ms or None,
        paused=row.paused,
        sent=row.sent,
        tags=[DoneReply(name=name, **structs.asdict(done)) for name, done in row.done.items()],
    )


def queue_reply(queue: QueueInfo) -> Struct:
    """A queue with its tags."""
    policy = None if queue.redrive_policy is None else policy_reply(queue.redrive_policy, queue.redrive_fault)
    reply: Struct = QueueReply(
        name=queue.name,
        owner=queue.owner,
        created_at_ms=queue.created_at_ms,
        modified_at_ms=queue.modified_at_ms,
        source_queues=queue.source_queues,
        paused=queue.paused and pause_reply(queue.paused),
        tags=[tag_reply(tag) for tag in queue.tags],
        **{**settings_reply(queue), "redrive_policy": policy},
    )
    return reply


def user_reply(user: UserInfo, use: UserUse) -> UserReply:
    """A user with what they have."""
    return UserReply(**structs.asdict(user), used=UseReply(**structs.asdict(use)))


def key_reply(key: KeyInfo) -> KeyReply:
    """An access key."""
    return KeyReply(admin=key.role is Role.ADMIN, **structs.asdict(key))


def tag_reply(tag: TagInfo) -> TagReply:
    """A tag; the filter, the redrive policy and the pause are written another way."""
    policy = None if tag.redrive_policy is None else policy_reply(tag.redrive_policy, tag.redrive_fault)
    values = {**structs.asdict(tag), "filter": filter_reply(tag.filter), "redrive_policy": policy}
    values["paused"] = tag.paused and pause_reply(tag.paused)
    del values["redrive_fault"]
    return TagReply(**values)


def parked_reply(page: ParkedPage) -> ParkedReply:
    """A page of parked groups."""
    return ParkedReply(groups=[ParkedGroupReply(**structs.asdict(group)) for group in page.groups], next=page.next)


def task_reply(task: TaskInfo) -> TaskReply:
    """A redrive task; filter and choice are written another way."""
    fields = {**structs.asdict(task), "filter": filter_reply(task.filter), "choice": _choice(task.choice)}
    return TaskReply(**{name: fields[name] for name in TaskReply.__struct_fields__})


def _choice(choice: Choice | None) -> ChoiceReply | None:
    if choice is None:
        return None
    return ChoiceReply(
        from_ms=choice.from_ms or UNSET,
        to_ms=choice.to_ms or UNSET,
        reason=choice.reason or UNSET,
        source=choice.source or UNSET,
        text=choice.text or UNSET,
        ignore_case=choice.any_case or UNSET,
    )


def filter_reply(filter: Filter | None) -> FilterReply | None:
    """A filter; None stays None."""
    if filter is None:
        return None
    conditions = []
    for condition in filter.conditions:
        if condition.type.lower() == "empty":
            conditions.append(ConditionReply(name=condition.name, type=condition.type))
        else:
            text, data = _text_or_bytes(condition.value, _is_text(condition.type))
            conditions.append(ConditionReply(name=condition.name, type=condition.type, value=text, value_base64=data))
    return FilterReply(operator=filter.operator, conditions=conditions)


def _is_text(type: str) -> bool:
    return type[:6].lower() != "binary"


def _text_or_bytes(value: bytes, text: bool) -> tuple[str | UnsetType, bytes | UnsetType]:
    """`value` as text if it's said to be text and is; native producers say so of anything."""
    if text:
        try:
            return value.decode(), UNSET
        except UnicodeDecodeError:
            pass
    return UNSET, value


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, AttributeReply]:
    replies = {}
    if attributes:
        attributes = trace_context.shown(attributes)
    for name, attribute in attributes.items():
        text, data = _text_or_bytes(attribute.value, _is_text(attribute.type))
        # Dead letters of before have this one word in capitals.
        word = attribute.type.lower() if name == SOURCE_QUEUE_ATTRIBUTE else attribute.type
        replies[name] = AttributeReply(type=word, value=text, value_base64=data)
    return replies


def _origin(origin: Origin | None) -> OriginReply | UnsetType:
    return UNSET if origin is None else OriginReply(**structs.asdict(origin))


def transaction_reply(transaction: TransactionInfo) -> TransactionReply:
    """A transaction."""
    return TransactionReply(**structs.asdict(transaction))


def checks_reply(checks: list[Check]) -> ChecksReply:
    """Questions to a producer."""
    return ChecksReply(checks=[_check(check) for check in checks])


def _check(check: Check) -> CheckReply:
    messages = []
    for message in check.messages:
        text, data = _text_or_bytes(message.body, message.body_is_text)
        messages.append(HalfMessageReply(body=text, body_base64=data, attributes=_attributes(message.attributes)))
    return CheckReply(
        id=check.id, number=check.number, transaction=transaction_reply(check.transaction), messages=messages
    )


def webhook_reply(webhook: Webhook, secret: str | UnsetType = UNSET) -> WebhookReply:
    """Where a producer group is asked."""
    return WebhookReply(**structs.asdict(webhook), secret=secret)


def _given(value: str | None) -> str | UnsetType:
    return UNSET if value is None else value


def sent_reply(sent: Sent) -> SentReply:
    """A message that Kafka has."""
    return SentReply(
        id=sent.id, body_md5=sent.body_md5, sent_at_ms=sent.sent_at_ms, sequence_number=sent.sequence_number or UNSET
    )


def delivery_reply(delivery: Delivery) -> DeliveryReply:
    """A leased message."""
    message = delivery.message
    text, data = _text_or_bytes(message.body, message.body_is_text)
    return DeliveryReply(
        id=delivery.id,
        handle=delivery.handle,
        body=text,
        body_base64=data,
        attributes=_attributes(message.attributes),
        sent_at_ms=delivery.sent_at_ms,
        receive_count=delivery.receive_count,
        first_received_at_ms=delivery.first_received_at_ms,
        next_visible_at_ms=delivery.next_visible_at_ms,
        partition=delivery.partition,
        offset=delivery.offset,
        group=_given(message.group),
        dedup_id=_given(message.dedup_id),
        sequence_number=delivery.sequence_number or UNSET,
        priority=UNSET if message.priority == DEFAULT_PRIORITY else message.priority,
        sender=message.sender or NATIVE_SENDER,
        origin=_origin(message.origin),
    )


def peeked_reply(peeked: Peeked) -> PeekedReply:
    """A message looked at."""
    message = peeked.message
    text, data = _text_or_bytes(message.body, message.body_is_text)
    return PeekedReply(
        id=peeked.id,
        state=peeked.state,
        body=text,
        body_base64=data,
        attributes=_attributes(message.attributes),
        sent_at_ms=peeked.sent_at_ms,
        receive_count=peeked.receive_count,
        first_received_at_ms=peeked.first_received_at_ms,
        next_visible_at_ms=peeked.next_visible_at_ms,
        partition=peeked.partition,
        offset=peeked.offset,
        group=_given(message.group),
        dedup_id=_given(message.dedup_id),
        sequence_number=peeked.sequence_number or UNSET,
        priority=UNSET if message.priority == DEFAULT_PRIORITY else message.priority,
        sender=message.sender or NATIVE_SENDER,
        origin=_origin(message.origin),
        masked=True if peeked.masked else UNSET,
    )


def results_reply(results: list[EntryResult]) -> ResultsReply:
    """One result per handle."""
    replies = [
        ResultReply(
            handle=result.handle,
            # The engine's words are EntryStatus, which the literal repeats for the document.
            status=cast(ResultStatus, str(result.status)),
            reason=result.reason or UNSET,
            next_visible_at_ms=UNSET if result.next_visible_at_ms is None else result.next_visible_at_ms,
        )
        for result in results
    ]
    return ResultsReply(results=replies)
