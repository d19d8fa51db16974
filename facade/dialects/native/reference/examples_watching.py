"""Examples of what watches queues, and of definitions, for the API's description."""

from __future__ import annotations

from facade.dialects.native.reference.examples import AT, FILTER, POLICY
from facade.http.operation import Example

_WATCHED = {"tag": "billing", "subject": "receive_request", "measurement": "latency_p999", "threshold": 500}
_ALERT = {"id": "a1f2e3d4c5b6", **_WATCHED, "added_at_ms": AT, "firing": False, "since_ms": None}
_EVENT = {
    "id": "0123456789ab-a1f2e3d4c5b6-1767225660000",
    "change": "fired",
    "at_ms": AT + 60_000,
    **_WATCHED,
    "value": 812.8,
}
_ROW = {"tag": None, "subject": "send_request", "requests": 1440, "messages": 14400}
_NONE = {"released": [None, 0], "dead": [None, 0]}
_TIMES = {"latency_ms": 4.182, "latency_p999_ms": 31.623, "latency_max_ms": 64.02}
_AUDITED = {
    "id": "0123456789ab-7",
    "at_ms": AT,
    "principal": "shop",
    "key_id": "shop-1",
    "peer": "10.0.0.1",
    "operation": "native.purge",
    "verb": "purge",
    "queue": "orders",
    "tag": "",
    "subject": "",
    "outcome": "done",
    "status": 204,
    "error": "",
    "request_id": "3f1c7a0e-6a55-4d0b-9c59-8f6e0f7c3b21",
    "suppressed": 0,
}
WATCHING = {
    "add_alert": Example(_WATCHED, _ALERT),
    "list_alerts": Example(reply={"alerts": [{**_ALERT, "firing": True, "since_ms": AT + 60_000}]}),
    "list_alert_events": Example(reply={"events": [{**_EVENT, "told": "told", "note": "webhook 200; mail"}]}),
    "delete_alert": Example(),
    "list_audit": Example(reply={"records": [_AUDITED], "next": None, "scanned": 1, "cut": None}),
    "get_daily_statistics": Example(reply={"enabled": True}),
    "set_daily_statistics": Example({"enabled": True}, {"enabled": True}),
    "statistics": Example(
        reply={"queue": "orders", "day": "2026-01-01", "complete": True, "rows": [{**_ROW, **_TIMES}]}
    ),
    "history": Example(
        reply={
            "queue": "orders",
            "step_ms": 10_000,
            "as_of_ms": AT,
            "at_ms": [AT - 10_000, AT],
            **{name: [None, 0] for name in ("delayed", "parked", "stored")},
            "ready": [None, 7],
            "leased": [None, 2],
            "oldest_at_ms": [None, AT - 60_000],
            "sent": [None, 1440],
            "tags": [
                {"name": "default", "received": [None, 1434], "redelivered": [None, 3], "acked": [None, 1431], **_NONE}
            ],
        }
    ),
    "query_metric": Example(reply={"metric": "send_request.count", "points": [{"at_ms": AT, "value": 24}]}),
}
_DEFINED = {
    "version": 1,
    "queues": [
        {
            "name": "orders",
            "lease_seconds": 60,
            "redrive_policy": POLICY,
            "tags": [{"name": "billing", "filter": FILTER}],
            "grants": [{"principal": "billing", "level": "handle", "tag": "billing"}],
            "alerts": [_WATCHED],
            "daily_statistics": False,
        }
    ],
    "users": [{"name": "billing", "email": "billing@example.com", "queues": 20}],
}
_CHANGED = {
    "action": "change",
    "kind": "queue",
    "name": "orders",
    "queue": None,
    "field": "lease_seconds",
    "before": 30,
    "after": 60,
}
DEFINITIONS = {
    "get_definitions": Example(reply=_DEFINED),
    "put_definitions": Example(_DEFINED, {"dry_run": False, "changes": [_CHANGED]}),
}
