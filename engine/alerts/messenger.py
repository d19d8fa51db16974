"""Tells owners of queues what has happened: to their webhook, and to their address by mail.

An event is told at least once as long as a worker lives, and TRIES times at most to each. It is
noted as told afterwards, so a worker that dies or stops in between leaves it to the next one, which
tells it again: each message has the id of its event.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from engine.alerts.mail import Mail
from engine.alerts.text import alert_text, payload, statistics_text
from engine.alerts.watches import Watches
from engine.alerts.webhook import NotDeliveredError, Webhook
from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.meters.statistics import Statistics
from engine.rules.queue import Queue
from runtime.background import Background
from runtime.counters import Counters
from schemas.records import UserRecord
from schemas.records.watching import AlertEvent, WatchRecord
from schemas.vocabulary import Telling

logger = logging.getLogger(__name__)

PAUSES_S = (0.0, 2.0, 8.0)
TRIES = len(PAUSES_S)
# Messages under way, in all and of the queues of one owner, whose webhook may be slow for ever.
AT_A_TIME = 64
OF_AN_OWNER = 4

Channel = Callable[[], Awaitable[str]]


class Messenger:
    """Tells what is pending. For the worker that judges; any number of queues at once."""

    def __init__(
        self, catalog: Catalog, watches: Watches, statistics: Statistics, webhook: Webhook, mail: Mail, counters: Counters
    ) -> None:
        self._catalog = catalog
        self._watches = watches
        self._statistics = statistics
        self._webhook = webhook
        self._mail = mail
        self._counters = counters
        self._telling: set[str] = set()
        # What became of events that could not be noted yet: they are not told again.
        self._outcomes: dict[str, tuple[str, str]] = {}
        self._of_owner: Counter[str] = Counter()
        self._background = Background()

    async def stop(self) -> None:
        """Ends all tries; what was not told stays pending."""
        await self._background.stop()

    def tell_pending(self, queue: Queue, record: WatchRecord, may_go_on: Callable[[], bool]) -> None:
        """Begins to tell what is pending of a queue. `may_go_on` is asked before each try."""
        for event in record.events:
            if len(self._telling) >= AT_A_TIME or self._of_owner[queue.record.owner] >= OF_AN_OWNER:
                return  # asked again soon
            if event.told == Telling.PENDING and event.id not in self._telling:
                self._telling.add(event.id)
                self._of_owner[queue.record.owner] += 1
                self._background.start(self._tell(queue, event, may_go_on), "tell_alert")

    async def _tell(self, queue: Queue, event: AlertEvent, may_go_on: Callable[[], bool]) -> None:
        try:
            outcome = self._outcomes.get(event.id) or await self._outcome(queue, event, may_go_on)
            if outcome is None:
                return
            self._outcomes[event.id] = outcome
            told, note = outcome
            await self._watches.edit(queue, lambda record: _noted(record, event.id, told, note))
            del self._outcomes[event.id]
        except EngineError as error:
            logger.warning("action=tell_alert queue=%s event=%s error=%s", queue.name, event.id, error)
            await asyncio.sleep(1)
        finally:
            self._telling.discard(event.id)
            self._of_owner -= Counter((queue.record.owner,))

    async def _outcome(self, queue: Queue, event: AlertEvent, may_go_on: Callable[[], bool]) -> tuple[str, str] | None:
        """What became of an event, and a note; None = it is no longer for us to tell. Raises
        LogUnavailable: the day's numbers can't be read.
        """
        channels = await self._channels(queue, event)
        if not channels:
            return Telling.NOBODY, ""
        notes: dict[str, str] = {}
        taken = False
        for pause_s in PAUSES_S:
            await asyncio.sleep(pause_s)
            if not may_go_on():
                return None
            results = await asyncio.gather(*(channels[name]() for name in channels), return_exceptions=True)
            for name, result in zip(list(channels), results, strict=True):
                notes[name] = str(result)
                if not isinstance(result, BaseException):
                    taken = True
                    del channels[name]
                elif not isinstance(result, NotDeliveredError):
                    raise result
            if not channels:
                break
        if taken:
            self._counters.count("alerts_told_total")
        else:
            self._counters.count("alerts_not_told_total")
        note = "; ".join(notes.values())
        logger.info("action=tell_alert queue=%s event=%s told=%s note=%s", queue.name, event.id, taken, note)
        return (Telling.TOLD if taken else Telling.FAILED), note[:500]

    async def _channels(self, queue: Queue, event: AlertEvent) -> dict[str, Channel]:
        """The ways to tell the owner."""
        owner = queue.record.owner
        user = self._catalog.users.get(owner) or UserRecord(owner, 0)
        channels: dict[str, Channel] = {}
        if user.webhook and not event.day:
            body = msgspec.json.encode(payload(queue.name, owner, event))
            channels["webhook"] = lambda: self._webhook.post(user.webhook, owner, event.id, body)
        if user.email and self._mail.is_on:
            subject, text = alert_text(queue.name, event)
            if event.day:
                subject, text = statistics_text(await self._statistics.day(queue, event.day))
            channels["mail"] = lambda: self._mail.send(user.email, subject, text)
        return channels


def _noted(record: WatchRecord, id: str, told: str, note: str) -> WatchRecord:
    events = [replace(event, told=str(told), note=note) if event.id == id else event for event in record.events]
    return replace(record, events=events)
