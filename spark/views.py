"""The views of the log, one line each, for notebooks and programs of your own.

Each is a frame of `spark.frames.columns`, and reads only the topics of the queues and the offsets
of the time that it is asked for, when it is asked for rows. `queue` is a name, several, or None for
all; `since` <= time < `until`, each a datetime (UTC when it has no zone), ISO 8601, epoch
milliseconds, or None for no bound. `log` None is the Kafka that LEASEWAY_KAFKA_BOOTSTRAP,
LEASEWAY_KAFKA_CONFIG and LEASEWAY_TOPIC_PREFIX name. All raise BadOption for what is no time, and
Py4JJavaError when Kafka does not answer.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from schemas.topics import queue_topics
from schemas.vocabulary import LATE_MS, LOG_TIME_MARGIN_MS
from spark.frames.decode import messages_of
from spark.frames.log import Log, epoch_ms, log_of_environment, moment
from spark.frames.questions import AFTER_MS, BEFORE_MS
from spark.frames.source import Span, all_queues, some_queues, stream
from spark.frames.tables import Tables, with_queues

Queue: TypeAlias = str | Collection[str] | None
Time: TypeAlias = datetime | str | int | None


class _Asked:
    """What is asked of a view: of which queues, in which time."""

    def __init__(self, session: SparkSession, log: Log | None, queue: Queue, since: Time, until: Time) -> None:
        self._session = session
        self.log = log or log_of_environment()
        self.names = [queue] if isinstance(queue, str) else None if queue is None else sorted(queue)
        self._span = Span(_ms(since), _ms(until))

    def tables(self, before_ms: int, after_ms: int) -> Tables:
        """The tables of the queues, so much wider than the time."""
        return Tables(self._session, self.log, self._span.padded(before_ms, after_ms), self.names)

    def whole(self) -> Tables:
        """The tables of the queues without a time."""
        return Tables(self._session, self.log, names=self.names)

    def about(self) -> str | None:
        """The condition in SQL of the queues; None = all."""
        if self.names is None:
            return None
        quoted = ", ".join("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in self.names)
        return f"queue IN ({quoted})" if self.names else "false"

    def rows(self, frame: DataFrame, time: str | None) -> DataFrame:
        """The rows of the queues and the time."""
        about = self.about()
        some = frame if about is None else frame.where(about)
        return some if time is None else Tables(self._session, self.log, self._span).within(some, time)


def messages(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """MESSAGES that were sent in the time."""
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(BEFORE_MS, AFTER_MS).messages(), "sent_at")


def message_stream(
    session: SparkSession, queue: Queue = None, *, log: Log | None = None, most_records: int = 200_000
) -> DataFrame:
    """MESSAGES as a stream, from the oldest on, at most `most_records` a micro-batch. Atomic
    batches are not judged (`status` is `shown` or `undecodable`), and the settings of queues are
    those of now.
    """
    asked = _Asked(session, log, queue, None, None)
    topics = all_queues(asked.log) if asked.names is None else some_queues(asked.log, asked.names)
    records = stream(session, asked.log, topics, most_records)
    return with_queues(messages_of(records, queue_topics(asked.log.prefix)), asked.whole().queues())


def deliveries(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """DELIVERIES of messages that were sent in the time, as of now; without a time also of messages
    that Kafka has no more.
    """
    asked = _Asked(session, log, queue, since, until)
    told = asked.whole().journal(about=asked.about())
    found = asked.whole().deliveries(told, asked.tables(0, AFTER_MS).sent())
    return asked.rows(found, None if since is None and until is None else "sent_at")


def dead_letters(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """DEAD_LETTERS that came into these dead-letter queues in the time; what became of them as of
    now.
    """
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(0, AFTER_MS).dead_letters(asked.whole().journal()), "dead_at")


def lives(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """LIVES of messages that were sent in the time; what became of them as of now."""
    asked = _Asked(session, log, queue, since, until)
    told = asked.whole().journal(about=asked.about())
    return asked.rows(asked.tables(BEFORE_MS, AFTER_MS).lives(told), "sent_at")


def journal(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """JOURNAL that was appended in the time (`logged_at`)."""
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(LOG_TIME_MARGIN_MS, 0).journal(about=asked.about()), "logged_at")


def meters(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """METERS of minutes that began in the time."""
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(LOG_TIME_MARGIN_MS, LATE_MS).meters(), "minute")


def stale_handles(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """STALE_HANDLES of minutes that began in the time."""
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(LOG_TIME_MARGIN_MS, LATE_MS).stale_handles(), "minute")


def requests(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """REQUESTS of minutes that began in the time."""
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(LOG_TIME_MARGIN_MS, LATE_MS).requests(), "minute")


def audit(
    session: SparkSession, queue: Queue = None, *, since: Time = None, until: Time = None, log: Log | None = None
) -> DataFrame:
    """AUDIT of what was answered in the time."""
    asked = _Asked(session, log, queue, since, until)
    return asked.rows(asked.tables(LOG_TIME_MARGIN_MS, LATE_MS).audit(), "at")


def queues(session: SparkSession, queue: Queue = None, *, log: Log | None = None) -> DataFrame:
    """QUEUES as of now."""
    asked = _Asked(session, log, queue, None, None)
    return asked.rows(asked.whole().queues(), None)


def _ms(time: Time) -> int | None:
    if time is None:
        return None
    return epoch_ms(moment(time.isoformat() if isinstance(time, datetime) else str(time)))
