"""When an alert policy fires and clears: one look a minute, and what it changes of a queue's
record.

It fires with the first value at its threshold or above, and clears when CALM values in a row are
below CLEARS of it, so a value at the edge does not go back and forth. Who was told that it fires is
told again after SILENCE_MS, not before. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InvalidValue
from engine.rules.limits import check_asked
from schemas.records.watching import AlertEvent, AlertPolicy, PolicyState, WatchRecord
from schemas.vocabulary import AlertChange, Measurement, Subject, Telling

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
            raise InvalidValue(
                f"{field} must be one of {', '.join(words)}, given {given[:100]!r}",
                field=field,
                limit=words,
                given=given,
            )
    check_asked("threshold", threshold)
    if subject == Subject.QUEUE_MESSAGE_NUMBER and measurement != Measurement.COUNT:
        raise InvalidValue(
            f"{subject} has a {Measurement.COUNT}, and no latency",
            field="measurement",
            limit=Measurement.COUNT,
            given=measurement,
        )
    if tag is not None and subject in _OF_QUEUES_ONLY:
        raise InvalidValue(
            f"{subject} is watched for the queue as a whole, and not for a tag", field="subject", given=subject
        )


# Id of a policy -> how many values in a row were low enough to clear it.
Calm = dict[str, int]


def look(
    record: WatchRecord, values: Mapping[str, float | None], at_ms: int, calm: Mapping[str, int]
) -> tuple[WatchRecord, Calm]:
    """The record after the minute that ended at `at_ms`, and the values in a row that were low.

    A policy without a value stays as it is; so does one that a later minute has changed already, or
    that was made later: who takes over looks at the last minutes once more.
    """
    states = {state.id: state for state in record.states}
    events, left = list(record.events), dict(calm)
    for policy in record.policies:
        known = states.get(policy.id) or PolicyState(policy.id, False, 0, 0)
        if policy.id not in values or at_ms <= max(known.since_ms, known.told_at_ms, policy.added_at_ms):
            continue
        value = values[policy.id]
        after = step(
            AlertState(known.firing, known.since_ms, calm.get(policy.id, 0), known.told_at_ms),
            value,
            policy.threshold,
            at_ms,
        )
        left[policy.id] = after.state.calm
        if after.change is not None:
            states[policy.id] = PolicyState(policy.id, after.state.firing, after.state.since_ms, after.state.told_at_ms)
            events.append(
                _event(
                    f"{record.incarnation}-{policy.id}-{at_ms}",
                    policy,
                    after.change,
                    value or 0.0,
                    at_ms,
                    tell=after.tell,
                )
            )
    ids = {policy.id for policy in record.policies}
    kept = [state for state in states.values() if state.id in ids]
    return replace(record, states=kept, events=events), {
        policy: count for policy, count in left.items() if policy in ids
    }


def _event(id: str, policy: AlertPolicy, change: str, value: float, at_ms: int, *, tell: bool) -> AlertEvent:
    return AlertEvent(
        id=id,
        at_ms=at_ms,
        change=str(change),
        told=Telling.PENDING.value if tell else Telling.SILENT.value,
        tag=policy.tag,
        subject=policy.subject,
        measurement=policy.measurement,
        threshold=policy.threshold,
        value=value,
    )
