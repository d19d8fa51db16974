"""When an alert policy fires and clears: one look a minute.

It fires with the first value at its threshold or above, and clears when CALM values in a row are
below CLEARS of it, so a value at the edge does not go back and forth. Who was told that it fires is
told again after SILENCE_MS, not before.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InvalidValue
from engine.rules.limits import check_asked
from schemas.vocabulary import AlertChange, Measurement, Subject

CLEARS: Final = 0.9
CALM: Final = 2
SILENCE_MS: Final = 3_600_000
MAX_POLICIES: Final = 20  # Of a queue, its tags included.
# A send is not received under a tag, so there is nothing to tell of a tag.
_OF_QUEUES_ONLY: Final = frozenset((Subject.SEND_REQUEST, Subject.SINGLE_SEND_REQUEST, Subject.BATCH_SEND_REQUEST))


class AlertState(Struct, frozen=True):
    """What is known of a policy. `calm` counts values in a row that were low enough; `told_at_ms`
    is when somebody was told that it fires, 0 = never.
    """

    firing: bool = False
    since_ms: int = 0
    calm: int = 0
    told_at_ms: int = 0


class Step(Struct, frozen=True):
    """The state after a look. `change` None = nothing to note; `tell` = to be delivered too."""

    state: AlertState
    change: AlertChange | None = None
    tell: bool = False


def step(state: AlertState, value: float | None, threshold: float, at_ms: int, silence_ms: int = SILENCE_MS) -> Step:
    """One look at `at_ms`; a value of None (nothing was measured) is a low one."""
    if not state.firing:
        return _step_idle(state, value, threshold, at_ms, silence_ms)
    low = value is None or value < threshold * CLEARS
    calm = state.calm + 1 if low else 0
    if calm >= CALM:
        told = state.told_at_ms >= state.since_ms
        return Step(replace(state, firing=False, since_ms=at_ms, calm=0), AlertChange.CLEARED, told)
    if not low and at_ms - state.told_at_ms >= silence_ms:
        return Step(replace(state, calm=0, told_at_ms=at_ms), AlertChange.GOES_ON, True)
    return Step(replace(state, calm=calm))


def _step_idle(state: AlertState, value: float | None, threshold: float, at_ms: int, silence_ms: int) -> Step:
    if value is None or value < threshold:
        return Step(state)
    tell = not state.told_at_ms or at_ms - state.told_at_ms >= silence_ms
    return Step(AlertState(True, at_ms, 0, at_ms if tell else state.told_at_ms), AlertChange.FIRED, tell)


def policy_id(tag: str, subject: str, measurement: str, threshold: float) -> str:
    """Two policies with one id are one."""
    return "a" + sha256(f"{tag}/{subject}/{measurement}/{threshold!r}".encode()).hexdigest()[:12]


def check_policy(tag: str | None, subject: str, measurement: str, threshold: float) -> None:
    """Raises InvalidValue for words that are none, for a number that is none, and for what can't be
    measured.
    """
    for field, words, given in (("subject", list(Subject), subject), ("measurement", list(Measurement), measurement)):
        if given not in words:
            raise InvalidValue(f"{field} must be one of {', '.join(words)}, given {given[:100]!r}", field=field, limit=words, given=given)
    check_asked("threshold", threshold)
    if subject == Subject.QUEUE_MESSAGE_NUMBER and measurement != Measurement.COUNT:
        raise InvalidValue(
            f"{subject} has a {Measurement.COUNT}, and no latency", field="measurement", limit=Measurement.COUNT, given=measurement
        )
    if tag is not None and subject in _OF_QUEUES_ONLY:
        raise InvalidValue(f"{subject} is watched for the queue as a whole, and not for a tag", field="subject", given=subject)
