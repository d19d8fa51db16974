"""Which paths are those of SQS: the root, or an account's number first; and of them those of a
queue.
"""

from __future__ import annotations

import re
from typing import Final

_OWN: Final = re.compile(r"/(?:\d+(?:/.*)?)?")
_QUEUE: Final = re.compile(r"/\d+/[^/]+/?")


def is_own(path: str) -> bool:
    """Whether only SQS has such a path."""
    return _OWN.fullmatch(path) is not None


def of_queue(path: str) -> bool:
    """Whether the path names a queue of SQS."""
    return _QUEUE.fullmatch(path) is not None
