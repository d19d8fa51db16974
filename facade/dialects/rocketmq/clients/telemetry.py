"""Telemetry: the stream on which a client says what it is, and hears its settings."""

from __future__ import annotations

import contextlib
from typing import Final

from engine.errors import EngineError, NotFound
from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.clients.producers import MOST_TOPICS
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.groups import attempts_of, subscribed
from facade.dialects.rocketmq.queues.kinds import MOST_BODY_BYTES, body_bytes, types_of
from facade.dialects.rocketmq.queues.names import group_of, record_of, topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, ok, status_of
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, MessageType
from schemas.records import QueueRecord

RECEIVE_BATCH: Final = 32
LONG_POLL_S: Final = 20
_SEND_ATTEMPTS: Final = 3
_MOST_TOPICS: Final = 200

# Seconds before each retry (reference/rocketmq.md 2.2). A client takes the last one for all others.
SOFA_RETRIES: Final = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
ROCKETMQ_RETRIES: Final = (1, 5, *SOFA_RETRIES)
ORDERED_RETRIES: Final = (1,)  # of a FIFO topic: the group of the message waits for it


async def answered(call: Call, clients: Clients) -> pb.TelemetryCommand | None:
    """What the client hears of what it has said; None = nothing. Raises RocketError for settings
    that are none.
    """
    given: pb.TelemetryCommand = call.body
    clients.renewals.heard(call.by, call.client_id)
    if not given.HasField("settings"):
        return None
    settings = pb.Settings()
    settings.CopyFrom(given.settings)
    settings.metric.CopyFrom(pb.Metric(on=False))
    if settings.HasField("publishing"):
        records = await _published(call, settings.publishing)
        _tell_producer(settings, [record for _, record in records])
        asked = {record.name: topic for topic, record in records if MessageType.TRANSACTION in types_of(record)}
        clients.producers.publishes(call.by, call.client_id, asked)
    elif settings.HasField("subscription"):
        try:
            await _tell_consumer(call, settings)
        except Exception as error:
            return pb.TelemetryCommand(status=status_of(error))
    else:
        raise RocketError(Code.BAD_REQUEST, "the settings have neither publishing nor subscription")
    return pb.TelemetryCommand(status=ok(), settings=settings)


async def _published(call: Call, publishing: pb.Publishing) -> list[tuple[str, QueueRecord]]:
    """Returns the topics that a producer publishes to and that are there, with their queues."""
    found = []
    for resource in publishing.topics[:MOST_TOPICS]:
        with contextlib.suppress(EngineError, RocketError):
            topic = topic_of(resource)
            found.append((topic, await record_of(call.engine, call.by, topic)))
    return found


def _tell_producer(settings: pb.Settings, records: list[QueueRecord]) -> None:
    """A client has one bound of bodies for all of its topics, which each of them keeps."""
    settings.publishing.max_body_size = min(map(body_bytes, records), default=MOST_BODY_BYTES)
    settings.publishing.validate_message_type = True
    policy = pb.RetryPolicy(max_attempts=_SEND_ATTEMPTS)
    policy.exponential_backoff.initial.FromMilliseconds(10)
    policy.exponential_backoff.max.FromMilliseconds(1000)
    policy.exponential_backoff.multiplier = 2
    settings.backoff_policy.CopyFrom(policy)


async def _tell_consumer(call: Call, settings: pb.Settings) -> None:
    """Subscribes to the topics that are there. Raises RocketError, EngineError."""
    subscription = settings.subscription
    group = group_of(subscription.group)
    if len(subscription.subscriptions) > _MOST_TOPICS:
        raise RocketError(Code.BAD_REQUEST, f"a client subscribes to {_MOST_TOPICS} topics at most")
    records: list[QueueRecord] = []
    for entry in subscription.subscriptions:
        try:
            record = await record_of(call.engine, call.by, topic_of(entry.topic))
        except NotFound:
            continue  # the route of the topic says so
        await subscribed(call, record, group, entry.expression)
        records.append(record)
    subscription.fifo = any(record.fifo for record in records)
    subscription.receive_batch_size = RECEIVE_BATCH
    subscription.long_polling_timeout.seconds = LONG_POLL_S
    attempts = [attempts_of(call, record, group) for record in records] or [call.common.settings.rocketmq_max_attempts]
    policy = pb.RetryPolicy(max_attempts=min(attempts))
    for seconds in _retries(call, fifo=subscription.fifo):
        policy.customized_backoff.next.add().seconds = seconds
    settings.backoff_policy.CopyFrom(policy)


def _retries(call: Call, *, fifo: bool) -> tuple[int, ...]:
    if fifo:
        return ORDERED_RETRIES
    return SOFA_RETRIES if call.common.settings.rocketmq_retries == "sofa" else ROCKETMQ_RETRIES
