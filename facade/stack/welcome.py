"""What `leaseway up` prints when it is ready: the endpoint and three commands that work.

Neighbours: `supervisor` prints it. It must not do anything.
"""

from __future__ import annotations

from pathlib import Path

from facade.config import Settings

LOCAL = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def connectable(host: str) -> str:
    """The address at which a local client reaches a server bound to `host`."""
    return LOCAL.get(host, host)


def endpoint_of(settings: Settings) -> str:
    """The URL at which a local client reaches the facade."""
    host = connectable(settings.host)
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def welcome(settings: Settings, folder: Path) -> str:
    """The endpoint and three curl lines: create a queue, send, receive."""
    endpoint = endpoint_of(settings)
    key = f' -u "{settings.admin_key_id}:$(cat {folder}/admin_secret)"' if settings.auth == "required" else ""
    call = f"curl -sS{key} -H 'content-type: application/json'"
    return "\n".join(
        [
            f"the endpoint is {endpoint}",
            "",
            f"""  {call} {endpoint}/v1/queues -d '{{"name": "orders"}}'""",
            f"""  {call} {endpoint}/v1/queues/orders/messages -d '{{"messages": [{{"body": "hello"}}]}}'""",
            f"""  {call} {endpoint}/v1/queues/orders/receive -d '{{"max": 1, "wait_seconds": 5}}'""",
            "",
        ]
    )
