"""Transactional messages: half messages, EndTransaction, and the question to a producer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from facade.dialects.rocketmq.clients.clients import Clients
from facade.dialects.rocketmq.messages.receive import duration_ms, shown_message
from facade.dialects.rocketmq.queues.call import Call
from facade.dialects.rocketmq.queues.names import topic_of
from facade.dialects.rocketmq.wire import rocketmq_pb2 as pb
from facade.dialects.rocketmq.wire.errors import RocketError, ok
from facade.dialects.rocketmq.wire.rocketmq_pb2 import Code, MessageType, TransactionResolution

if TYPE_CHECKING:
    from engine.shapes import Check, SendEntry
    from schemas.records import QueueRecord

IMMUNITY_PROPERTIES: Final = ("CHECK_IMMUNITY_TIME_IN_SECONDS", "CheckImmunityTimeInSeconds")  # RocketMQ's, SOFAStack's
_MOST_IMMUNITY_MS: Final = 3_600_000
_ID_CHARACTERS: Final = 128


async def prepared(
    call: Call, clients: Clients, record: QueueRecord, topic: str, given: pb.Message, entry: SendEntry
) -> pb.SendMessageResponse:
    """Stores a half message, which nobody sees until it is committed. Its producers are those of
    the topic.
    """
    immunity_ms = _immunity_ms(given)
    clients.producers.publishes(call.by, call.client_id, {record.name: topic})
    half = await call.engine.transactions.prepare(call.by, record.name, record.name, [entry], immunity_ms)
    result = pb.SendResultEntry(status=ok(), message_id=given.system_properties.message_id, transaction_id=half.id)
    return pb.SendMessageResponse(status=ok(), entries=[result])


def _immunity_ms(given: pb.Message) -> int | None:
    """How long nobody is asked about the message; None = it does not say. Raises RocketError."""
    properties = given.system_properties
    if properties.HasField("orphaned_transaction_recovery_duration"):
        immunity_ms = duration_ms(properties.orphaned_transaction_recovery_duration)
    elif (name := next((one for one in IMMUNITY_PROPERTIES if one in given.user_properties), None)) is not None:
        text = given.user_properties[name]
        immunity_ms = int(text) * 1000 if text.isascii() and text.isdigit() and len(text) < 10 else -1
    else:
        return None
    if not 0 <= immunity_ms <= _MOST_IMMUNITY_MS:
        raise RocketError(
            Code.BAD_REQUEST, f"a producer can be asked after 0 to {_MOST_IMMUNITY_MS // 1000} s, given another time"
        )
    return immunity_ms


async def end_transaction(call: Call, clients: Clients) -> pb.EndTransactionResponse:
    """Commits or rolls back, by the producer itself or since it was asked. UNSPECIFIED = it is not
    known yet. Both may be repeated; the second of two that differ is refused.
    """
    given: pb.EndTransactionRequest = call.body
    topic_of(given.topic)
    transaction = given.transaction_id
    if not transaction or len(transaction) > _ID_CHARACTERS:
        raise RocketError(Code.INVALID_TRANSACTION_ID, f"a transaction id has 1 to {_ID_CHARACTERS} characters")
    if given.resolution == TransactionResolution.COMMIT:
        await call.engine.transactions.commit(call.by, transaction)
    elif given.resolution == TransactionResolution.ROLLBACK:
        await call.engine.transactions.rollback(call.by, transaction)
    else:
        await call.engine.transactions.unknown(call.by, transaction)
    return pb.EndTransactionResponse(status=ok())


def question(topic: str, check: Check, secret: str) -> pb.TelemetryCommand:
    """What asks a producer; a transaction of several messages, which another dialect has prepared,
    is shown by its first.
    """
    message = shown_message(topic, check.messages[0], check.transaction.id, secret)
    message.system_properties.message_type = MessageType.TRANSACTION
    if not message.system_properties.HasField("born_timestamp"):
        message.system_properties.born_timestamp.FromMilliseconds(check.transaction.prepared_at_ms)
    command = pb.RecoverOrphanedTransactionCommand(message=message, transaction_id=check.transaction.id)
    return pb.TelemetryCommand(recover_orphaned_transaction_command=command)
