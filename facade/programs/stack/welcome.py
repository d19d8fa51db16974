"""What `leaseway up` prints when it is ready: the endpoint and three commands that work.

It must not do anything.
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
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://[{host}]:{settings.port}" if ":" in host else f"{scheme}://{host}:{settings.port}"


def ports_of(settings: Settings) -> dict[str, int]:
    """The ports that the facade listens on, by the options that name them; 0 = none."""
    return {"--port": settings.port, "--rocketmq-port": settings.rocketmq_port}


def rocketmq_of(settings: Settings) -> str:
    """What a local RocketMQ client takes as endpoints; "" = the port is off."""
    return f"{connectable(settings.host)}:{settings.rocketmq_port}" if settings.rocketmq_port else ""


def welcome(settings: Settings, folder: Path, console: str = "") -> str:
    """The endpoint, the address of the console if there is one, and three curl lines: create a
    queue, send, receive.
    """
    endpoint = endpoint_of(settings)
    key = f' -u "{settings.admin_key_id}:$(cat {folder}/admin_secret)"' if settings.auth == "required" else ""
    call = f"curl -sS{key} -H 'content-type: application/json'"
    return "\n".join(
        [
            f"the endpoint is {endpoint}",
            *([f"the console is {console}"] if console else ()),
            *([f"RocketMQ clients are served at {rocketmq_of(settings)}"] if settings.rocketmq_port else ()),
            "",
            f"""  {call} {endpoint}/v1/queues -d '{{"name": "orders"}}'""",
            f"""  {call} {endpoint}/v1/queues/orders/messages -d '{{"messages": [{{"body": "hello"}}]}}'""",
            f"""  {call} {endpoint}/v1/queues/orders/receive -d '{{"max": 1, "wait_seconds": 5}}'""",
            "",
        ]
    )
