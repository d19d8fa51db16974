"""A mail server that takes connections and says nothing: a worker goes on beside it."""

from __future__ import annotations

import asyncio
import socket

import pytest

from engine.alerts import messenger
from engine.alerts.messenger import Mail, NotDeliveredError
from engine.settings import EngineSettings

MANY = 40  # more than the loop has threads


async def test_a_server_that_stands_still_takes_no_thread_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messenger, "TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0), backlog=MANY) as silent:
        sender = Mail(EngineSettings(smtp_host="127.0.0.1", smtp_port=silent.getsockname()[1]))
        sending = asyncio.gather(
            *(sender.send("a@example.com", "subject", "text") for _ in range(MANY)), return_exceptions=True
        )
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        await asyncio.to_thread(int)
        assert asyncio.get_running_loop().time() - began < 0.2
        assert {type(outcome) for outcome in await sending} == {NotDeliveredError}
