"""Tells owners of queues what has happened: to their webhook, and to their address by mail.

An event is told at least once as long as a worker lives, and TRIES times at most to each. It is
noted as told afterwards, so a worker that dies or stops in between leaves it to the next one, which
tells it again: each message has the id of its event. A webhook gets JSON, signed with a secret that
its user and the service know.
"""

from __future__ import annotations

import asyncio
import logging
import smtplib
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

import msgspec
from msgspec.structs import replace

from engine.alerts.text import alert_text, payload, statistics_text
from engine.alerts.watches import Watches
from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.meters.statistics import Statistics
from engine.outgoing.post import OutgoingError, post, signed, webhook_secret
from engine.rules.queue import Queue
from engine.settings import EngineSettings
from runtime.background import Background
from runtime.clock import now_ms
from runtime.counters import Counters
from schemas.records import UserRecord
from schemas.records.watching import AlertEvent, WatchRecord
from schemas.vocabulary import Telling


class NotDeliveredError(Exception):
    """Nothing has taken a message; the text says why."""


class Webhook:
    """Posts of this worker. `private` = loopback and private addresses may be reached."""

    def __init__(self, secret: str, *, private: bool) -> None:
        self._secret = secret
        self._private = private

    async def post(self, url: str, user: str, event: str, body: bytes) -> str:
        """Sends one event; what has taken it. Raises NotDeliveredError after at most 5 s."""
        headers = {**signed(webhook_secret(self._secret, user), now_ms() // 1000, body), "leaseway-event": event}
        try:
            status, _ = await post(url, body, headers, private=self._private)
        except OutgoingError as error:
            raise NotDeliveredError(f"the webhook could not be reached: {error}") from None
        if not 200 <= status < 300:
            raise NotDeliveredError(f"the webhook answered {status}")
        return f"webhook {status}"


# Of each step of the exchange.
TIMEOUT_S = 10.0
MAILS_AT_A_TIME = 4


class Mail:
    """Mail of this worker; smtplib waits in threads of its own: a server that stands still must not
    keep a rebuild, which uses those of the loop, waiting.
    """

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(MAILS_AT_A_TIME, "mail")

    @property
    def is_on(self) -> bool:
        """Whether there is a server to send through."""
        return bool(self._settings.smtp_host)

    async def send(self, to: str, subject: str, text: str) -> str:
        """Sends a message; what has taken it. Raises NotDeliveredError."""
        try:
            message = EmailMessage()
            message["From"], message["To"], message["Subject"] = self._settings.smtp_from, to, subject
            message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="leaseway.invalid")
            message["Auto-Submitted"] = "auto-generated"
            message.set_content(text)
            await asyncio.get_running_loop().run_in_executor(self._threads, self._send, message)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise NotDeliveredError(f"the mail server did not take it: {_reason(error)}") from error
        return "mail"

    def _send(self, message: EmailMessage) -> None:
        s = self._settings
        if s.smtp_tls == "tls":
            with smtplib.SMTP_SSL(
                s.smtp_host, s.smtp_port, timeout=TIMEOUT_S, context=ssl.create_default_context()
            ) as server:
                self._give(server, message)
            return
        with smtplib.SMTP(s.smtp_host, s.smtp_port, timeout=TIMEOUT_S) as server:
            if s.smtp_tls == "starttls":
                server.starttls(context=ssl.create_default_context())
            self._give(server, message)

    def _give(self, server: smtplib.SMTP, message: EmailMessage) -> None:
        if self._settings.smtp_user:
            server.login(self._settings.smtp_user, self._settings.smtp_password)
        server.send_message(message)


def _reason(error: OSError | smtplib.SMTPException | ValueError) -> str:
    """Returns why, in words for the owner of a queue: a server's own text and the system's may name
    hosts and addresses of the network that the service is in.
    """
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = sorted({code for code, _ in error.recipients.values()})
        return f"it refused the recipient ({', '.join(map(str, codes))})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"it answered {error.smtp_code}"
    if isinstance(error, OSError) and not isinstance(error, smtplib.SMTPException):
        return "it could not be reached"
    return type(error).__name__


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
        self,
        catalog: Catalog,
        watches: Watches,
        statistics: Statistics,
        webhook: Webhook,
        mail: Mail,
        counters: Counters,
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
