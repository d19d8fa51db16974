"""What others may do with a queue: levels of permission, grants of single verbs, and roles of keys.

A level is a set of verbs; levels are not ordered by their numbers (reference/emq.md 1.8 and 3.9: to
peek is not in them from a number on). EMQ and the native API give levels, policies of SQS give
grants of verbs; both are `Grant`s in the record of a queue, and `granted` decides by all of them.
Owners and administrators need none. A role is of a key, and holds for every queue of its account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from schemas.accounts import account_of
from schemas.records.settings import ANY, Grant
from schemas.vocabulary import DEFAULT_TAG, Level, Role, Verb

_SEND: Final = frozenset((Verb.SEND,))
_RECEIVE: Final = frozenset((Verb.RECEIVE,))
_HANDLE: Final = _RECEIVE | {Verb.ACK, Verb.EXTEND, Verb.RELEASE, Verb.KILL}
_GET_INFO: Final = frozenset((Verb.GET_QUEUE, Verb.GET_REDRIVE_POLICY))
_PEEK: Final = frozenset((Verb.PEEK, Verb.QUERY))
_UNMASK: Final = frozenset((Verb.UNMASK,))
_DELETE_PEEK: Final = frozenset((Verb.DELETE_MESSAGE, Verb.CANCEL, Verb.RESCHEDULE, Verb.UNPARK))
# What is done to messages of a tag that is named, and what with the handle of a delivery: it was
# given out under a tag, and is proof of that.
OF_TAG: Final = frozenset((Verb.RECEIVE, Verb.PEEK, Verb.QUERY, Verb.UNPARK, Verb.UNMASK))
_BY_HANDLE: Final = _HANDLE - _RECEIVE
# What is no right on a queue: anybody may ask for these, or administrators only.
OF_NO_QUEUE: Final = frozenset((
    Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.MANAGE_KEYS, Verb.MANAGE_USERS, Verb.SET_PRODUCER_GROUP, Verb.LIST_AUDIT,
))  # fmt: skip
_FULL: Final = frozenset(Verb) - OF_NO_QUEUE

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
    Level.UNMASK: _PEEK | _UNMASK,
    Level.DELETE_PEEK: _DELETE_PEEK,
    Level.FULL_CONTROL: _FULL,
})  # fmt: skip

# What a key may do with every queue. Nothing of a reader's changes anything or shows a message.
ROLES: Final[Mapping[Role, frozenset[Verb]]] = MappingProxyType({
    Role.MEMBER: frozenset(),
    Role.READER: _GET_INFO | {
        Verb.LIST_QUEUES, Verb.LIST_TAGS, Verb.LIST_ALERTS, Verb.GET_STATISTICS, Verb.QUERY_METRIC,
    },
    Role.OPERATOR: (RIGHTS[Level.ADMIN] - _UNMASK) | {Verb.QUERY_METRIC, Verb.CREATE_QUEUE, Verb.LIST_QUEUES},
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


class QueueRights(msgspec.Struct, frozen=True):
    """What a caller may do with a queue, where it names no tag; and by tag those of the verbs that
    are about messages of a tag.
    """

    verbs: list[Verb]
    tags: dict[str, list[Verb]]


def granted(grants: Sequence[Grant], principal: str, verb: Verb, tag: str = "") -> bool:
    """Whether grants let a principal that is no owner do `verb`: at least one must, none deny. What
    an account may, everybody in it may. `tag`: the one that is spoken to, "" = the default one.
    """
    account = account_of(principal) or principal
    fitting = [grant.allow for grant in grants if _concerns(grant, principal, account) and _covers(grant, verb, tag)]
    return bool(fitting) and all(fitting)


def any_granted(grants: Sequence[Grant], principal: str) -> bool:
    """Whether grants let a principal that is no owner do anything at all."""
    tags = {"", *(tag for grant in grants for tag in grant.tags)}
    return any(granted(grants, principal, verb, tag) for verb in _FULL for tag in tags)


def _concerns(grant: Grant, principal: str, account: str) -> bool:
    return ANY in grant.principals or principal in grant.principals or account in grant.principals


def _covers(grant: Grant, verb: Verb, tag: str) -> bool:
    if grant.tags and not (verb in _BY_HANDLE or (verb in OF_TAG and (tag or DEFAULT_TAG) in grant.tags)):
        return False
    if grant.level:
        return verb in RIGHTS[Level(grant.level)]
    return ANY in grant.verbs or verb in grant.verbs


# `tag`: "" = levels on the queue, else those on messages of that tag alone.


def level_of(grants: Sequence[Grant], principal: str, tag: str = "") -> Level:
    """The level that a principal was given, NONE = none."""
    return levels_of(grants, tag).get(principal, Level.NONE)


def levels_of(grants: Sequence[Grant], tag: str = "") -> dict[str, Level]:
    """The level of each principal that was given one."""
    tags = [tag] if tag else []
    return {
        principal: Level(grant.level)
        for grant in grants
        if grant.level and grant.tags == tags
        for principal in grant.principals
    }


def with_level(grants: Sequence[Grant], principal: str, level: Level, tag: str = "") -> list[Grant]:
    """Grants in which a principal has that level and no other; NONE takes it away."""
    tags = [tag] if tag else []
    kept = [grant for grant in grants if not (grant.level and grant.tags == tags and principal in grant.principals)]
    return kept if level == Level.NONE else [*kept, Grant(True, [principal], [], level, tags)]


def without_tag(grants: Sequence[Grant], tag: str) -> list[Grant]:
    """Grants after a tag was deleted: none is left for who makes one of that name."""
    left = ((grant, [name for name in grant.tags if name != tag]) for grant in grants)
    return [msgspec.structs.replace(grant, tags=tags) for grant, tags in left if tags or not grant.tags]


# The levels that say something about messages of a tag.
TAG_LEVELS: Final = (Level.NONE, *(level for level, verbs in RIGHTS.items() if verbs & OF_TAG))


def with_policy(grants: Sequence[Grant], policy: Sequence[Grant]) -> list[Grant]:
    """Grants of verbs are replaced by those of a policy; levels stay."""
    return [*(grant for grant in grants if grant.level), *policy]
