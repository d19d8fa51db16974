"""Connections to the service that are kept between the requests of browsers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from facade.programs.connect.client import Client
from facade.programs.connect.profiles import Connection

MOST_KEPT: Final = 64


class Calls:
    """Lends clients of the service, each to one thread at a time. For any number of threads."""

    def __init__(self, endpoint: str, ca_file: str, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._ca_file = ca_file
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        # The one that was used last is at the end.
        self._idle: deque[tuple[tuple[str, str], Client]] = deque()

    @contextmanager
    def client(self, key_id: str = "", key_secret: str = "") -> Iterator[Client]:
        """A client that speaks with a key; "" = without one."""
        who = key_id, key_secret
        client = self._taken(who)
        try:
            yield client
        finally:
            self._keep(who, client)

    def close(self) -> None:
        """Closes what is idle."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for _, client in idle:
            client.close()

    def _taken(self, who: tuple[str, str]) -> Client:
        with self._lock:
            for place in range(len(self._idle) - 1, -1, -1):
                if self._idle[place][0] == who:
                    client = self._idle[place][1]
                    del self._idle[place]
                    return client
        return Client(Connection(self._endpoint, *who, ca_file=self._ca_file, timeout_s=self._timeout_s))

    def _keep(self, who: tuple[str, str], client: Client) -> None:
        with self._lock:
            self._idle.append((who, client))
            oldest = self._idle.popleft()[1] if len(self._idle) > MOST_KEPT else None
        if oldest is not None:
            oldest.close()
