"""The document of definitions as JSON: the same struct is read and shown; and what was done by one,
or would be.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, defstruct, field

from engine.rules.limits import MAX_CONTACT, MAX_QUEUE_NAME
from engine.services.definitions.shapes import PRUNED
from facade.dialects.native.wire.replies import Reply, about
from facade.dialects.native.wire.settings import given_type
from facade.dialects.native.wire.shapes import Body, FilterBody, RedrivePolicyBody, UserAttributes
from facade.dialects.native.wire.shapes_watching import AlertBody
from facade.dialects.native.wire.units import Name, QueueName, Whole, one_of, within
from schemas.records.native_settings import SETTINGS, wire_name
from schemas.vocabulary import Level

Contact = Annotated[str, Meta(max_length=MAX_CONTACT, description="How to reach the user.")]
# Settings that have words of their own in no other native request.
MORE = ("labels", "allowed_sources")


class DefinedTag(Body, frozen=True, kw_only=True):
    """A tag beside the default one. One that is there can't be changed."""

    name: Annotated[Name, about("The tag's name.")]
    filter: Annotated[FilterBody, about("Which messages it has; null = all.")] | None = None
    user_attributes: UserAttributes = field(default_factory=dict)
    read_qps: Annotated[Whole, within("read_qps", "Receives a second under the tag; 0 = no bound.")] = 0
    redrive_policy: (
        Annotated[RedrivePolicyBody, about("Where messages go that die under it; null = as in the queue.")] | None
    ) = None


class DefinedGrant(Body, frozen=True, kw_only=True):
    """A level on the queue, or on messages of one tag."""

    principal: Annotated[Name, about("Who it is.")]
    level: Annotated[str, Meta(max_length=32), one_of(Level, "What it may do; none takes it away.")]
    tag: Annotated[Name, about("Of messages of this tag alone; null = of the queue.")] | None = None


class DefinedUser(Body, frozen=True, kw_only=True):
    """Contacts and quotas of a user, or of an account; 0 = no bound. What is left out stays."""

    name: Annotated[str, Meta(max_length=200, description="The user's name.")]
    display_name: Contact | UnsetType = UNSET
    email: Contact | UnsetType = UNSET
    phone: Contact | UnsetType = UNSET
    webhook: Annotated[str, Meta(max_length=1000, description="A URL to which alerts are posted.")] | UnsetType = UNSET
    read_qps: Annotated[Whole, within("read_qps", "Receives a second.")] | UnsetType = UNSET
    write_qps: Annotated[Whole, within("write_qps", "Sends a second.")] | UnsetType = UNSET
    queues: Annotated[Whole, within("queues", "Queues.")] | UnsetType = UNSET
    partitions: Annotated[Whole, within("partitions", "Partitions of all queues.")] | UnsetType = UNSET
    daily_bytes: Annotated[Whole, within("daily_bytes", "Bytes sent on a UTC day.")] | UnsetType = UNSET
    waits: Annotated[Whole, within("waits", "Receives that wait at a worker.")] | UnsetType = UNSET


DefinedQueue: Any = defstruct(
    "DefinedQueue",
    [
        ("name", Annotated[QueueName, about("The queue's name.")]),
        *((wire_name(setting), given_type(setting) | None | UnsetType, UNSET) for setting in SETTINGS),
        (
            "labels",
            Annotated[dict[str, str], about("Labels for billing and search: tags of a queue in SQS.")] | UnsetType,
            UNSET,
        ),
        (
            "allowed_sources",
            Annotated[list[str], about("Queues that may have it as dead-letter queue, * = any.")] | UnsetType,
            UNSET,
        ),
        ("tags", Annotated[list[DefinedTag], about("Its tags beside the default one.")] | UnsetType, UNSET),
        ("grants", Annotated[list[DefinedGrant], about("Who may do what.")] | UnsetType, UNSET),
        ("alerts", Annotated[list[AlertBody], about("Its alert policies.")] | UnsetType, UNSET),
        (
            "daily_statistics",
            Annotated[bool, about("Whether the owner gets each day's numbers by mail.")] | UnsetType,
            UNSET,
        ),
    ],
    bases=(Body,), frozen=True, kw_only=True, module=__name__,
    namespace={
        "__doc__": "A queue. What is left out, or null, stays as it is, or has its default in a new queue; "
        "a redrive_policy\nof null is taken away."
    },
)  # fmt: skip


class DefinitionsBody(Body, frozen=True, kw_only=True):
    """Queues and users, and what belongs to them; no secrets."""

    version: Annotated[Literal[1], about("Of the form of the document.")] = 1
    queues: Annotated[list[DefinedQueue], about("By name.")] = field(default_factory=list)
    users: Annotated[list[DefinedUser], about("By name.")] = field(default_factory=list)


Pruned = Annotated[str, Meta(max_length=32), one_of(PRUNED, "A kind of things.")]


class DefinitionsQuery(Body, frozen=True, kw_only=True):
    """Which queues."""

    prefix: Annotated[str, Meta(max_length=MAX_QUEUE_NAME, description="Only queues whose names begin so.")] = ""


class ApplyQuery(Body, frozen=True, kw_only=True):
    """Whether anything is done, and what is deleted that the document does not have."""

    dry_run: Annotated[bool, about("Only say what would be done.")] = False
    prune: Annotated[list[Pruned], Meta(description="Delete what the document lacks.")] = field(default_factory=list)


class DifferenceReply(Reply, frozen=True, kw_only=True):
    """One thing that was done, or would be."""

    action: Annotated[str, one_of(("create", "change", "delete"), "What is done.")]
    kind: Annotated[str, one_of(("queue", "tag", "grant", "alert", "user"), "With what.")]
    name: Annotated[str, about("Its name; of a grant the principal, of an alert the subject.")]
    queue: Annotated[str | None, about("Of which queue; null = it is one, or of none.")]
    field: Annotated[str | None, about("Of a change: of which value.")]
    before: Annotated[Any, about("What is there; null = nothing.")]
    after: Annotated[Any, about("What is wanted; null = nothing.")]


class AppliedReply(Reply, frozen=True, kw_only=True):
    """What was done, in this order; nothing where all was so already."""

    dry_run: Annotated[bool, about("true = nothing was done.")]
    changes: Annotated[list[DifferenceReply], about("Each thing that differs.")]
