"""What the cases need of a dialect: a queue's verbs, in one form for all.

A new dialect adds one client.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

TEXT = dict[str, str]


class Refused(Exception):
    """A request was refused: `reason` is `no_queue`, `exists`, `invalid`, `bad_handle`, or else the
    dialect's own word.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Got(Struct, frozen=True):
    """A message that was received; `attributes` are those of text. `sent_ms` and `first_ms`: when
    it was sent, and received for the first time.
    """

    id: str
    handle: str
    body: str
    count: int
    attributes: TEXT
    sent_ms: int
    first_ms: int


class Counts(Struct, frozen=True):
    """How many messages of a queue are in each state."""

    ready: int
    leased: int
    delayed: int


class QueueSpec(Struct, frozen=True):
    """What a new queue is to be; None = the dialect's default."""

    fifo: bool = False
    content_dedup: bool = False
    lease_s: int | None = None
    delay_s: int | None = None
    max_bytes: int | None = None
    dead: tuple[str, int] | None = None  # the dead-letter queue, and how often a message is received


PLAIN = QueueSpec()


class QueueClient(Protocol):
    """One dialect. Every method raises Refused. A FIFO queue's name ends in .fifo; times are whole
    seconds.
    """

    name: str
    # What the dialect does not have: cases that need it are not for its client.
    lacks: frozenset[str]

    def create(self, queue: str, spec: QueueSpec = PLAIN) -> None: ...

    def set_lease(self, queue: str, lease_s: int) -> None: ...

    def delete(self, queue: str) -> None: ...

    def purge(self, queue: str) -> None: ...

    def queues(self, prefix: str) -> list[str]: ...

    def counts(self, queue: str, tag: str | None = None) -> Counts: ...

    def create_tag(self, queue: str, tag: str, kinds: tuple[str, ...] = ()) -> None:
        """Makes a tag; it gets what has one of `kinds` as its attribute `kind`; none = all."""

    def delete_tag(self, queue: str, tag: str) -> None: ...

    def send(
        self,
        queue: str,
        *bodies: str,
        delay_s: int | None = None,
        attributes: TEXT | None = None,
        group: str | None = None,
    ) -> list[str]:
        """Sends the messages in one request; their ids."""

    def send_once(self, queue: str, body: str, group: str, dedup_id: str | None) -> str:
        """Sends to a FIFO queue; None = the queue takes the content."""

    def receive(
        self, queue: str, most: int = 10, *, tag: str | None = None, wait_s: int = 0, lease_s: int | None = None
    ) -> list[Got]: ...

    def ack(self, queue: str, *handles: str, tag: str | None = None) -> None:
        """Settles messages in one request. That a handle is stale is no error."""

    def extend(self, queue: str, handle: str, lease_s: int) -> str:
        """Gives a lease a new length; the handle from now on."""

    def release(self, queue: str, handle: str) -> None: ...

    def redrive(self, queue: str) -> None:
        """Starts to move the dead letters of `queue` back to where they came from."""

    def close(self) -> None: ...
