"""The audit: who has asked for what, and what came of it, in a topic that is only appended to.

Written down are all requests that change what is managed, whatever comes of them, and all that were
refused for who asked; with the setting `audit=all` every other verb too. The answer to a change
waits until Kafka has its record, for WAIT_S at most; no other answer waits. What Kafka does not
take is kept, KEPT records of a worker, and written when it is back; what is beyond that is dropped
and counted. A worker that is killed loses what it has not written: the change itself is in the
control topic. Of requests that failed FAILURES_A_SECOND are written down by each worker, and how
many were not.

An append whose answer was lost is made again: readers drop a number of a worker that they have
seen.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
from time import monotonic

from engine.errors import Denied, EngineError, LogUnavailable, TooManyAttempts, word_of
from engine.log import Log, TopicSpec
from engine.settings import EngineSettings
from engine.shapes import Principal
from runtime.asked import Asked, current
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from runtime.counters import Counters
from schemas.records.watching import AuditRecord
from schemas.topics import audit_topic
from schemas.vocabulary import CHANGES, Outcome, Verb
from schemas.wire import encode

logger = logging.getLogger(__name__)

WAIT_S = 1.0
KEPT = 10_000
AT_A_TIME = 200
AGAIN_S = 0.25
STOP_S = 3.0
FAILURES_A_SECOND = 10
# Of what a client or a proxy may have made up.
CHARACTERS = 200

_DENIALS = (401, 403, 40_100, 40_300)  # of HTTP, and of RocketMQ


class Audit:
    """The audit of one worker. Belongs to one event loop."""

    def __init__(self, settings: EngineSettings, worker: str, log: Log, counters: Counters) -> None:
        self._settings = settings
        self._worker = worker
        self._log = log
        self._counters = counters
        self._topic = audit_topic(settings.topic_prefix)
        # Verbs whose success nobody writes down; "" = the request asked the engine for none.
        self.quiet: frozenset[str] = frozenset() if settings.audit == "all" else frozenset(("", *(set(Verb) - CHANGES)))
        self._number = 0
        self._left: collections.deque[tuple[bytes, asyncio.Event | None]] = collections.deque()
        self._added = asyncio.Event()
        self._failures = 0
        self._suppressed = 0
        self._second = 0.0
        self._background = Background()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Makes the topic, or gives it the retention of the settings. Raises LogUnavailable."""
        s = self._settings
        config = {
            "cleanup.policy": "delete",
            "retention.ms": str(s.audit_days * 86_400_000),
            "retention.bytes": "-1",
            "message.timestamp.type": "LogAppendTime",
            **({"min.insync.replicas": "2"} if s.replication_factor >= 3 else {}),
            **({"flush.messages": str(s.flush_messages)} if s.flush_messages else {}),
        }
        made = await self._log.create_topics([TopicSpec(self._topic, 1, s.replication_factor, config)])
        if made.get(self._topic) == "exists":
            try:
                await self._log.set_topic_config(self._topic, {"retention.ms": config["retention.ms"]})
            except LogUnavailable as error:
                logger.warning("action=set_topic_config topic=%s error=%s", self._topic, error)
        if self._task is None:
            self._task = self._background.keep(self._serve, "audit")

    async def stop(self) -> None:
        """Writes what is left, if Kafka takes it within STOP_S."""
        task, self._task = self._task, None
        await cancel_all(task)
        self._note_suppressed()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                while self._left and await self._write():
                    pass
        if self._left:
            logger.warning("action=audit lost=%d", len(self._left))

    def begin(self, peer: str) -> Asked:
        """A request from `peer` begins, in this task: what the verbs note is noted for it."""
        asked = Asked(peer)
        current.set(asked)
        return asked

    async def end(
        self, asked: Asked, operation: str, status: int, error: BaseException | None, request_id: str = ""
    ) -> None:
        """The request is answered with `status`; `operation` is what its client calls it.
        Called for every one that failed, and for those whose verb is not `quiet`.
        """
        is_change = asked.is_change
        # What is refused before the engine is asked has no class of the engine; of its errors some
        # others are told by 403 too.
        by_status = error is not None and status in _DENIALS and not isinstance(error, EngineError)
        refused = asked.hidden or isinstance(error, Denied | TooManyAttempts) or by_status
        if not (is_change or refused or self._settings.audit == "all"):
            return
        outcome = Outcome.DONE if error is None else Outcome.REFUSED if refused else Outcome.FAILED
        if error is not None and self._is_flood():
            return
        word = "" if error is None else _short(word_of(error))
        for one in (asked, *asked.others):
            written = self._put(one, operation, status, outcome, word, request_id)
        if is_change and error is None and self._task is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    await written.wait()

    def refused(
        self,
        peer: str,
        by: Principal,
        verb: Verb,
        queue: str,
        operation: str,
        status: int,
        error: Denied,
        request_id: str,
    ) -> None:
        """As `begin` and `end` of a request that no task serves, and that was refused for who
        asked. Returns at once.
        """
        if not self._is_flood():
            self._put(
                Asked(peer, by.id, by.key_id, verb, queue),
                operation,
                status,
                Outcome.REFUSED,
                _short(word_of(error)),
                request_id,
            )

    def _is_flood(self) -> bool:
        """Counts a failed request; whether it is one too many within this second."""
        now = monotonic()
        if now - self._second >= 1.0:
            self._second, self._failures = now, 0
        self._failures += 1
        if self._failures <= FAILURES_A_SECOND:
            return False
        self._suppressed += 1
        self._counters.count("audit_suppressed_total")
        return True

    def _put(
        self, asked: Asked, operation: str, status: int, outcome: Outcome, error: str, request_id: str
    ) -> asyncio.Event:
        self._number += 1
        suppressed, self._suppressed = self._suppressed, 0
        record = AuditRecord(
            at_ms=now_ms(),
            worker=self._worker,
            number=self._number,
            principal=_short(asked.principal),
            key_id=_short(asked.key_id),
            peer=_short(asked.peer),
            operation=_short(operation),
            verb=asked.verb,
            queue=_short(asked.queue),
            tag=_short(asked.tag),
            subject=_short(asked.subject),
            outcome=outcome,
            status=status,
            error=error,
            request_id=_short(request_id),
            suppressed=suppressed,
        )
        written = asyncio.Event()
        self._left.append((encode(record), written))
        if len(self._left) > KEPT:
            self._left.popleft()
            self._counters.count("audit_records_dropped_total")
        self._added.set()
        return written

    def _note_suppressed(self) -> None:
        """Tells how many failures were not written down, when no record after them has."""
        if self._suppressed:
            self._put(Asked(""), "", 0, Outcome.REFUSED, "suppressed", "")

    async def _serve(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._added.wait()
            self._added.clear()
            if monotonic() - self._second >= 1.0:
                self._note_suppressed()
            while self._left:
                if not await self._write():
                    await asyncio.sleep(AGAIN_S)

    async def _write(self) -> bool:
        """Appends the oldest records; whether Kafka has them all."""
        some = [self._left[at] for at in range(min(AT_A_TIME, len(self._left)))]
        done = await self._log.append_many(self._topic, 0, [value for value, _ in some])
        failed = next((one for one in done if isinstance(one, Exception)), None)
        if failed is not None:
            logger.warning("action=audit waiting=%d error=%s", len(self._left), failed)
            return False
        for value, written in some:
            if self._left and self._left[0][0] is value:  # else it was dropped meanwhile
                self._left.popleft()
            if written is not None:
                written.set()
        return True


def _short(text: str) -> str:
    return text if len(text) <= CHARACTERS else text[:CHARACTERS]
