"""The process of a console."""

from __future__ import annotations

import uvicorn

from facade.programs.console.app import create_app
from facade.programs.console.order import Order

MOST_AT_ONCE = 200
GRACE_S = 3


def serve(order: Order) -> None:
    """Serves until SIGINT or SIGTERM."""
    uvicorn.run(
        create_app(order),
        host=order.host,
        port=order.port,
        ssl_certfile=order.tls_cert or None,
        ssl_keyfile=order.tls_key or None,
        log_level="warning",
        access_log=False,  # addresses have names of queues and ids of messages, and are asked for each 2 s
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=GRACE_S,
    )
