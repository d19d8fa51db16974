"""What others may do with a queue: levels of permission, grants of single verbs, and roles of keys.

A level is a set of verbs; levels are not ordered by their numbers (reference/emq.md 1.8 and 3.9: to
peek is not in them from a number on). EMQ and the native API give levels, policies of SQS give
grants of verbs; both are `Grant`s in the record of a queue, and `granted` decides by all of them.
Owners and administrators need none. A role is of a key, and holds for every queue. Neighbours:
`catalog.rights` asks; it knows who asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from engine.shapes import ANY
from schemas.records import Grant
from schemas.vocabulary import Level, Role, Verb

_SEND: Final = frozenset((Verb.SEND,))
_RECEIVE: Final = frozenset((Verb.RECEIVE,))
_HANDLE: Final = _RECEIVE | {Verb.ACK, Verb.EXTEND, Verb.RELEASE, Verb.KILL}
_GET_INFO: Final = frozenset((Verb.GET_QUEUE, Verb.GET_REDRIVE_POLICY))
_PEEK: Final = frozenset((Verb.PEEK, Verb.QUERY))
_DELETE_PEEK: Final = frozenset((Verb.DELETE_MESSAGE, Verb.CANCEL, Verb.RESCHEDULE, Verb.UNPARK))
# What is no right on a queue: anybody may ask for these, or administrators only.
_OF_NO_QUEUE: Final = frozenset((Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.MANAGE_KEYS, Verb.MANAGE_USERS, Verb.SET_PRODUCER_GROUP))
_FULL: Final = frozenset(Verb) - _OF_NO_QUEUE

RIGHTS: Final[Mapping[Level, frozenset[Verb]]] = MappingProxyType({
    Level.NONE: frozenset(),
    Level.SEND: _SEND,
    Level.RECEIVE: _RECEIVE,
    Level.SEND_RECEIVE: _SEND | _RECEIVE,
    Level.HANDLE: _HANDLE,
    Level.SEND_HANDLE: _SEND | _HANDLE,
    Level.GET_INFO: _GET_INFO,
    Level.USE: _SEND | _HANDLE | _GET_INFO,
    Level.ADMIN: _FULL - {Verb.GRANT, Verb.QUERY_METRIC},
    Level.PEEK: _PEEK,
    Level.DELETE_PEEK: _DELETE_PEEK,
    Level.FULL_CONTROL: _FULL,
})  # fmt: skip

# What a key may do with every queue. Nothing of a reader's changes anything or shows a message.
ROLES: Final[Mapping[Role, frozenset[Verb]]] = MappingProxyType({
    Role.MEMBER: frozenset(),
    Role.READER: _GET_INFO | {Verb.LIST_QUEUES, Verb.LIST_TAGS, Verb.LIST_ALERTS, Verb.GET_STATISTICS, Verb.QUERY_METRIC},
    Role.OPERATOR: RIGHTS[Level.ADMIN] | {Verb.QUERY_METRIC, Verb.CREATE_QUEUE, Verb.LIST_QUEUES},
    Role.ADMIN: frozenset(Verb),
})  # fmt: skip
# The actions of SQS that a policy may grant (AWS lets nobody grant the rest to another account).
ACTIONS: Final[Mapping[str, frozenset[Verb]]] = MappingProxyType({
    "ChangeMessageVisibility": frozenset((Verb.EXTEND, Verb.RELEASE)),
    "DeleteMessage": frozenset((Verb.ACK,)),
    "GetQueueAttributes": frozenset((Verb.GET_QUEUE,)),
    "GetQueueUrl": frozenset((Verb.GET_QUEUE,)),
    "ListDeadLetterSourceQueues": frozenset((Verb.GET_QUEUE,)),
    "PurgeQueue": frozenset((Verb.PURGE,)),
    "ReceiveMessage": _RECEIVE,
    "SendMessage": _SEND,
})  # fmt: skip


def granted(grants: Sequence[Grant], principal: str, verb: Verb) -> bool:
    """Whether grants let a principal that is no owner do `verb`: at least one must, none deny."""
    fitting = [grant.allow for grant in grants if _concerns(grant, principal) and _covers(grant, verb)]
    return bool(fitting) and all(fitting)


def any_granted(grants: Sequence[Grant], principal: str) -> bool:
    """Whether grants let a principal that is no owner do anything at all."""
    return any(granted(grants, principal, verb) for verb in _FULL)


def _concerns(grant: Grant, principal: str) -> bool:
    return ANY in grant.principals or principal in grant.principals


def _covers(grant: Grant, verb: Verb) -> bool:
    if grant.level:
        return verb in RIGHTS[Level(grant.level)]
    return ANY in grant.verbs or verb in grant.verbs


def level_of(grants: Sequence[Grant], principal: str) -> Level:
    """The level that a principal was given, NONE = none."""
    return next((Level(grant.level) for grant in grants if grant.level and principal in grant.principals), Level.NONE)


def levels_of(grants: Sequence[Grant]) -> dict[str, Level]:
    """The level of each principal that was given one."""
    return {principal: Level(grant.level) for grant in grants if grant.level for principal in grant.principals}


def with_level(grants: Sequence[Grant], principal: str, level: Level) -> list[Grant]:
    """Grants in which a principal has that level and no other; NONE takes it away."""
    kept = [grant for grant in grants if not (grant.level and principal in grant.principals)]
    return kept if level == Level.NONE else [*kept, Grant(True, [principal], [], level)]


def with_policy(grants: Sequence[Grant], policy: Sequence[Grant]) -> list[Grant]:
    """Grants of verbs are replaced by those of a policy; levels stay."""
    return [*(grant for grant in grants if grant.level), *policy]
