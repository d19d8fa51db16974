"""Kafka's errors as the engine's. Every KafkaError ends here; none leaves `engine.log`."""

from __future__ import annotations

import logging
import time

from confluent_kafka import KafkaError, KafkaException

from engine.errors import EngineError, LogUnavailable, MessageTooLarge, Overloaded

# The client's own codes, public though they start with an underscore; here alone, so that they have
# usual names elsewhere.
ALL_DOWN: int = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001
AUTHENTICATION: int = KafkaError._AUTHENTICATION  # noqa: SLF001
BROKER_GONE: int = KafkaError._DESTROY_BROKER  # noqa: SLF001
FATAL: int = KafkaError._FATAL  # noqa: SLF001
NO_LEADER: int = KafkaError._NOENT  # noqa: SLF001
NO_SUCH_OFFSET: int = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
PARTITION_EOF: int = KafkaError._PARTITION_EOF  # noqa: SLF001
QUEUE_FULL: int = KafkaError._QUEUE_FULL  # noqa: SLF001
RESOLVE: int = KafkaError._RESOLVE  # noqa: SLF001
STOPPED: int = KafkaError._DESTROY  # noqa: SLF001
PURGED: int = KafkaError._PURGE_QUEUE  # noqa: SLF001
TLS: int = KafkaError._SSL  # noqa: SLF001
TIMED_OUT: int = KafkaError._TIMED_OUT  # noqa: SLF001
TRANSPORT: int = KafkaError._TRANSPORT  # noqa: SLF001
UNKNOWN_PARTITION: int = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001
UNKNOWN_TOPIC: int = KafkaError._UNKNOWN_TOPIC  # noqa: SLF001
UNSUPPORTED: int = KafkaError._UNSUPPORTED_FEATURE  # noqa: SLF001
TOO_LARGE: int = KafkaError.MSG_SIZE_TOO_LARGE

_SPARSE_S = 30.0


class _Sparse(logging.Filter):
    """Lets one line of a kind through in 30 s: a broker that is away is reported by every client
    several times a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        # The client's logs are one format, "%s [%s] %s", whose first argument is the kind.
        kind = (
            str(record.args[0])
            if isinstance(record.args, tuple) and record.args
            else record.getMessage().split(" ", 1)[0]
        )
        now = time.monotonic()
        if now - self._last.get(kind, -_SPARSE_S) < _SPARSE_S:
            return False
        self._last[kind] = now
        return True


logger = logging.getLogger("engine.log")
client_logger = logging.getLogger("engine.log.client")
client_logger.addFilter(_Sparse())

# The broker or the client does not know the topic or partition. It was surely not written, so a
# repeat is safe.
UNKNOWN = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        UNKNOWN_TOPIC,
        UNKNOWN_PARTITION,
    }
)
# A partition that has just been made, or has just moved: soon over.
MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
# What a broker says that starts, that was fenced, or that a busy machine holds up: soon over.
_NOT_READY = frozenset(
    {
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NOT_CONTROLLER,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.OFFSET_NOT_AVAILABLE,
        NO_LEADER,
    }
)
# No answer, or none in time: of a broker that is away, that starts, or that waits for the CPU.
_AWAY = frozenset(
    {TIMED_OUT, ALL_DOWN, TRANSPORT, BROKER_GONE, RESOLVE, KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION}
)
_TOO_LARGE = frozenset({TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})

# What a broker says of an append, for the plane, which has these sets from here. MISSING: it may
# not know the topic, or not yet. REPEATED: the append may be sent again, after a look at who leads.
# REFUSED: the broker has written nothing. Each says so only in an answer that names no offset: a
# broker that stops leading before its replicas have what it wrote answers NOT_LEADER too, with the
# offset.
MISSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID})
REPEATED = MISSING | {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_ENOUGH_REPLICAS,
}
REFUSED = REPEATED | {
    *_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.INVALID_REQUIRED_ACKS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError.INVALID_REQUEST,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    KafkaError.POLICY_VIOLATION,
    KafkaError.INVALID_RECORD,
}


def engine_error(error: KafkaError) -> EngineError:
    """What the engine is told: Overloaded (client's queue is full), MessageTooLarge, else
    LogUnavailable.
    """
    if error.code() == QUEUE_FULL:
        return Overloaded("too many records wait for Kafka")
    if error.code() in _TOO_LARGE:
        return MessageTooLarge(f"Kafka refuses the record: {error.str()}")
    return unavailable(error, f"Kafka: {error.name()}: {error.str()}")


def unavailable(error: KafkaError, text: str) -> LogUnavailable:
    """LogUnavailable that says whether a repeat may help."""
    soon = error.retriable() or error.code() in MOVING | UNKNOWN | _NOT_READY
    return LogUnavailable(text, soon=soon, away=error.code() in _AWAY)


def error_of(fault: BaseException) -> KafkaError:
    """The KafkaError within a KafkaException. Raises `fault` itself if there is none."""
    if isinstance(fault, KafkaException) and fault.args and isinstance(fault.args[0], KafkaError):
        return fault.args[0]
    raise fault


def note(error: KafkaError) -> None:
    """Callback for errors of a client as a whole: they heal by themselves, and each request reports
    its own.
    """
    logger.debug("kafka client: %s", error)
