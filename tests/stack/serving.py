"""`leaseway serve` over the Kafka and the Redis that tests share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from facade.programs.stack.processes.ports import free_port
from tests.services import Services

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(stack: Services, prefix: str, *options: str, **settings: str) -> Iterator[str]:
    """The endpoint of a service with topics of its own, started with some options and LEASEWAY_
    settings.
    """
    port = free_port()
    variables = {
        "KAFKA_BOOTSTRAP": stack.bootstrap,
        "REDIS_URL": stack.redis_url,
        "TOPIC_PREFIX": prefix,
        "SECRET": "Vt3xQm9Zk2Lw8Rb6Hs5N",
        **settings,
    }
    environment = {**os.environ, **{f"LEASEWAY_{name}": value for name, value in variables.items()}}
    command = [sys.executable, "-m", "facade", "serve", "--port", str(port), *options]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith(f"leaseway: serving at http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
