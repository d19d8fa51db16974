"""The document <-> the engine's definitions."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import asdict, replace

from engine.services.definitions.shapes import (
    AlertDefinition,
    Definitions,
    Difference,
    GrantDefinition,
    QueueDefinition,
    TagDefinition,
    UserDefinition,
)
from facade.dialects.native.definitions.wire import (
    MORE,
    DefinedGrant,
    DefinedQueue,
    DefinedTag,
    DefinedUser,
    DefinitionsBody,
    DifferenceReply,
)
from facade.dialects.native.wire.render import filter_reply
from facade.dialects.native.wire.settings import policy_of, settings_of
from facade.dialects.native.wire.shapes import ConditionBody, FilterBody, RedrivePolicyBody
from facade.dialects.native.wire.shapes_watching import AlertBody
from facade.dialects.native.wire.translate import filter_of
from facade.dialects.native.wire.units import to_seconds
from schemas.filters import Filter
from schemas.records.native_settings import SETTINGS, in_seconds, wire_name
from schemas.records.settings import TABLE, RedrivePolicy

# What the document says.


def definitions_of(body: DefinitionsBody) -> Definitions:
    """What a document asks for. Raises ProblemError."""
    return Definitions([_queue(queue) for queue in body.queues], [_user(user) for user in body.users])


def _queue(body: Any) -> QueueDefinition:
    more = {name: value for name in MORE if (value := getattr(body, name)) is not UNSET}
    policy = body.redrive_policy
    return QueueDefinition(
        body.name,
        replace(settings_of(body), redrive_policy=None, **more),
        policy if policy is UNSET or policy is None else policy_of(policy),
        None if body.tags is UNSET else [_tag(tag) for tag in body.tags],
        None
        if body.grants is UNSET
        else [GrantDefinition(one.principal, one.level, one.tag or "") for one in body.grants],
        None if body.alerts is UNSET else [_alert(one) for one in body.alerts],
        None if body.daily_statistics is UNSET else body.daily_statistics,
    )


def _tag(body: DefinedTag) -> TagDefinition:
    policy = None if body.redrive_policy is None else policy_of(body.redrive_policy)
    return TagDefinition(body.name, filter_of(body.filter), body.user_attributes, body.read_qps, policy)


def _alert(body: AlertBody) -> AlertDefinition:
    return AlertDefinition(body.subject, body.measurement, float(body.threshold), body.tag or "")


def _user(body: DefinedUser) -> UserDefinition:
    values = {name: value for name, value in asdict(body).items() if name != "name" and value is not UNSET}
    return UserDefinition(body.name, values)


# What is shown.


def document(found: Definitions) -> DefinitionsBody:
    """The document of what is there."""
    return DefinitionsBody(
        queues=[_shown(queue) for queue in found.queues],
        users=[DefinedUser(name=user.name, **user.values) for user in found.users],
    )


def _shown(queue: QueueDefinition) -> Struct:
    settings: dict[str, Any] = {}
    for setting in SETTINGS:
        value = getattr(queue.settings, setting.name)
        if value is not None:
            settings[wire_name(setting)] = to_seconds(value) if in_seconds(setting) else value
    if queue.redrive_policy is not UNSET:
        settings["redrive_policy"] = _policy(queue.redrive_policy)
    more = {name: value for name in MORE if (value := getattr(queue.settings, name)) is not None}
    shown: Struct = DefinedQueue(
        name=queue.name,
        **settings,
        **more,
        tags=UNSET if queue.tags is None else [_shown_tag(tag) for tag in queue.tags],
        grants=UNSET if queue.grants is None else [_shown_grant(one) for one in queue.grants],
        alerts=UNSET if queue.alerts is None else [_shown_alert(one) for one in queue.alerts],
        daily_statistics=UNSET if queue.daily_statistics is None else queue.daily_statistics,
    )
    return shown


def _policy(policy: RedrivePolicy | None) -> RedrivePolicyBody | None:
    if policy is None:
        return None
    return RedrivePolicyBody(dead_letter_queue=policy.dead_letter_queue, max_receive_count=policy.max_receive_count)


def _shown_tag(tag: TagDefinition) -> DefinedTag:
    return DefinedTag(
        name=tag.name,
        filter=_filter(tag.filter),
        user_attributes=tag.user_attributes,
        read_qps=tag.read_qps,
        redrive_policy=_policy(tag.redrive_policy),
    )


def _filter(filter: Filter | None) -> FilterBody | None:
    reply = filter_reply(filter)
    if reply is None:
        return None
    conditions = [
        ConditionBody(
            name=one.name,
            type=one.type,
            value=None if one.value is UNSET else one.value,
            value_base64=None if one.value_base64 is UNSET else one.value_base64,
        )
        for one in reply.conditions
    ]
    return FilterBody(operator=reply.operator, conditions=conditions)


def _shown_grant(grant: GrantDefinition) -> DefinedGrant:
    return DefinedGrant(principal=grant.principal, level=grant.level, tag=grant.tag or None)


def _shown_alert(alert: AlertDefinition) -> AlertBody:
    return AlertBody(
        subject=alert.subject, measurement=alert.measurement, threshold=alert.threshold, tag=alert.tag or None
    )


def difference_reply(difference: Difference) -> DifferenceReply:
    """One thing that differs."""
    field = difference.field
    setting = TABLE.get(field) if difference.kind == "queue" else None
    return DifferenceReply(
        action=difference.action,
        kind=difference.kind,
        name=difference.name,
        queue=difference.queue or None,
        field=(wire_name(setting) if setting else field) or None,
        before=_value(field, difference.before),
        after=_value(field, difference.after),
    )


def _value(field: str, value: Any) -> Any:
    """A value in the words of the document."""
    shown: Any = value
    if isinstance(value, QueueDefinition):
        shown = _shown(value)
    elif isinstance(value, TagDefinition):
        shown = _shown_tag(value)
    elif isinstance(value, GrantDefinition):
        shown = _shown_grant(value)
    elif isinstance(value, AlertDefinition):
        shown = _shown_alert(value)
    elif isinstance(value, RedrivePolicy):
        shown = _policy(value)
    elif field.endswith("_ms") and isinstance(value, int):
        shown = to_seconds(value)
    return to_builtins(shown)
