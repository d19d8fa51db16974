"""How MNS names a queue: `orders`, and `orders@billing` for tag `billing` of it.

Queues that MNS clients make have MNS's names; those of other dialects are spoken to by the names
that they have.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from engine.rules.limits import MAX_QUEUE_NAME
from facade.dialects.mns.wire.errors import INVALID_NAME, NAME_LENGTH, MnsError

MOST: Final = 120
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


class Address(Struct, frozen=True):
    """A queue, and the tag of it that is spoken to; None = the default tag."""

    queue: str
    tag: str | None = None

    @property
    def name(self) -> str:
        return self.queue if self.tag is None else f"{self.queue}@{self.tag}"


def address(name: str) -> Address:
    """The queue and tag of a name in a path. Raises MnsError."""
    queue, at, tag = name.partition("@")
    if not queue or (at and not tag):
        raise MnsError(INVALID_NAME, f"The queue name is invalid: {name[:200]!r}")
    if len(queue) > MAX_QUEUE_NAME:
        raise MnsError(NAME_LENGTH, f"The length of a queue name should between 1 and {MOST}, given {len(queue)}")
    return Address(queue, tag if at else None)


def check_new(name: str) -> None:
    """Raises MnsError unless a new queue may have this name."""
    if not 1 <= len(name) <= MOST:
        raise MnsError(NAME_LENGTH, f"The length of a queue name should between 1 and {MOST}, given {len(name)}")
    if not _NAME.fullmatch(name):
        about = "has letters, digits and hyphens, and begins with a letter or digit"
        raise MnsError(INVALID_NAME, f"A queue name {about}, given {name!r}")
