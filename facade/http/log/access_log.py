"""The access log: a line for every so many-th answered request, whoever has served it.

A line has no body, no query and no secret: who asked, which verb of what, and how it ended.
"""

from __future__ import annotations

import logging
from typing import Final, Literal

log = logging.getLogger("leaseway.access")

FAILED: Final = 500  # from this status on each request has a line, unless there are none at all
Server = Literal["plane", "python"]
# Of what a client may have made up.
CHARACTERS: Final = 128


class AccessLog:
    """`every`: so many answered requests have one line, 1 = each has; 0 = none has. Belongs to one
    event loop.
    """

    def __init__(self, every: int) -> None:
        self.every = every
        self._number = 0

    def wants(self, status: int) -> bool:
        """Counts a request that ended with `status`; whether it has a line."""
        if not self.every:
            return False
        self._number = (self._number + 1) % self.every
        return not self._number or status >= FAILED

    def write(
        self,
        verb: str,
        status: int,
        seconds: float,
        request_id: str,
        *,
        by: Server,
        principal: str,
        queue: str,
        tag: str,
        peer: str = "",
        client_id: str = "",
    ) -> None:
        """Writes the line of a request. `by`: who has served it; `peer`: from where it came, empty
        = nobody knows any more; `client_id`: how the client, or a proxy, calls it.
        """
        log.info(
            "action=request verb=%s status=%d ms=%.3f principal=%s queue=%s tag=%s peer=%s by=%s client_id=%s "
            "request_id=%s",
            verb,
            status,
            seconds * 1000,
            principal,
            queue,
            tag,
            peer,
            by,
            _shown(client_id),
            request_id,
        )


def _shown(text: str) -> str:
    """What somebody else has written, within one word of a line."""
    return "".join(one if one.isprintable() and one != " " else "?" for one in text[:CHARACTERS])
