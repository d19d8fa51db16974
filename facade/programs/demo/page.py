"""The account as plain text for a terminal.

It must not decide whether they add up.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from facade.programs.demo.account import Check, Outcome, columns, dead_letters_of
from facade.programs.demo.flow import Duty

WIDTH = 100


def account_page(outcome: Outcome, verdicts: Sequence[Check]) -> str:
    """What went where, the dead letters with their reasons, the speeds, and the sums."""
    parts = [
        _section("What went where", _tags_table(outcome)),
        _section("Who did it", _consumers_table(outcome)),
        _section(_dead_letters_title(outcome), _dead(outcome)),
        _section("How fast", _speeds(outcome)),
        _section("Does it add up?", [f"{'yes' if check.holds else 'NO '}  {check.text}" for check in verdicts]),
    ]
    return "\n\n".join(parts)


def table(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Lines of aligned cells: the first `left` columns to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]

    def cell(at: int, text: str) -> str:
        return text.ljust(widths[at]) if at < left else text.rjust(widths[at])

    return ["  ".join(cell(at, text) for at, text in enumerate(row)).rstrip() for row in rows]


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _dead_letters_title(outcome: Outcome) -> str:
    reasons = ", ".join(sorted({dead_letter["origin"]["reason"] for dead_letter in outcome.dead_letters}))
    return f"Dead letters: {len(outcome.dead_letters):,} in {outcome.dead_letter_queue}" + (
        f" (reason: {reasons})" if reasons else ""
    )


def _tags_table(outcome: Outcome) -> list[str]:
    found = columns(outcome)

    def figures(name: str, of: str) -> list[str]:
        return [name, *(f"{getattr(column, of):,}" for column in found)]

    read = (
        f"{outcome.sent.read:,} rows read, {len(outcome.sent.rows):,} sent in {outcome.sent.batches} atomic batches "
        "of at most 100"
    )
    rows = [
        ["", *(f"tag {column.tag.name}" for column in found)],
        figures("sent to it", "matching"),
        figures("received a first time", "first"),
        figures("received again (retries)", "again"),
        figures("acked", "acked"),
        figures("dead-lettered", "dead"),
        figures("left in the queue", "backlog"),
    ]
    return [read, *table(rows)]


def _consumers_table(outcome: Outcome) -> list[str]:
    rows = [["consumer", "tag", "receives", "messages", "acked", "failed", "on failure"]]
    for duty, tally in outcome.tallies.items():
        counts = (tally.polls, tally.received, len(tally.acked), tally.failed)
        rows.append([duty.name, duty.tag, *(f"{count:,}" for count in counts), _habit(duty)])
    made = dict.fromkeys(duty.job.made() for duty in outcome.tallies)  # two consumers may share a job
    return [*table(rows, left=2), *(f"They made {text}." for text in made)]


def _habit(duty: Duty) -> str:
    return f"lease of {duty.lease_s:g} s runs out" if duty.back_off_s is None else f"released for {duty.back_off_s:g} s"


def _dead(outcome: Outcome) -> list[str]:
    """Per tag and kind of fault: how many, the airports' codes, and one of them in full."""
    lines: list[str] = []
    for column in columns(outcome):
        groups: dict[str, dict[str, str]] = {}
        for dead_letter in dead_letters_of(outcome, column.tag):
            sent_id = dead_letter["origin"]["original_id"]
            kind, detail = _fault(outcome, sent_id)
            row = outcome.sent.rows.get(sent_id, {"iata": "?", "name": "sent by somebody else"})
            groups.setdefault(kind, {})[row["iata"]] = f"{row['iata']} {row['name']}: {detail}"
        for kind, details in sorted(groups.items()):
            codes = textwrap.wrap(" ".join(sorted(details)), WIDTH - 8)
            lines += [f"tag {column.tag.name}: {len(details)} with {kind}", *(f"    {line}" for line in codes)]
            lines.append(f"    e.g. {details[min(details)]}")
    return lines or ["none"]


def _fault(outcome: Outcome, sent_id: str) -> tuple[str, str]:
    """What a consumer found wrong with a row: its kind, and in words."""
    for tally in outcome.tallies.values():
        if sent_id in tally.failures:
            return tally.failures[sent_id].kind, str(tally.failures[sent_id])
    return "no fault that we know", "no consumer refused it"


def _speeds(outcome: Outcome) -> list[str]:
    began = outcome.sent.began
    sent, sending_s = len(outcome.sent.rows), outcome.sent.ended - began
    first = sum(column.first for column in columns(outcome))
    receiving_s = max(0.0, *(tally.last_first_at - began for tally in outcome.tallies.values()))
    return table(
        [
            ["sent", f"{sent:,} messages", f"in {sending_s:.2f} s", f"{_rate(sent, sending_s):,.0f}/s"],
            [
                "received a first time",
                f"{first:,} messages",
                f"in {receiving_s:.2f} s",
                f"{_rate(first, receiving_s):,.0f}/s",
            ],
        ]
    )


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0
