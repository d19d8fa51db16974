"""Bodies of requests on access keys.

Neighbours: `shapes` has the others, and the rules for all of them.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from facade.native.wire.shapes import Body
from facade.native.wire.units import Name, Seconds, Whole, one_of, within
from schemas.vocabulary import Role

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
    disabled: Annotated[bool, Meta(description="Whether it does not count until it is enabled again.")] | UnsetType = UNSET


class RotateKeyBody(Body, frozen=True, kw_only=True):
    """How long the secret before the new one counts too."""

    grace_seconds: Annotated[Seconds, within("grace_ms", "Seconds for which the old secret counts too.")] = 86_400
