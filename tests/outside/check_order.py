"""FIFO: a message of a group comes only when all before it are settled, or stand before it in the
same answer.

The sender of a group waits for each answer, so the order is that of the numbers in the tokens.
"""

from __future__ import annotations

from collections import defaultdict

from tests.outside.story import Act, Copy, Sent, Story, told
from tests.outside.verdict import Verdict


def order(story: Story) -> Verdict:
    """In order, one receiver in a group's front at a time."""
    verdict = Verdict("FIFO: groups in order")
    for place, lane in story.lanes.items():
        if lane.fifo:
            _place(story, place, verdict)
    return verdict


def _number(sent: Sent) -> int:
    return int(sent.token.rsplit("-", 1)[1])


def _place(story: Story, place: str, verdict: Verdict) -> None:
    groups: dict[str, list[Sent]] = defaultdict(list)
    for sent in story.sent.values():
        if sent.queue == place and "~" not in sent.token:
            groups[sent.group].append(sent)
    for group, members in groups.items():
        members.sort(key=_number)
        before: list[tuple[Sent, list[Act], list[Copy]]] = []
        for sent in members:
            copies = story.of.get((place, sent.token), [])
            for got in (got for copy in copies for got in copy.gots):
                open_ones = [
                    one.token
                    for one, ends, theirs in before
                    if not any(end.t0 < got.t1 for end in ends)
                    and not any(other.n == got.n and other.pos < got.pos for copy in theirs for other in copy.gots)
                ]
                text = (
                    f"{sent.token} of group {group} at {place} came {told(got)} while {open_ones[:3]} "
                    f"({len(open_ones)}) were not settled"
                )
                verdict.judge(bool(open_ones), False, text)
            if sent.answered:
                before.append((sent, [end for copy in copies for end in copy.ends if end.possible], copies))
