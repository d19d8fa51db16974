"""One example of each operation's request and reply, as JSON values. The document shows them; tests
decode each as its struct.
"""

from __future__ import annotations

from typing import Any

from facade.dialects.native.wire.settings import settings_reply
from facade.http.operation import Example
from schemas.records.settings import EffectiveSettings

AT = 1_767_225_600_000
_ID = "5f1c0f8e-9a3b-8c10-8000-00000000012a"
_HANDLE = "bGVhc2V3YXkgaGFuZGxl"
_BODY = '{"order": 17}'
_ATTRIBUTES = {"kind": {"type": "string", "value": "retail"}, "logo": {"type": "binary", "value_base64": "iVBORw=="}}
FILTER = {"operator": "AND", "conditions": [{"name": "kind", "type": "string", "value": "retail"}]}
POLICY = {"dead_letter_queue": "orders-dead", "max_receive_count": 5}
_POLICY_SHOWN = {**POLICY, "stopped": ""}
_TAG = {
    "name": "billing",
    "created_at_ms": AT,
    "start_at_ms": AT,
    "filter": FILTER,
    "user_attributes": {},
    "backlog": 12,
    "ready": 9,
    "delayed": 1,
    "leased": 2,
    "parked": 0,
    "stored": 0,
    "read_qps": 0,
    "redrive_policy": None,
    "paused": None,
}
_QUEUE = {
    "name": "orders",
    "owner": "shop",
    "created_at_ms": AT,
    "modified_at_ms": AT,
    **settings_reply(EffectiveSettings(partitions=4, user_attributes={"team": "shop"})),
    "redrive_policy": _POLICY_SHOWN,
    "paused": None,
    "source_queues": [],
    "tags": [_TAG],
}
_DELIVERY = {
    "id": _ID,
    "handle": _HANDLE,
    "body": _BODY,
    "attributes": _ATTRIBUTES,
    "sent_at_ms": AT,
    "receive_count": 1,
    "first_received_at_ms": AT + 5,
    "next_visible_at_ms": AT + 30_005,
    "partition": 0,
    "offset": 298,
    "sender": "shop",
}
_PEEKED = {**{name: value for name, value in _DELIVERY.items() if name != "handle"}, "state": "leased"}
_PAUSE = {"by": "shop", "at_ms": AT, "reason": "the database is down"}
_TASK = {
    "id": "6f2b7c1e",
    "status": "running",
    "source": "orders-dead",
    "destination": None,
    "filter": FILTER,
    "choice": {"reason": "exhausted", "text": "4711"},
    "rate": 100,
    "moved": 250,
    "failed": 0,
    "total": 400,
    "created_at_ms": AT,
    "modified_at_ms": AT + 2500,
    "failure": "",
}


_LETTER = {"id": _ID, "outcome": "moved", "queue": "orders", "moved_id": "7a0d3b52-11c4-8000-8000-000000000a3f"}
_PREVIEW = {
    "source": "orders-dead",
    "moved": 2,
    "failed": {"leased": 1},
    "letters": [{"id": _ID, "outcome": "moved", "queue": "orders"}],
    "scanned": 3,
    "cut": None,
}


def _results(**more: Any) -> dict[str, Any]:
    return {"results": [{"handle": _HANDLE, "status": "ok", **more}]}


HOT = {
    "send": Example(
        {
            "messages": [
                {"body": _BODY, "attributes": {"kind": "retail", "logo": _ATTRIBUTES["logo"]}, "delay_seconds": 0.25}
            ]
        },
        {"messages": [{"id": _ID, "body_md5": "0d5bcbf1ba5ad7e4a8ffa3dd9a6b3a6f", "sent_at_ms": AT}]},
    ),
    "receive": Example(
        {"tag": "billing", "max": 10, "wait_seconds": 20, "lease_seconds": 30}, {"messages": [_DELIVERY]}
    ),
    "ack": Example({"handles": [_HANDLE]}, _results()),
    "extend": Example(
        {"entries": [{"handle": _HANDLE, "lease_seconds": 60}]}, _results(next_visible_at_ms=AT + 60_000)
    ),
    "release": Example({"handles": [_HANDLE], "delay_seconds": 5}, _results(next_visible_at_ms=AT + 5000)),
    "kill": Example({"handles": [_HANDLE], "reason": "no such customer"}, _results()),
}
_USER = {
    "name": "billing",
    "display_name": "Billing",
    "email": "billing@example.com",
    "phone": "",
    "read_qps": 1000,
    "write_qps": 1000,
    "queues": 20,
    "partitions": 80,
    "daily_bytes": 10_000_000_000,
    "waits": 100,
    "webhook": "https://billing.example.com/alerts",
    "webhook_secret": "5d1f0c3a",
    "used": {"queues": 3, "read_qps": 150, "write_qps": 150, "partitions": 12, "bytes_today": 1_250_000},
}
_GRANT = {"principal": "billing", "level": "use"}
_TAG_GRANT = {"principal": "billing", "level": "handle"}
LOOK = {
    "query": Example(reply={"messages": [_PEEKED], "next": None, "scanned": 298, "cut": None}),
    "peek": Example(reply=_PEEKED),
    "message_events": Example(
        reply={
            "events": [
                {"kind": "sent", "at_ms": AT, "by": "shop"},
                {"kind": "leased", "at_ms": AT + 5, "tag": "billing", "receive_count": 1, "until_ms": AT + 30_005},
                {"kind": "dying", "at_ms": AT + 9, "tag": "billing", "receive_count": 1, "reason": "killed"},
                {
                    "kind": "dead",
                    "at_ms": AT + 20,
                    "tag": "billing",
                    "receive_count": 1,
                    "queue": "orders-dead",
                    "id": "7a0d3b52-11c4-8000-8000-000000000a3f",
                },
            ],
            "complete": True,
            "since_ms": AT,
            "next": None,
            "scanned": 4,
            "cut": None,
        }
    ),
    "copy_message": Example(
        {"body": _BODY, "attributes": {"kind": "retail"}, "remove": True},
        {
            "id": "7a0d3b52-11c4-8000-8000-000000000a3f",
            "body_md5": "0d5bcbf1ba5ad7e4a8ffa3dd9a6b3a6f",
            "sent_at_ms": AT,
            "queue": "orders",
            "copied_from": _ID,
            "removed": True,
        },
    ),
    "delete_message": Example(),
    "cancel": Example(),
    "reschedule": Example({"deliver_at_ms": 1_790_000_000_000}),
}
QUEUES = {
    "create_queue": Example(
        {"name": "orders", "delay_seconds": 0, "lease_seconds": 30, "redrive_policy": POLICY}, _QUEUE
    ),
    "list_queues": Example(reply={"queues": ["orders", "orders-dead"], "next": None}),
    "get_queue": Example(reply=_QUEUE),
    "set_queue": Example({"lease_seconds": 30, "user_attributes": {"team": "shop"}}, _QUEUE),
    "delete_queue": Example(),
    "purge": Example(),
    "pause": Example({"reason": "the database is down"}, _PAUSE),
    "resume": Example(),
    "copy_queue": Example({"target": "orders-2"}, {**_QUEUE, "name": "orders-2"}),
    "get_redrive_policy": Example(reply=_POLICY_SHOWN),
    "set_redrive_policy": Example(POLICY, _POLICY_SHOWN),
    "delete_redrive_policy": Example(),
    "create_tag": Example({"name": "billing", "start_at_ms": 0, "filter": FILTER}, _TAG),
    "list_tags": Example(reply={"tags": [_TAG]}),
    "delete_tag": Example(),
    "seek": Example({"to_ms": AT}, _TAG),
    "pause_tag": Example({"reason": "the database is down"}, _PAUSE),
    "resume_tag": Example(),
}
_TRANSACTION_ID = "5f1c0f8e9a3b8c10800000000000012a"
_TRANSACTION = {
    "id": _TRANSACTION_ID,
    "status": "open",
    "queue": "orders",
    "producer_group": "payments",
    "principal": "shop",
    "messages": 1,
    "prepared_at_ms": AT,
    "checks": 0,
    "checks_left": 15,
    "next_check_at_ms": AT + 6_000,
    "decided_at_ms": None,
    "decided_by": "",
    "reason": "",
    "message_ids": [],
}
_DECIDED = {
    **_TRANSACTION,
    "decided_at_ms": AT + 250,
    "decided_by": "shop",
    "reason": "answered",
    "checks_left": 0,
    "next_check_at_ms": None,
}
_COMMITTED = {**_DECIDED, "status": "committed", "message_ids": [_ID]}
_WEBHOOK = {
    "producer_group": "payments",
    "owner": "shop",
    "url": "https://shop.example.com/checks",
    "modified_at_ms": AT,
}
_CHECK = {
    "id": f"{_TRANSACTION_ID}-1",
    "number": 1,
    "transaction": {**_TRANSACTION, "checks": 1, "checks_left": 14, "next_check_at_ms": AT + 66_000},
    "messages": [{"body": _BODY, "attributes": {}}],
}
TRANSACTIONS = {
    "prepare": Example(
        {"producer_group": "payments", "messages": [{"body": _BODY}], "check_immunity_seconds": 6}, _TRANSACTION
    ),
    "commit": Example(reply=_COMMITTED),
    "rollback": Example(reply={**_DECIDED, "status": "rolled_back"}),
    "unknown": Example(reply=_TRANSACTION),
    "get_transaction": Example(reply=_COMMITTED),
    "list_transactions": Example(reply={"transactions": [_TRANSACTION]}),
    "check": Example({"max": 10, "wait_seconds": 20}, {"checks": [_CHECK]}),
    "set_webhook": Example({"url": "https://shop.example.com/checks"}, {**_WEBHOOK, "secret": "kept-by-you-and-us"}),
    "get_webhook": Example(reply=_WEBHOOK),
    "delete_webhook": Example(),
}
_PARKED = {
    "group": "user-17",
    "message_id": _ID,
    "partition": 0,
    "offset": 298,
    "receive_count": 5,
    "first_received_at_ms": AT + 5,
    "expires_at_ms": AT + 345_600_000,
    "held": 12,
}
TASKS = {
    "list_parked": Example(reply={"groups": [_PARKED], "next": None}),
    "unpark": Example({"group": "user-17", "tag": "billing"}, {"unparked": True}),
    "redrive": Example({"filter": FILTER, "reason": "exhausted", "text": "4711", "rate": 100}, _TASK),
    "preview_redrive": Example({"filter": FILTER, "source": "orders"}, _PREVIEW),
    "redrive_all": Example({"reason": "killed", "rate": 100}, {"tasks": [_TASK], "next": None}),
    "preview_redrive_all": Example({"reason": "killed"}, {"previews": [_PREVIEW]}),
    "list_tasks": Example(reply={"tasks": [_TASK], "next": None}),
    "task_outcomes": Example(reply={"letters": [_LETTER], "next": None, "complete": True}),
    "get_task": Example(reply=_TASK),
    "cancel_task": Example(reply={**_TASK, "status": "cancelled"}),
}
_KEY = {
    "key_id": "billing-service",
    "principal": "billing",
    "admin": False,
    "role": "member",
    "created_at_ms": AT,
    "expires_at_ms": 0,
    "disabled": False,
    "previous_until_ms": 0,
    "last_used_at_ms": AT,
}
RIGHTS = {
    "get_rights": Example(
        reply={
            "principal": "billing",
            "key_id": "billing-service",
            "role": "member",
            "may": ["create_queue", "list_queues"],
        }
    ),
    "get_queue_rights": Example(
        reply={"queue": "orders", "may": ["send"], "tags": {"default": [], "audit": ["receive"]}}
    ),
    "list_shared": Example(
        reply={"queues": [{"name": "orders", "owner": "shop", "backlog": 3, "ready": 2, "leased": 1}], "next": None}
    ),
    "list_grants": Example(reply={"grants": [_GRANT]}),
    "get_grant": Example(reply=_GRANT),
    "grant": Example({"level": "use"}, _GRANT),
    "revoke": Example(),
    "list_tag_grants": Example(reply={"grants": [_TAG_GRANT]}),
    "grant_tag": Example({"level": "handle"}, _TAG_GRANT),
    "revoke_tag": Example(),
    "get_user": Example(reply=_USER),
    "set_contacts": Example(
        {"display_name": "Billing", "email": "billing@example.com", "webhook": "https://billing.example.com/alerts"},
        _USER,
    ),
    "set_user_quota": Example(
        {
            "read_qps": 1000,
            "write_qps": 1000,
            "queues": 20,
            "partitions": 80,
            "daily_bytes": 10_000_000_000,
            "waits": 100,
        },
        _USER,
    ),
    "create_key": Example(
        {"key_id": "billing-service", "principal": "billing", "role": "member", "expires_at_ms": 0},
        {"key_id": "billing-service", "secret": "kept-by-you"},
    ),
    "list_keys": Example(reply={"keys": [_KEY]}),
    "set_key": Example({"disabled": True}, {**_KEY, "disabled": True}),
    "rotate_key": Example({"grace_seconds": 3600}, {"key_id": "billing-service", "secret": "kept-by-you"}),
    "delete_key": Example(),
}
