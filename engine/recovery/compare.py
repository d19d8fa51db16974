"""One tag of a unit as Redis has it, compared with the journal folded up to the same entry. Pure
data, no clients.

Of an offset Redis says one of three things: open (in visible), over (taken and not open), to come
(at or above the cursor and not in ahead). The journal says settled (below the floor or among the
settled), touched (an open delivery), or nothing; then only the record can tell whether the tag
wanted the message: such offsets are handed on in `untouched` and `over`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec
from msgspec import Struct

from engine.journal.fold import TagState
from schemas.records import OpenDelivery
from schemas.vocabulary import SLOT_MS
from state.replies import TagDump

NOT_OPEN = "taken and not open: nobody will receive it"
NOT_SETTLED = "a message that nothing settled"
_FLAGS = ("", ", killed", ", exhausted", ", claimed", ", parked")


class Difference(Struct, frozen=True):
    """What Redis and Kafka do not agree on; `offset` None = it is about the tag of this partition
    as a whole.
    """

    queue: str
    tag: str
    partition: int
    offset: int | None
    redis: str
    kafka: str


@dataclass
class Findings:
    """Differences of one tag as (offset, Redis says, Kafka says), and the offsets whose records
    must be looked at.
    """

    found: list[tuple[int | None, str, str]] = field(default_factory=list)
    # Open in Redis and never delivered: offset -> next visible ms.
    untouched: dict[int, int] = field(default_factory=dict)
    # Taken and not open in Redis, and not in the journal: lost, unless the tag did not want it.
    over: set[int] = field(default_factory=set)

    def add(self, offset: int | None, redis: str, kafka: str) -> None:
        self.found.append((offset, redis, kafka))


def compare(cut: TagDump, history: TagState, start: int, log_start: int, log_end: int) -> Findings:
    """Compares. `start` is the first offset the tag sees; of [`log_start`, `log_end`) Kafka has
    records, asked before and after the cut.
    """
    findings = Findings()
    floor = history.raise_floor(start)
    if cut.cursor < 0:
        findings.add(None, "does not know the tag", "it is a tag of the queue")
        return findings
    _whole(cut, history, floor, log_end, findings)
    _deferred(cut, history, findings)
    _open(cut, history, findings)
    _settled(cut, history, max(cut.cursor, log_start), findings)
    _over(cut, history, range(max(floor, log_start), min(cut.cursor, log_end)), findings)
    for offset in sorted(cut.deliveries.keys() - cut.open.keys() - history.deliveries.keys()):
        findings.add(offset, f"a delivery without a message ({describe(cut.deliveries[offset])})", "not delivered")
    return findings


def _whole(cut: TagDump, history: TagState, floor: int, log_end: int, findings: Findings) -> None:
    if cut.cursor > log_end:
        findings.add(None, f"cursor {cut.cursor}", f"the log ends at {log_end}: messages to come would be passed over")
    if cut.totals != (told := history.totals()):
        findings.add(None, f"ever done: {cut.totals}", f"ever done: {told}")
    if cut.floor > floor:
        findings.add(None, f"floor {cut.floor}", f"floor {floor}")
    # What is open there and the journal knows was deferred, and then brought.
    below = [offset for offset in cut.open if offset < cut.floor and offset not in history.deliveries]
    if below:
        findings.add(min(below), f"open, below its own floor {cut.floor}", f"floor {floor}")


def _deferred(cut: TagDump, history: TagState, findings: Findings) -> None:
    known = history.deferred
    mark = f"{known.mark[0]}:{known.mark[1]}"
    if cut.mark != mark:
        findings.add(None, f"deferred messages are brought up to {cut.mark}", f"up to {mark}")
    # What the window has not taken again, after a rebuild, it does not count yet.
    taken = (due_ms for offset, due_ms in known.waiting().items() if offset < cut.cursor or offset in cut.ahead)
    counts = dict(known.slots + Counter(due_ms // SLOT_MS for due_ms in taken))
    if cut.slots != counts:
        findings.add(None, f"deferred, by slot: {cut.slots}", f"deferred, by slot: {counts}")
    for offset, slot in sorted(cut.excepted ^ known.excepted):
        here = "deferred no longer" if (offset, slot) in cut.excepted else "deferred"
        findings.add(offset, f"{here}, in slot {slot}", "the other of deferred and deferred no longer")


def _open(cut: TagDump, history: TagState, findings: Findings) -> None:
    """What Redis has open must not be settled, must be taken, and must have been delivered as the
    journal tells.
    """
    for offset in sorted(cut.open):
        at, here, there = cut.open[offset], cut.deliveries.get(offset), history.deliveries.get(offset)
        if there is not None and not there.count and not there.flag and not there.nonce:
            # Given back, and never delivered: Redis has nothing of it but when it is receivable.
            here = here or msgspec.structs.replace(there, time_ms=at)
        if (offset < history.floor and there is None) or offset in history.settled:
            findings.add(offset, f"open ({describe(here)})", "settled: it would be delivered again")
        elif offset >= cut.cursor and offset not in cut.ahead:
            findings.add(
                offset, f"open, but not taken: the cursor is {cut.cursor}", "one message: it would be loaded again"
            )
        elif here != there:
            findings.add(offset, f"open ({describe(here)})", f"open ({describe(there)})")
        elif here is None:
            findings.untouched[offset] = at
        elif here.time_ms != at:
            findings.add(offset, f"visible at {at}", f"open ({describe(there)})")


def _settled(cut: TagDump, history: TagState, cursor: int, findings: Findings) -> None:
    """What is settled must not come again: below the cursor, or in ahead."""
    again = "settled: it would be delivered again"
    for offset in sorted({offset for offset in history.settled if offset >= cursor} - cut.ahead - cut.open.keys()):
        findings.add(offset, f"not taken: the cursor is {cut.cursor}", again)
    coming = next((o for o in range(cursor, history.floor) if o not in cut.ahead and o not in cut.open), None)
    if coming is not None:
        findings.add(
            coming, f"not taken, nor what follows: the cursor is {cut.cursor}", f"{again}, as all below {history.floor}"
        )


def _over(cut: TagDump, history: TagState, passed: range, findings: Findings) -> None:
    """What is over must be settled, or unwanted; the records tell."""
    over = set(passed)
    over.update(offset for offset in cut.ahead if offset >= passed.start)
    over.difference_update(cut.open, history.settled, history.deferred.waiting())
    for offset in sorted(history.deliveries.keys() - cut.open.keys()):
        says = NOT_OPEN if offset < cut.cursor or offset in cut.ahead else f"not taken: the cursor is {cut.cursor}"
        findings.add(offset, says, f"open ({describe(history.deliveries[offset])})")
    findings.over = over - history.deliveries.keys()


def describe(delivery: OpenDelivery | None) -> str:
    """A delivery in words."""
    if delivery is None:
        return "never delivered"
    flag = _FLAGS[delivery.flag] if delivery.flag < len(_FLAGS) else ""
    holder = f"nonce {delivery.nonce}" if delivery.nonce else "given back"
    return f"{holder}, count {delivery.count}, first {delivery.first_received_at_ms}, until {delivery.time_ms}{flag}"
