"""`leaseway prepare`, which `leaseway up` runs once for a data folder: it tells the embedded Kafka
what programs may do that come without a password.
"""

from __future__ import annotations

import asyncio

from engine.errors import EngineError
from engine.log.client import local_rights
from engine.log.client.patience import Patience
from facade.config import Settings
from facade.programs.stack.processes.errors import StackError


def run(settings: Settings) -> None:
    """Gives the rights; a repeat is safe. Raises StackError."""
    options = {"bootstrap.servers": settings.kafka_bootstrap, **settings.kafka_client()}
    try:
        asyncio.run(_repeated(settings.start_wait_s, options, settings.topic_prefix))
    except EngineError as error:
        raise StackError(str(error)) from None


async def _repeated(wait_s: float, options: dict[str, str], prefix: str) -> None:
    await Patience(wait_s).repeat(lambda: asyncio.to_thread(local_rights.give_rights, options, prefix))
