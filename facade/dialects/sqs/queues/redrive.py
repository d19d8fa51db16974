"""RedrivePolicy and RedriveAllowPolicy: SQS's JSON texts <-> the engine's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from engine.errors import EngineError, QueueNotFound
from engine.rules.fifo import KINDS
from facade.dialects.sqs.queues.names import Place
from facade.dialects.sqs.wire.errors import invalid
from facade.dialects.sqs.wire.limits import RECEIVE_COUNT, SOURCE_QUEUES
from schemas.records.settings import ANY, RedrivePolicy

REDRIVE_POLICY: Final = "RedrivePolicy"
REDRIVE_ALLOW_POLICY: Final = "RedriveAllowPolicy"
ALLOW_ALL: Final = "allowAll"


def json_object(text: str) -> dict[str, Any] | None:
    """The object that a text is in JSON; None when it is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def policy_of(text: str, place: Place) -> RedrivePolicy:
    """The policy in a RedrivePolicy attribute. Raises SqsError."""
    parts = json_object(text)
    if parts is None:
        raise invalid(REDRIVE_POLICY, text, "Redrive policy is not a valid JSON map.")
    for needed in ("maxReceiveCount", "deadLetterTargetArn"):
        if needed not in parts:
            raise invalid(REDRIVE_POLICY, text, f"Redrive policy does not contain mandatory attribute: {needed}.")
    target, count = place.of_arn(str(parts["deadLetterTargetArn"])), str(parts["maxReceiveCount"])
    if target is None:
        raise invalid(REDRIVE_POLICY, text, "Invalid value for deadLetterTargetArn.")
    if not (
        count.isascii() and count.isdigit() and len(count) <= 4 and RECEIVE_COUNT[0] <= int(count) <= RECEIVE_COUNT[1]
    ):
        allowed = f"valid values are from {RECEIVE_COUNT[0]} to {RECEIVE_COUNT[1]} both inclusive."
        raise invalid(REDRIVE_POLICY, text, f"Invalid value for maxReceiveCount: {count[:100]}, {allowed}")
    return RedrivePolicy(target, int(count))


def refusal_of(error: EngineError) -> str:
    """Why the engine does not take a policy whose form is right."""
    if isinstance(error, QueueNotFound):
        return "Dead letter target does not exist."
    if error.limit in KINDS:
        return "Dead-letter queue must be same type of queue as the source.."  # AWS's own two full stops
    which = "source" if error.field == "queue" else "dead-letter"
    return f"The {which} queue must be {error.limit}."


def policy_text(policy: RedrivePolicy | None, place: Place) -> str | None:
    """The RedrivePolicy attribute of a queue; None = it has none."""
    if policy is None:
        return None
    parts = {"deadLetterTargetArn": place.arn(policy.dead_letter_queue), "maxReceiveCount": policy.max_receive_count}
    return msgspec.json.encode(parts).decode()


def sources_of(text: str, place: Place) -> list[str]:
    """The queues that a RedriveAllowPolicy attribute lets in; an empty text lets all in. Raises
    SqsError.
    """
    if not text:
        return [ANY]
    parts = json_object(text) or {}
    word, arns = parts.get("redrivePermission"), parts.get("sourceQueueArns")
    if word not in (ALLOW_ALL, "denyAll", "byQueue") or (arns is not None) != (word == "byQueue"):
        reason = "It is a JSON object with redrivePermission allowAll, denyAll, or byQueue and sourceQueueArns."
        raise invalid(REDRIVE_ALLOW_POLICY, text, reason)
    if word != "byQueue":
        return [ANY] if word == ALLOW_ALL else []
    if not isinstance(arns, list) or not 1 <= len(arns) <= SOURCE_QUEUES:
        raise invalid(REDRIVE_ALLOW_POLICY, text, f"sourceQueueArns has 1 to {SOURCE_QUEUES} ARNs.")
    names = [place.of_arn(str(arn)) for arn in arns]
    if None in names:
        raise invalid(REDRIVE_ALLOW_POLICY, text, "sourceQueueArns has an ARN that is not one of SQS.")
    return [name for name in names if name is not None]


def sources_text(sources: Sequence[str], place: Place) -> str | None:
    """The RedriveAllowPolicy attribute that lets `sources` in; None = all, as if there was no such
    attribute.
    """
    if ANY in sources:
        return None
    if not sources:
        return '{"redrivePermission":"denyAll"}'
    parts = {"redrivePermission": "byQueue", "sourceQueueArns": [place.arn(name) for name in sources]}
    return msgspec.json.encode(parts).decode()
