"""`leaseway prepare`, which `leaseway up` runs once for a data folder: it tells the embedded Kafka
what others may do, and brings what a version of before has written to the format of now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.errors import EngineError
from engine.log.client import local_rights
from engine.log.client.patience import Patience
from facade.cli import sealing
from facade.config import Settings
from facade.stack.processes.errors import StackError
from schemas.topics import control_topic


def run(settings: Settings, *, of_before: bool) -> list[str]:
    """What to say about it, a line each. A repeat is safe. Raises StackError."""
    options = {"bootstrap.servers": settings.kafka_bootstrap, **settings.kafka_client()}
    # Kafka learns the password for SCRAM when its storage is formatted; before, it had none. The
    # supervisor has started it a moment ago, so it is no stranger who hears the password now.
    first = {**options, "sasl.mechanism": "PLAIN"} if of_before else options

    def tell() -> bool:
        if of_before:
            local_rights.set_password(first, options["sasl.username"], options["sasl.password"])
        local_rights.give_rights(first, settings.topic_prefix)
        return of_before and local_rights.has_topic(options, control_topic(settings.topic_prefix))

    try:
        adopts = asyncio.run(_repeated(settings.start_wait_s, tell))
    except EngineError as error:
        raise StackError(str(error)) from None
    return sealing.adopt_folder(settings) if adopts else []


async def _repeated(wait_s: float, tell: Callable[[], bool]) -> bool:
    return await Patience(wait_s).repeat(lambda: asyncio.to_thread(tell))
