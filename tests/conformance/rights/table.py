"""The one table of rights as clients meet it: who there is, and which verbs of the engine each
operation of each dialect asks for. What a caller may do follows from `engine/rules/grants.py`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from engine.rules.grants import RIGHTS, ROLES
from facade.dialects.native.operations import OPERATIONS
from schemas.vocabulary import Level, Role, Verb

# Verbs that name no queue: anybody may ask for these, but a reader.
OF_NOBODY = frozenset((Verb.CREATE_QUEUE, Verb.LIST_QUEUES, Verb.SET_PRODUCER_GROUP))
OF_NO_QUEUE = OF_NOBODY | {Verb.MANAGE_KEYS, Verb.MANAGE_USERS, Verb.LIST_AUDIT}
# Any right on the queue will do.
KNOWN: tuple[Verb, ...] = ()


class Outcome(StrEnum):
    """What becomes of a request, for who asks."""

    LET_IN = "let in"  # Whatever comes of it then.
    DENIED = "denied"
    HIDDEN = "hidden"  # As if there was no such queue.
    UNKNOWN = "unknown"  # Nobody knows who that is.


class Caller(NamedTuple):
    """Somebody who asks. `key` is what becomes of their key before they do."""

    name: str
    verbs: frozenset[Verb]
    knows: bool
    principal: str
    role: Role = Role.MEMBER
    level: Level = Level.NONE
    key: str = "good"
    is_foreign: bool = False  # Of another account than the queue.

    def expected(self, needs: tuple[Verb, ...] | None) -> Outcome:
        """What should become of a request that needs these verbs; None = those of nobody."""
        if self.key != "good":
            return Outcome.UNKNOWN
        if needs is None or (needs and set(needs) <= self.verbs) or (not needs and self.knows):
            return Outcome.LET_IN
        return Outcome.DENIED if self.knows or (set(needs) <= OF_NO_QUEUE and needs) else Outcome.HIDDEN


_OWN = RIGHTS[Level.FULL_CONTROL] | OF_NOBODY
CALLERS = (
    Caller("owner", _OWN, True, "shop"),
    *(Caller(f"level {level}", RIGHTS[level] | OF_NOBODY, True, f"level-{level}",
             level=level) for level in Level if level != Level.NONE),
    *(
        Caller(
            f"role {role}", ROLES[role] | (frozenset() if role == Role.READER else OF_NOBODY), role != Role.MEMBER,
            f"role-{role}", role
        )
        for role in Role
    ),
    Caller("owner by a key of a reader", ROLES[Role.READER], True, "shop", Role.READER),
    *(Caller(f"owner, {key}", _OWN, True, "shop", key=key) for key in ("anonymous", "wrong", "revoked", "disabled",
                                                                       "expired", "rotated")),
)  # fmt: skip

# Of another account: what is of no queue they may do in their own, whatever their role.
FOREIGN = (
    Caller("member of another account", OF_NOBODY, False, "shop", is_foreign=True),
    Caller(
        "reader of another account", frozenset((Verb.LIST_QUEUES,)), False, "f-reader", Role.READER, is_foreign=True
    ),
    Caller("operator of another account", OF_NOBODY, False, "f-operator", Role.OPERATOR, is_foreign=True),
)
# The default account's administrators are the service's.
FOREIGN_ADMIN = Caller("administrator of another account", OF_NO_QUEUE, False, "f-admin", Role.ADMIN, is_foreign=True)

Needs = dict[str, tuple[Verb, ...] | None]
_OTHERS: Needs = {
    "delete_redrive_policy": (Verb.SET_REDRIVE_POLICY,),
    "copy_message": (Verb.PEEK, Verb.DELETE_MESSAGE),  # the example has it deleted, and it is not there
    "message_events": (Verb.PEEK,),
    "preview_redrive": (Verb.REDRIVE,),
    "copy_queue": (Verb.COPY_QUEUE, Verb.CREATE_QUEUE),
    "pause_tag": (Verb.PAUSE,),
    "resume_tag": (Verb.RESUME,),
    "set_redrive_policy": (Verb.SET_REDRIVE_POLICY,),
    "prepare": (Verb.SEND,),
    "list_transactions": (Verb.SEND,),
    "list_parked": (Verb.QUERY,),
    "list_alert_events": (Verb.LIST_ALERTS,),
    "get_daily_statistics": (Verb.GET_STATISTICS,),
    "statistics": (Verb.GET_STATISTICS,),
    "history": (Verb.GET_STATISTICS,),
    "get_grant": (Verb.LIST_GRANTS,),
    "revoke": (Verb.GRANT,),
    "list_tag_grants": (Verb.LIST_GRANTS,),
    "grant_tag": (Verb.GRANT,),
    "revoke_tag": (Verb.GRANT,),
    "list_shared": (Verb.LIST_QUEUES,),
    "get_rights": None,
    "get_queue_rights": KNOWN,
    "get_definitions": (Verb.LIST_QUEUES,),
    "put_definitions": (Verb.LIST_QUEUES, Verb.CREATE_QUEUE),
    "get_user": (Verb.MANAGE_USERS,),
    "set_contacts": (Verb.MANAGE_USERS,),
    "set_user_quota": (Verb.MANAGE_USERS,),
    **dict.fromkeys(("create_key", "list_keys", "set_key", "rotate_key", "delete_key"), (Verb.MANAGE_KEYS,)),
    **dict.fromkeys(("set_webhook", "get_webhook", "delete_webhook"), (Verb.SET_PRODUCER_GROUP,)),
    # By an id that is not there: whoever is known is told so.
    **dict.fromkeys(
        ("get_transaction", "commit", "rollback", "unknown", "get_task", "cancel_task", "check", "task_outcomes")
    ),
    # Of the queues that they may redrive, of which there may be none.
    **dict.fromkeys(("redrive_all", "preview_redrive_all", "list_tasks")),
}
NATIVE: Needs = {one.name: _OTHERS[one.name] if one.name in _OTHERS else (Verb(one.name),) for one in OPERATIONS}
SQS: Needs = {
    "CreateQueue": (Verb.CREATE_QUEUE,),
    "ListQueues": (Verb.LIST_QUEUES,),
    **dict.fromkeys(
        ("GetQueueUrl", "GetQueueAttributes", "ListQueueTags", "ListDeadLetterSourceQueues"), (Verb.GET_QUEUE,)
    ),
    **dict.fromkeys(
        ("SetQueueAttributes", "AddPermission", "RemovePermission", "TagQueue", "UntagQueue"), (Verb.SET_QUEUE,)
    ),
    "DeleteQueue": (Verb.DELETE_QUEUE,),
    "PurgeQueue": (Verb.PURGE,),
    **dict.fromkeys(("SendMessage", "SendMessageBatch"), (Verb.SEND,)),
    "ReceiveMessage": (Verb.RECEIVE,),
    **dict.fromkeys(("DeleteMessage", "DeleteMessageBatch"), (Verb.ACK,)),
    **dict.fromkeys(("ChangeMessageVisibility", "ChangeMessageVisibilityBatch"), (Verb.EXTEND,)),
    **dict.fromkeys(("StartMessageMoveTask", "ListMessageMoveTasks"), (Verb.REDRIVE,)),
    "CancelMessageMoveTask": None,
}
EMQ: Needs = {
    **dict.fromkeys(("sendMessage", "sendMessageBatch"), (Verb.SEND,)),
    "receiveMessage": (Verb.RECEIVE,),
    **dict.fromkeys(("changeMessageVisibilitySeconds", "changeMessageVisibilitySecondsBatch"), (Verb.EXTEND,)),
    **dict.fromkeys(("deleteMessage", "deleteMessageBatch"), (Verb.ACK,)),
    **dict.fromkeys(("deadMessage", "deadMessageBatch"), (Verb.KILL,)),
    "peekMessage": (Verb.QUERY,),
    **dict.fromkeys(("deletePeekMessage", "deletePeekMessageBatch"), (Verb.DELETE_MESSAGE,)),
    "getQueueInfo": (Verb.GET_QUEUE,),
    **dict.fromkeys(("setQueueAttribute", "setQueueQuota"), (Verb.SET_QUEUE,)),
    **dict.fromkeys(("setQueueRedrivePolicy", "removeQueueRedrivePolicy"), (Verb.SET_REDRIVE_POLICY,)),
    "createTag": (Verb.CREATE_TAG,),
    **dict.fromkeys(("getTagInfo", "listTag"), (Verb.LIST_TAGS,)),
    "deleteTag": (Verb.DELETE_TAG,),
    **dict.fromkeys(("listPermissions", "queryPermissionForId"), (Verb.LIST_GRANTS,)),
    "queryPermission": None,  # NONE to who has none
    **dict.fromkeys(("setPermission", "revokePermission"), (Verb.GRANT,)),
    **dict.fromkeys(("addQueueAlertPolicy", "addTagAlertPolicy"), (Verb.ADD_ALERT,)),
    **dict.fromkeys(("listQueueAlertPolicies", "listTagAlertPolicies"), (Verb.LIST_ALERTS,)),
    **dict.fromkeys(("deleteQueueAlertPolicy", "deleteTagAlertPolicy"), (Verb.DELETE_ALERT,)),
    "setQueueDailyStatisticsState": (Verb.SET_DAILY_STATISTICS,),
    "getQueueDailyStatisticsState": (Verb.GET_STATISTICS,),
    "queryMetric": (Verb.QUERY_METRIC,),
    "purgeQueue": (Verb.PURGE,),
    "deleteQueue": (Verb.DELETE_QUEUE,),
}
MNS: Needs = {
    **dict.fromkeys(("SendMessage", "BatchSendMessage"), (Verb.SEND,)),
    **dict.fromkeys(("ReceiveMessage", "BatchReceiveMessage"), (Verb.RECEIVE,)),
    **dict.fromkeys(("PeekMessage", "BatchPeekMessage"), (Verb.PEEK,)),
    **dict.fromkeys(("DeleteMessage", "BatchDeleteMessage"), (Verb.ACK,)),
    "ChangeMessageVisibility": (Verb.EXTEND,),
    "GetQueueAttributes": (Verb.GET_QUEUE,),
    "SetQueueAttributes": (Verb.SET_QUEUE,),
    "CreateTag": (Verb.GET_QUEUE, Verb.CREATE_TAG),
    "DeleteTag": (Verb.DELETE_TAG,),
    "DeleteQueue": (Verb.DELETE_QUEUE,),
}
ROCKETMQ: Needs = {
    **dict.fromkeys(("QueryRoute", "QueryAssignment"), KNOWN),
    "SendMessage": (Verb.SEND,),
    "ReceiveMessage": (Verb.RECEIVE,),
    "AckMessage": (Verb.ACK,),
    "ChangeInvisibleDuration": (Verb.EXTEND,),
    "ForwardMessageToDeadLetterQueue": (Verb.KILL,),
    "RecallMessage": (Verb.CANCEL, Verb.PEEK),  # of a message that is not there: it looks why
    **dict.fromkeys(("Heartbeat", "EndTransaction", "NotifyClientTermination")),
}
