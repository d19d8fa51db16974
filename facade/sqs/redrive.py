"""RedrivePolicy and RedriveAllowPolicy: SQS's JSON texts <-> the engine's settings.

Neighbours: `settings`. This module must not know requests or the engine's verbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from engine.verbs import ANY
from facade.sqs.errors import invalid
from facade.sqs.limits import RECEIVE_COUNT, SOURCE_QUEUES
from facade.sqs.names import Place, name_of_arn
from schemas.records import RedrivePolicy

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


def policy_of(text: str) -> RedrivePolicy:
    """The policy in a RedrivePolicy attribute. Raises SqsError."""
    parts = json_object(text)
    if parts is None or not {"deadLetterTargetArn", "maxReceiveCount"} <= parts.keys():
        raise invalid(REDRIVE_POLICY, text, "Redrive policy is a JSON object with deadLetterTargetArn and maxReceiveCount.")
    target, count = name_of_arn(str(parts["deadLetterTargetArn"])), str(parts["maxReceiveCount"])
    if target is None:
        raise invalid(REDRIVE_POLICY, text, "Invalid value for deadLetterTargetArn.")
    if not (count.isascii() and count.isdigit() and len(count) <= 4 and RECEIVE_COUNT[0] <= int(count) <= RECEIVE_COUNT[1]):
        raise invalid(REDRIVE_POLICY, text, "Invalid value for maxReceiveCount: it must be 1 to 1000.")
    return RedrivePolicy(target, int(count))


def policy_text(policy: RedrivePolicy | None, place: Place) -> str | None:
    """The RedrivePolicy attribute of a queue; None = it has none."""
    if policy is None:
        return None
    parts = {"deadLetterTargetArn": place.arn(policy.dead_letter_queue), "maxReceiveCount": policy.max_receive_count}
    return msgspec.json.encode(parts).decode()


def sources_of(text: str) -> list[str]:
    """The queues that a RedriveAllowPolicy attribute lets in; an empty text lets all in. Raises SqsError."""
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
    names = [name_of_arn(str(arn)) for arn in arns]
    if None in names:
        raise invalid(REDRIVE_ALLOW_POLICY, text, "sourceQueueArns has an ARN that is not one of SQS.")
    return [name for name in names if name is not None]


def sources_text(sources: Sequence[str], place: Place) -> str | None:
    """The RedriveAllowPolicy attribute that lets `sources` in; None = all, as if there was no such attribute."""
    if ANY in sources:
        return None
    if not sources:
        return '{"redrivePermission":"denyAll"}'
    parts = {"redrivePermission": "byQueue", "sourceQueueArns": [place.arn(name) for name in sources]}
    return msgspec.json.encode(parts).decode()
