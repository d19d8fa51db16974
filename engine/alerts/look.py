"""One look at a queue: what the values of a minute change of its record.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from engine.rules.alerts import AlertState, step
from schemas.records.watching import AlertEvent, AlertPolicy, PolicyState, WatchRecord
from schemas.vocabulary import Telling

# Id of a policy -> how many values in a row were low enough to clear it.
Calm = dict[str, int]


def look(record: WatchRecord, values: Mapping[str, float | None], at_ms: int, calm: Mapping[str, int]) -> tuple[WatchRecord, Calm]:
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
        after = step(AlertState(known.firing, known.since_ms, calm.get(policy.id, 0), known.told_at_ms), value, policy.threshold, at_ms)
        left[policy.id] = after.state.calm
        if after.change is not None:
            states[policy.id] = PolicyState(policy.id, after.state.firing, after.state.since_ms, after.state.told_at_ms)
            events.append(_event(f"{record.incarnation}-{policy.id}-{at_ms}", policy, after.change, value or 0.0, at_ms, tell=after.tell))
    ids = {policy.id for policy in record.policies}
    kept = [state for state in states.values() if state.id in ids]
    return replace(record, states=kept, events=events), {policy: count for policy, count in left.items() if policy in ids}


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
