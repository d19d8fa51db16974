"""Which operation a request asks for, and which function does it (reference/mns.md section 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from facade.dialects.mns.messages import handles, receives, sends
from facade.dialects.mns.queues import account, queues
from facade.dialects.mns.queues.call import Action
from facade.dialects.mns.wire.errors import INVALID_URL, MALFORMED_XML, MnsError
from facade.dialects.mns.wire.xml import Element

_QUEUE: Final = re.compile(r"/queues/([^/]*)/?")
_MESSAGES: Final = re.compile(r"/queues/([^/]*)/messages/?")

CREATE_QUEUE: Final = Action("CreateQueue", queues.create_queue)
SET_QUEUE: Final = Action("SetQueueAttributes", queues.set_queue_attributes)
GET_QUEUE: Final = Action("GetQueueAttributes", queues.get_queue_attributes)
LIST_QUEUE: Final = Action("ListQueue", queues.list_queue)
DELETE_QUEUE: Final = Action("DeleteQueue", queues.delete_queue)
SEND: Final = Action("SendMessage", sends.send_message)
BATCH_SEND: Final = Action("BatchSendMessage", sends.batch_send_message)
RECEIVE: Final = Action("ReceiveMessage", receives.receive_message, long_poll=True)
BATCH_RECEIVE: Final = Action("BatchReceiveMessage", receives.receive_message, long_poll=True)
PEEK: Final = Action("PeekMessage", receives.peek_message)
BATCH_PEEK: Final = Action("BatchPeekMessage", receives.peek_message)
DELETE: Final = Action("DeleteMessage", handles.delete_message)
BATCH_DELETE: Final = Action("BatchDeleteMessage", handles.batch_delete_message)
CHANGE_VISIBILITY: Final = Action("ChangeMessageVisibility", handles.change_message_visibility)
GET_ACCOUNT: Final = Action("GetAccountAttributes", account.get_account_attributes)
SET_ACCOUNT: Final = Action("SetAccountAttributes", account.set_account_attributes)


def is_own(path: str) -> bool:
    """Whether only MNS has such a path."""
    return path == "/queues" or path.startswith("/queues/")


def chosen(method: str, path: str, query: Mapping[str, str], body: Element | None) -> tuple[Action, str]:
    """The operation and the name of its queue, "" = it has none. Raises MnsError."""
    action, name = None, ""
    if path in ("/queues", "/queues/"):
        action = LIST_QUEUE if method == "GET" else None
    elif found := _MESSAGES.fullmatch(path):
        action, name = _of_messages(method, query, body), found[1]
    elif found := _QUEUE.fullmatch(path):
        action, name = _of_queue(method, query), found[1]
    elif path == "/" and query.get("accountmeta") == "true":
        action = {"GET": GET_ACCOUNT, "PUT": SET_ACCOUNT}.get(method)
    if action is None:
        raise MnsError(INVALID_URL, f"There is no operation {method[:20]} {path[:200]}")
    return action, name


def _of_queue(method: str, query: Mapping[str, str]) -> Action | None:
    if method == "PUT":
        return SET_QUEUE if query.get("metaoverride", "").lower() == "true" else CREATE_QUEUE
    return {"GET": GET_QUEUE, "DELETE": DELETE_QUEUE}.get(method)


def _of_messages(method: str, query: Mapping[str, str], body: Element | None) -> Action | None:
    if method == "POST":
        return _of_sent(body)
    if method == "GET":
        several = "numofmessages" in query
        if query.get("peekonly", "").lower() == "true":
            return BATCH_PEEK if several else PEEK
        return BATCH_RECEIVE if several else RECEIVE
    if method == "DELETE":
        return DELETE if "receipthandle" in query or body is None else BATCH_DELETE
    return CHANGE_VISIBILITY if method == "PUT" else None


def _of_sent(body: Element | None) -> Action:
    if body is not None and body.name in ("Message", "Messages"):
        return SEND if body.name == "Message" else BATCH_SEND
    raise MnsError(
        MALFORMED_XML, "the body must be a Message or Messages" + ("" if body is None else f", given {body.name[:100]}")
    )
