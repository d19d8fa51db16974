"""What the embedded Kafka lets programs of this machine do without a password: messages of queues,
and nothing that confers power.

Anybody may produce to and consume from queues and read the journal, the meters and the rates, with
any consumer group. Nobody but the service may read or write the control topic, snapshots, half
messages and the wheel, nor make or delete topics. Blocks; must not be called on a loop.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names are not marked as exported
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from engine.errors import LogUnavailable
from engine.log.kafka_errors import client_logger, error_of, unavailable
from schemas.topics import journal_topic, meter_topic, queue_topics, rates_topic

LOCAL = "User:ANONYMOUS"
_REQUEST_S = 30.0
_READ = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)


def rights(prefix: str) -> list[AclBinding]:
    """The ACLs of the listener for local tools."""
    queues = (queue_topics(prefix), ResourceType.TOPIC, ResourcePatternType.PREFIXED, (*_READ, AclOperation.WRITE))
    read = [(name, ResourceType.TOPIC, ResourcePatternType.LITERAL, _READ) for name in (f(prefix) for f in _READABLE)]
    groups = ("*", ResourceType.GROUP, ResourcePatternType.LITERAL, (AclOperation.READ, AclOperation.DESCRIBE))
    return [
        AclBinding(kind, name, pattern, LOCAL, "*", operation, AclPermissionType.ALLOW)
        for name, kind, pattern, operations in (queues, *read, groups)
        for operation in operations
    ]


_READABLE = (journal_topic, meter_topic, rates_topic)


def give_rights(options: Mapping[str, str], prefix: str) -> None:
    """Gives them, to programs that come without a password. A repeat is safe. Raises
    LogUnavailable.
    """
    _settle(_admin(options), lambda admin: admin.create_acls(rights(prefix)).values())


def _admin(options: Mapping[str, str]) -> AdminClient:
    return AdminClient({**options, "log_level": 4}, logger=client_logger)


def _settle(admin: AdminClient, ask: Any) -> None:
    futures: Iterable[concurrent.futures.Future[Any]] = list(ask(admin))
    concurrent.futures.wait(futures, timeout=_REQUEST_S)
    for future in futures:
        try:
            future.result(timeout=0)
        except KafkaException as fault:
            error = error_of(fault)
            raise unavailable(error, f"Kafka refuses what it is to be told at its start: {error.str()}") from fault
        except TimeoutError:
            raise LogUnavailable(f"Kafka did not answer within {_REQUEST_S:.0f} s") from None
