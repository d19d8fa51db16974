"""A recording stand-in for the engine: it has no rule of a queue, so it tells only how HTTP is
translated.

The rules are tested against the real engine elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from engine.errors import Denied, EngineError, NotAuthenticated
from engine.meters.shapes import ReceiveCounts, TimesOf
from engine.shapes import Alarm, Delivery, Peeked, Principal, QueueInfo, TagInfo, TaskInfo
from runtime.asked import Asked
from schemas.filters import Condition, Filter
from schemas.records import Attribute, Message, Origin, QueueRecord
from schemas.records.settings import RedrivePolicy
from schemas.records.watching import Request

AT = 1_767_225_600_000
FILTER = Filter([Condition("kind", "string", b"retail"), Condition("vip")], "OR")
TAG = TagInfo("billing", AT, AT, FILTER, {"a": "b"}, 12, 9, 1, 2, 0)
QUEUE = QueueInfo(
    name="orders", owner="shop", created_at_ms=AT, modified_at_ms=AT, source_queues=["x"], tags=[TAG],
    partitions=4, delay_ms=250, receive_wait_ms=1500, redrive_policy=RedrivePolicy("dead", 5),
)  # fmt: skip
RECORD = QueueRecord(
    "orders",
    "0123456789ab",
    "shop",
    AT,
    AT,
    partitions=4,
    delay_ms=250,
    lease_ms=30_000,
    retention_ms=345_600_000,
    max_message_bytes=262_144,
    receive_wait_ms=1500,
    max_receive_messages=100,
    tags=[],
    next_tag_id=1,
)
TASK = TaskInfo("t1", "running", "dead", None, None, 10, 1, 0, 2, AT, AT, "")
ORIGIN = Origin("f", "billing", "o", "orders", "billing", "exhausted", 5, AT, AT, AT)
TEXT = Message(b"text", {"kind": Attribute("string", b"retail"), "raw": Attribute("string", b"\xff")}, sender="shop")
BYTES = Message(b"\x00\xff", {"logo": Attribute("binary.PNG", b"\x89")}, origin=ORIGIN, body_is_text=False)


def delivery(message: Message = TEXT) -> Delivery:
    return Delivery("id1", "handle1", message, AT, 1, AT + 1, AT + 2, 0, 298)


def peeked(message: Message = TEXT) -> Peeked:
    return Peeked("id1", message, AT, "leased", 1, AT + 1, None, 0, 298)


class RecordingAudit:
    """Hears of every request."""

    quiet: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int, str, str]] = []
        self.refused_: list[tuple[Principal, str, str]] = []

    def begin(self, peer: str) -> Asked:
        return Asked(peer)

    async def end(
        self, asked: Asked, operation: str, status: int, error: BaseException | None, request_id: str = ""
    ) -> None:
        self.heard.append((asked.peer, operation, status, type(error).__name__ if error else "", request_id))

    def refused(
        self,
        peer: str,
        by: Principal,
        verb: str,
        queue: str,
        operation: str,
        status: int,
        error: Denied,
        request_id: str,
    ) -> None:
        self.heard.append((peer, operation, status, type(error).__name__, request_id))
        self.refused_.append((by, verb, queue))


# What GET /metrics asks for: it is never held.
METRICS = ("count_each",)


class RecordingEngine:
    """Is each of its services, too. Every async method records its arguments, then raises `error`
    or returns `answers[its name]`.
    """

    def __init__(self) -> None:
        self.messages = self.queues = self.callers = self.tasks = self.alerts = self.transactions = self.routes = self
        self.definitions = self
        self.calls: list[tuple[Any, ...]] = []
        self.answers: dict[str, Any] = {"count_each": []}
        self.error: BaseException | None = None
        self.credentials: list[tuple[str | None, str | None]] = []
        self.audit = RecordingAudit()
        self.secret = "secret"
        self.sees = True
        self.alarmed = [Alarm("retention_near", "orders", 7.0)]
        self.refuse: EngineError | None = None
        self.hold: asyncio.Event | None = None
        self.cancelled = asyncio.Event()
        self.undelivered_: list[Sequence[Delivery]] = []
        self.received: list[ReceiveCounts] = []
        self.stored: dict[str, int] = {}
        self.parts: dict[str, str] = {"kafka": "ok", "redis": "ok"}

    class plane:  # noqa: N801 - there is none
        is_on = False
        state = "off: this is no engine"

        @staticmethod
        def waiting() -> tuple[int, int]:
            return 0, 0

    def authenticate(self, key_id: str | None, secret: str | None, at: str = "") -> Principal:
        self.credentials.append((key_id, secret))
        if self.refuse is not None:
            raise self.refuse
        return Principal(key_id or "anonymous")

    def check_key(self, key_id: str, at: str = "") -> None:
        if self.refuse is not None:
            raise self.refuse

    def authenticate_signed(self, key_id: str, fits: Callable[[str], bool], at: str = "") -> Principal:
        if self.refuse is not None:
            raise self.refuse
        if not fits(self.secret):
            raise NotAuthenticated("no", field="signature")
        return Principal(key_id)

    def knows(self, by: Principal, queue: str) -> bool:
        return self.sees

    def counts(self) -> dict[str, float]:
        return {"window.loads_total": 3.0, "loaders": 2.0}

    def times(self) -> list[TimesOf]:
        return []

    def requests(self, request: Request, requests: int, sum_us: int, max_us: int) -> None:
        """Counts nothing."""

    def alarms(self) -> list[Alarm]:
        return self.alarmed

    def undelivered(self, leased: Sequence[Delivery]) -> None:
        self.undelivered_.append(leased)

    def count_receives(self, by: Principal, prefix: str = "") -> list[ReceiveCounts]:
        return self.received

    def stored_bytes(self, by: Principal, prefix: str = "") -> dict[str, int]:
        return self.stored

    def kafka_ms(self) -> int:
        return 10_000

    def known(self, name: str, by: Principal | None = None) -> QueueRecord | None:
        """What a worker that has just started knows."""
        return None

    async def record(self, name: str, by: Principal | None = None) -> QueueRecord:
        """Not a call: what a worker knows by itself."""
        return RECORD

    async def ready(self) -> dict[str, str]:
        if self.error is not None:
            raise self.error
        return self.parts

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def verb(*arguments: Any, **options: Any) -> Any:
            self.calls.append((name, *arguments, *options.values()))
            if self.hold is not None and name not in METRICS:
                try:
                    await self.hold.wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            if self.error is not None:
                raise self.error
            return self.answers.get(name)

        return verb
