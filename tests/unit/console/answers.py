"""Answers of the API, written by hand."""

from __future__ import annotations

from typing import Any

from tests.unit.console.conftest import AT, EVIL, MESSAGE

PAGE = {"messages": [MESSAGE], "next": "more", "scanned": 1200, "cut": "records"}
TASK = {
    "id": "0" * 16, "status": "running", "source": "orders", "destination": None, "filter": None, "rate": 0, "moved": 3,
    "failed": 1, "total": 10, "created_at_ms": AT, "modified_at_ms": AT, "failure": "",
}  # fmt: skip
TRANSACTION = {
    "id": "1" * 32, "status": "open", "queue": "orders", "producer_group": "shops", "principal": "shop", "messages": 2,
    "prepared_at_ms": AT, "checks": 0, "checks_left": 15, "next_check_at_ms": AT, "decided_at_ms": None,
    "decided_by": "", "reason": "", "message_ids": [],
}  # fmt: skip
KEY = {
    "key_id": "anna-1", "principal": "anna", "admin": True, "role": "admin", "created_at_ms": AT, "expires_at_ms": 0,
    "disabled": False, "previous_until_ms": 0, "last_used_at_ms": AT,
}  # fmt: skip
USER = {
    "name": "anna", "display_name": "Anna", "email": "", "phone": "", "read_qps": 0, "write_qps": 0, "queues": 0,
    "partitions": 0, "daily_bytes": 0, "waits": 0, "webhook": "", "webhook_secret": "s3cr3t-of-the-webhook",
    "used": {"queues": 1, "read_qps": 0, "write_qps": 0, "partitions": 4, "bytes_today": 12},
}  # fmt: skip
ALERT = {
    "id": "a1f2e3d4c5b6", "tag": None, "subject": "queue_message_number", "measurement": "count", "threshold": 1000.0,
    "added_at_ms": AT, "firing": True, "since_ms": AT,
}  # fmt: skip
EVENT = {
    "id": "e", "change": "fired", "at_ms": AT, "tag": None, "subject": "queue_message_number", "measurement": "count",
    "threshold": 1000.0, "value": 1001.0, "told": "told", "note": "",
}  # fmt: skip
ROW = {
    "tag": None, "subject": "send_request", "requests": 2, "messages": 3, "latency_ms": 1.5, "latency_p999_ms": 2.0,
    "latency_max_ms": 2.0,
}  # fmt: skip

HISTORY: dict[str, Any] = {
    "queue": "orders", "step_ms": 10_000, "as_of_ms": AT, "at_ms": [AT - 20_000, AT - 10_000, AT],
    "ready": [4, None, 7], "delayed": [0, None, 0], "leased": [0, None, 2], "parked": [0, None, 0],
    "stored": [0, None, 0],
    "oldest_at_ms": [0, None, AT], "sent": [1000, 1440, 1450],
    "tags": [
        {"name": name, "received": [10, 20, 23], "redelivered": [0, 0, 0], "acked": [None, 5, 9], "released": [0, 0, 0],
         "dead": [0, 0, 0]}
        for name in ("default", "audit")
    ],
}  # fmt: skip
LIFE = {
    "events": [
        {"kind": "sent", "at_ms": AT, "by": "shop"},
        {"kind": "leased", "at_ms": AT, "tag": "default", "receive_count": 1, "until_ms": AT + 30_000},
        {"kind": "moved", "at_ms": AT, "tag": "default", "task": "0" * 16, "queue": "orders-2", "id": "b" * 8},
    ],
    "complete": False, "since_ms": AT - 5000, "next": None, "scanned": 1234, "cut": None,
}  # fmt: skip
LETTERS = [
    {"id": "a" * 8, "outcome": "moved", "queue": "orders-2", "moved_id": "b" * 8},
    {"id": "c" * 8, "outcome": "leased"},
]  # fmt: skip
PREVIEW = {
    "source": "orders", "moved": 1, "failed": {"leased": 2}, "letters": LETTERS, "scanned": 1200, "cut": "records",
}  # fmt: skip
PAUSED = {"at_ms": AT, "by": "anna", "reason": "the shop moves"}
DEAD = {
    **MESSAGE,
    "origin": {
        "original_queue": "orders", "original_id": "x", "original_sent_at_ms": AT, "moved_at_ms": AT,
        "reason": "killed", "note": f"bad address {EVIL}", "receive_count": 3, "from_tag": "default",
    },
}  # fmt: skip

AUDIT = {
    "records": [
        {
            "id": "w-7", "at_ms": AT, "principal": "shop", "key_id": "shop-1", "peer": "10.0.0.1",
            "operation": f"op {EVIL}",
            "verb": "purge", "queue": "orders", "tag": "", "subject": "bob", "outcome": "refused", "status": 403,
            "error": "not_authorised", "request_id": "r", "suppressed": 3,
        }
    ],
    "next": "17", "scanned": 20_000, "cut": "records",
}  # fmt: skip

GRANTS = {"grants": [{"principal": "eve", "level": "use"}]}
