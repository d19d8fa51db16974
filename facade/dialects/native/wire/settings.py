"""Settings of a queue in the native dialect: its bodies and its reply, made of the table
(schemas/records/settings.py).
"""

from __future__ import annotations

from typing import Annotated, Any, Final, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from facade.dialects.native.wire.replies import (
    Changed,
    Made,
    Notes,
    PauseReply,
    RedrivePolicyReply,
    Reply,
    TagReply,
    about,
)
from facade.dialects.native.wire.shapes import Body, RedrivePolicyBody, UserAttributes
from facade.dialects.native.wire.units import RANGE, Name, QueueName, Seconds, Whole, to_ms, to_seconds
from schemas.records.native_settings import SETTINGS, description, in_seconds, wire_name, words
from schemas.records.settings import EffectiveSettings, QueueSettings, RedrivePolicy, Setting

_TYPES: Final = get_type_hints(EffectiveSettings)
# Types of the wire that are not the setting's: in a body, in the reply.
_BODIES: Final = {"default_tag_name": Name, "user_attributes": UserAttributes, "redrive_policy": RedrivePolicyBody}
_REPLIES: Final = {"user_attributes": Notes, "redrive_policy": RedrivePolicyReply | None}


def _schema(setting: Setting) -> dict[str, Any]:
    """What a document says of the values; whether one is allowed is for the engine to say."""
    if setting.choices:
        return {"enum": list(setting.choices)}
    if not setting.high:
        return {}
    if isinstance(setting.default, list):
        return {"maxItems": setting.high}
    bounds = setting.low, setting.high
    return {RANGE: [to_seconds(bound) for bound in bounds] if in_seconds(setting) else list(bounds)}


def given_type(setting: Setting) -> Any:
    """The type of a setting in a body."""
    kind: Any = _BODIES.get(setting.name)
    if kind is None:
        kind = Seconds if in_seconds(setting) else Whole if _TYPES[setting.name] is int else _TYPES[setting.name]
    return Annotated[kind, Meta(description=description(setting), extra_json_schema=_schema(setting) or None)]


def _shown(setting: Setting) -> Any:
    """The type of a setting in a reply."""
    kind: Any = _REPLIES.get(setting.name, float if in_seconds(setting) else _TYPES[setting.name])
    shown = Annotated[
        kind,
        Meta(
            description=words(setting), extra_json_schema={"enum": list(setting.choices)} if setting.choices else None
        ),
    ]
    return shown | None if setting.none else shown


CreateQueueBody: Any = defstruct(
    "CreateQueueBody",
    [
        ("name", Annotated[QueueName, Meta(description="The name of the new queue.")]),
        *((wire_name(setting), given_type(setting) | None, None) for setting in SETTINGS),
    ],
    bases=(Body,), frozen=True, kw_only=True, module=__name__,
    namespace={"__doc__": "A queue to create. What is not given, or null, has its default."},
)  # fmt: skip

SetQueueBody: Any = defstruct(
    "SetQueueBody",
    [(wire_name(setting), given_type(setting) | UnsetType, UNSET) for setting in SETTINGS if setting.may_change],
    bases=(Body,), frozen=True, kw_only=True, module=__name__,
    namespace={
        "__doc__": "Settings to change; what is not given stays as it is. A redrive policy is removed by DELETE\n"
        ".../redrive-policy."
    },
)  # fmt: skip

QueueReply: Any = defstruct(
    "QueueReply",
    [
        ("name", Annotated[str, about("The queue's name.")]),
        ("owner", Annotated[str, about("The principal that made it.")]),
        ("created_at_ms", Made),
        ("modified_at_ms", Changed),
        *((wire_name(setting), _shown(setting)) for setting in SETTINGS),
        ("paused", Annotated[PauseReply | None, about("That nobody receives from it; null = it is not paused.")]),
        ("source_queues", Annotated[list[str], about("The queues whose dead letters come here.")]),
        ("tags", Annotated[list[TagReply], about("Its tags, the default one first.")]),
    ],
    bases=(Reply,), frozen=True, kw_only=True, module=__name__,
    namespace={"__doc__": "A queue: settings, who uses it for dead letters, tags with counts."},
)  # fmt: skip


def policy_of(body: RedrivePolicyBody) -> RedrivePolicy:
    """A redrive policy."""
    return RedrivePolicy(body.dead_letter_queue, body.max_receive_count)


def settings_of(body: Struct) -> QueueSettings:
    """The settings that a body names; what it doesn't is None."""
    given: dict[str, Any] = {}
    for setting in SETTINGS:
        value: Any = getattr(body, wire_name(setting), None)
        if value is None or value is UNSET:
            continue
        named: Any = to_ms(value) if in_seconds(setting) else value
        given[setting.name] = policy_of(named) if setting.name == "redrive_policy" else named
    return QueueSettings(**given)


def settings_reply(settings: EffectiveSettings) -> dict[str, Any]:
    """The settings of a queue by the names of the reply, but for the redrive policy."""
    shown: dict[str, Any] = {}
    for setting in SETTINGS:
        value = getattr(settings, setting.name)
        shown[wire_name(setting)] = (
            to_seconds(value) if in_seconds(setting) else (value or None) if setting.none else value
        )
    return shown
