"""One more service over the Kafka and Redis of another, with settings of its own, that wants
credentials.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from facade.programs.stack.processes.ports import free_port
from tests.conformance.conftest import Running
from tests.services import Up

ADMIN_SECRET = "the administrator's secret"


def beside(
    up: Up | Running,
    prefix: str,
    settings: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    auth: str = "required",
) -> Iterator[Running]:
    """One more service over the same Kafka and Redis, with credentials unless `auth` is open."""
    assert isinstance(up, Up)
    port, parts = free_port(), up.run
    variables = {
        "KAFKA_BOOTSTRAP": parts["kafka"]["service"],
        "KAFKA_CONFIG": parts["kafka"]["config"],
        "REDIS_URL": parts["redis"]["url"],
        "TOPIC_PREFIX": prefix,
        "SECRET": "a secret of the tests",
        "ADMIN_KEY_SECRET": ADMIN_SECRET,
        **settings,
    }
    command = [sys.executable, "-m", "facade", "serve", "--port", str(port), "--auth", auth]
    environment = {**os.environ, **{f"LEASEWAY_{name}": value for name, value in variables.items()}}
    log = tmp_path_factory.mktemp(prefix) / "log"
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:
        try:
            _wait_ready(port, process, log)
            yield Running(f"http://127.0.0.1:{port}", log)
        finally:
            process.terminate()


def _wait_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"http://127.0.0.1:{port}/ready", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def new_key(service: Running, principal: str) -> tuple[str, str]:
    """Id and secret of a new key of a principal; the id is the principal."""
    made = httpx.post(
        f"{service.endpoint}/v1/keys", json={"key_id": principal, "principal": principal}, auth=("admin", ADMIN_SECRET)
    )
    assert made.status_code == 201, made.text
    return principal, made.json()["secret"]
