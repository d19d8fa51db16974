"""Message groups: RocketMQ's are any text of up to 63 bytes, the engine's printable ASCII without
space. What is none is spelled in base64 behind a mark.
"""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64encode
from typing import Final

from facade.dialects.rocketmq.wire.errors import RocketError
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code

MOST_BYTES: Final = 63
_MARK: Final = "utf8:"
_PLAIN: Final = re.compile(r"(?!utf8:)[!-~]+")


def stored(group: str) -> str:
    """The engine's name of a message group. Raises RocketError."""
    data = group.encode()
    if not group.strip() or len(data) > MOST_BYTES:
        raise RocketError(
            Code.ILLEGAL_MESSAGE_GROUP,
            f"a message group is not blank and has {MOST_BYTES} bytes at most, given {group[:200]!r}",
        )
    return group if _PLAIN.fullmatch(group) else _MARK + urlsafe_b64encode(data).decode()


def shown(group: str) -> str:
    """The message group of a stored message; that of another dialect as it is."""
    if not group.startswith(_MARK):
        return group
    try:
        return b64decode(group.removeprefix(_MARK), b"-_", validate=True).decode()
    except ValueError:
        return group
