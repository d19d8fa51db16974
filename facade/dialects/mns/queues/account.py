"""GetAccountAttributes and SetAccountAttributes.

The one attribute names a bucket for logs, which this service does not deliver: it is empty, and
another value is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from facade.dialects.mns.queues.call import DONE, Answer, Call
from facade.dialects.mns.wire.errors import INVALID_ARGUMENT, MALFORMED_XML, MnsError

if TYPE_CHECKING:
    from engine.engine import Engine


async def get_account_attributes(engine: Engine, call: Call) -> Answer:
    """The bucket for logs: none."""
    return Answer(200, "Account", (("LoggingBucket", ""),))


async def set_account_attributes(engine: Engine, call: Call) -> Answer:
    """Takes no bucket."""
    if call.body is None or call.body.name != "Account":
        raise MnsError(MALFORMED_XML, "the body must be an Account")
    bucket = call.body.value("LoggingBucket")
    if bucket:
        raise MnsError(INVALID_ARGUMENT, "LoggingBucket must be empty: this service delivers no logs to buckets")
    return DONE
