"""Bodies of requests and replies on access keys, rights and users."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from facade.dialects.native.wire.replies import Count, Made, Reply, about
from facade.dialects.native.wire.shapes import Body
from facade.dialects.native.wire.units import Moment, Name, Seconds, Whole, one_of, within
from schemas.vocabulary import Level, Role

KeyRole = Annotated[str, one_of(Role, "What it may on every queue. Default of a new key: member.")]
Expires = Annotated[Whole, within("expires_at_ms", "From when on it counts no more (epoch ms); 0 = never.")]


class CreateKeyBody(Body, frozen=True, kw_only=True):
    """An access key for a principal; its secret is shown once."""

    key_id: Annotated[Name, Meta(description="The id of the new key.")]
    principal: Annotated[Name, Meta(description="Who has it: the owner of what is made with it.")]
    admin: Annotated[bool, Meta(description="The same as the role admin.")] = False
    role: KeyRole | UnsetType = UNSET
    expires_at_ms: Expires = 0


class SetKeyBody(Body, frozen=True, kw_only=True):
    """What changes of an access key; the rest stays."""

    role: KeyRole | UnsetType = UNSET
    expires_at_ms: Expires | UnsetType = UNSET
    disabled: Annotated[bool, Meta(description="Whether it does not count until it is enabled again.")] | UnsetType = (
        UNSET
    )


class RotateKeyBody(Body, frozen=True, kw_only=True):
    """How long the secret before the new one counts too."""

    grace_seconds: Annotated[Seconds, within("grace_ms", "Seconds for which the old secret counts too.")] = 86_400


KeyId = Annotated[str, about("The key's id.")]


class NewKeyReply(Reply, frozen=True, kw_only=True):
    """An access key; the secret is not shown again."""

    key_id: KeyId
    secret: Annotated[str, about("The key's secret, this once.")]


class KeyReply(Reply, frozen=True, kw_only=True):
    """An access key without its secret."""

    key_id: KeyId
    principal: Annotated[str, about("Who has it.")]
    admin: Annotated[bool, about("Whether it may do everything.")]
    role: Annotated[str, one_of(Role, "What it may on every queue.")]
    created_at_ms: Made
    expires_at_ms: Annotated[Moment, about("From when on it counts no more (epoch ms); 0 = never.")]
    disabled: Annotated[bool, about("Whether it does not count for now.")]
    previous_until_ms: Annotated[
        Moment, about("Until when the secret before the last rotation counts too (epoch ms); 0 = it does not.")
    ]
    last_used_at_ms: Annotated[Moment, about("When it was used last (epoch ms), within two minutes; 0 = not known.")]


class KeysReply(Reply, frozen=True, kw_only=True):
    """All access keys."""

    keys: Annotated[list[KeyReply], about("The keys.")]


class RightsReply(Reply, frozen=True, kw_only=True):
    """Who asks, and what they may do that is about no queue."""

    principal: Annotated[str, about("Who it is.")]
    key_id: Annotated[str, about("The key that was given; empty = none.")]
    role: Annotated[str, one_of(Role, "What the key may on every queue.")]
    may: Annotated[list[str], about("The verbs that they may do.")]


class QueueRightsReply(Reply, frozen=True, kw_only=True):
    """What who asks may do with a queue."""

    queue: Annotated[str, about("The queue.")]
    may: Annotated[list[str], about("The verbs that they may do with it, where they name no tag.")]
    tags: Annotated[dict[str, list[str]], about("By tag: the verbs about messages of a tag that they may do under it.")]


class GrantReply(Reply, frozen=True, kw_only=True):
    """What a principal may do with a queue."""

    principal: Annotated[str, about("Who it is.")]
    level: Annotated[str, one_of(Level, "What it may do.")]


class GrantsReply(Reply, frozen=True, kw_only=True):
    """Every principal that was given a level; owner and administrators need none."""

    grants: Annotated[list[GrantReply], about("The levels, by principal.")]


class UseReply(Reply, frozen=True, kw_only=True):
    """What a user has."""

    queues: Annotated[Count, about("Queues.")]
    read_qps: Annotated[Count, about("The sum of their quotas of receives.")]
    write_qps: Annotated[Count, about("The sum of their quotas of sends.")]
    partitions: Annotated[Count, about("Their partitions.")]
    bytes_today: Annotated[Count, about("About the bytes sent on this UTC day; 0 while nothing bounds them.")]


class UserReply(Reply, frozen=True, kw_only=True):
    """A user: contacts, quotas over all their queues (0 = no bound), and what they have."""

    name: Annotated[str, about("Who it is.")]
    display_name: Annotated[str, about("What people call the user.")]
    email: Annotated[str, about("Where alerts go.")]
    phone: Annotated[str, about("A number.")]
    read_qps: Annotated[Count, about("Receives a second.")]
    write_qps: Annotated[Count, about("Sends a second.")]
    queues: Annotated[Count, about("Queues that the user may have.")]
    partitions: Annotated[Count, about("Partitions that they may have.")]
    daily_bytes: Annotated[Count, about("Bytes sent on a UTC day.")]
    waits: Annotated[Count, about("Receives that wait at a worker.")]
    webhook: Annotated[str, about("A URL to which alerts are posted.")]
    webhook_secret: Annotated[str, about("What the service signs them with; empty without a webhook.")]
    used: Annotated[UseReply, about("What the user has.")]
