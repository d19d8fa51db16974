"""The first screen of the page: what is wrong now, the totals, and what changed since the day, or
the week, before. Rows in, HTML out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from typing import Any

from schemas.vocabulary import DEFAULT_TAG
from spark.page.labels import count, duration, share, size
from spark.page.markup import Row

# (what it says in bold, the rest of the sentence, the part of the page that tells more, whether it
# is bad)
_Finding = tuple[str, str, str, bool]
_Earlier = Sequence[tuple[str, Row]]
_Counts = defaultdict[tuple[str, str], int]  # Messages by queue and measure; 0 of what is not there.
_MANY = 0.01  # A share from which on dead letters and repeats are shown as a fault.
_TOTALS = {"sent": "sent", "leased": "received", "acked": "acknowledged", "dead": "dead-lettered", "moved": "redriven"}


def first_screen(summary: Row, shown: dict[str, Any]) -> str:
    """What is wrong, and the totals; `summary["earlier"]` has, of each time that is compared with,
    what it is called and its summary.
    """
    earlier = summary["earlier"]
    found = [_worst(summary), _dead(shown), _oldest(shown)]
    cards = "".join(_card(finding) for finding in found)
    return f'<div class="findings">{cards}</div>{_tiles(summary, earlier)}{_changes(summary, earlier)}'


def _card(finding: _Finding) -> str:
    what, rest, part, bad = finding
    kind = "bad" if bad else "good"
    sign = "Look here" if bad else "All right"
    return f'<a class="{kind}" href="#{part}"><i>{sign}</i><b>{escape(what)}</b><span>{escape(rest)}</span></a>'


def _worst(summary: Row) -> _Finding:
    """The queue where most messages die; where none dies, the one that delivers most of them
    again.
    """
    ended: dict[str, dict[str, int]] = defaultdict(lambda: {"acked": 0, "dead": 0})
    for row in summary["queues"]:
        if row["measure"] in ("acked", "dead"):
            ended[row["queue"]][row["measure"]] += row["messages"]
    dying = {queue: numbers for queue, numbers in ended.items() if numbers["dead"] > 0}
    if dying:
        queue, numbers = max(dying.items(), key=lambda pair: (pair[1]["dead"], pair[0]))
        of_all = numbers["dead"] / (numbers["dead"] + max(0, numbers["acked"]))
        rest = f"{count(numbers['dead'])} of its messages died: {share(of_all)} of those that ended"
        return f"Worst queue: {queue}", rest, "dead_letters", of_all >= _MANY
    again = max(summary["redelivery"], key=lambda row: row["redeliveries"], default=None)
    if again is None or not again["redeliveries"]:
        return "No queue stands out", "Nothing died, and nothing had to be delivered again.", "redelivery", False
    rest = f"{share(again['redelivery_share'])} of its deliveries were repeats; nothing died"
    return f"Worst queue: {again['queue']}", rest, "redelivery", again["redelivery_share"] >= _MANY


def _dead(shown: dict[str, Any]) -> _Finding:
    """How many dead letters are at rest, and where most are."""
    by_queue: dict[str, int] = defaultdict(int)
    for row in shown["dead_letter_ages"]:
        by_queue[row["queue"]] += row["dead_letters"]
    if not sum(by_queue.values()):
        return "No dead letters", "None of this time waits for somebody.", "dead_letters", False
    queue, most = max(by_queue.items(), key=lambda pair: (pair[1], pair[0]))
    whole = sum(by_queue.values())
    where = f"in {queue}" if most == whole else f"{count(most)} of them in {queue}"
    what = "dead letter" if whole == 1 else "dead letters"
    rest = f"They died in this time, and nobody has looked after them yet: {where}"
    return f"{count(whole)} {what} at rest", rest, "dead_letters", True


def _oldest(shown: dict[str, Any]) -> _Finding:
    """The oldest message that is not settled, and how many there are."""
    waiting = [row for row in shown["lag"] if row["open"]]
    if not waiting:
        return "No message waits", "All have been settled.", "backlog", False
    row = max(waiting, key=lambda row: row["oldest_ms"] or 0)
    name = row["queue"] if row["tag"] == DEFAULT_TAG else f"{row['queue']} (tag {row['tag']})"
    open_ = sum(row["open"] for row in waiting)
    rest = f"In {name}, not settled; messages that are not settled in all: {count(open_)}"
    return f"Oldest message: {duration(row['oldest_ms'])}", rest, "backlog", (row["oldest_ms"] or 0) >= 3_600_000


def _numbers(summary: Row) -> dict[str, float]:
    totals = {row["measure"]: row for row in summary["totals"]}
    again = sum(row["redeliveries"] for row in summary["redelivery"])
    leased = sum(row["deliveries"] for row in summary["redelivery"])
    counted = {name: totals[name]["messages"] or 0 if name in totals else 0 for name in _TOTALS}
    sent = totals["sent"]["bytes"] or 0 if "sent" in totals else 0
    open_ = sum(row["open"] for row in summary["open"])
    return {**counted, "bytes": sent, "again": again / leased if leased else 0.0, "open": open_}


def _tiles(summary: Row, earlier: _Earlier) -> str:
    now, then = _numbers(summary), [(when, _numbers(before)) for when, before in earlier]
    shown = {name: (count(now[name]), word) for name, word in _TOTALS.items()}
    shown["sent"] = (count(now["sent"]), f"sent, {size(now['bytes'])}")
    repeats = {"again": (share(now["again"]), "of deliveries were repeats")}
    order = {**{name: shown[name] for name in ("sent", "leased", "acked")}, **repeats}
    order |= {name: shown[name] for name in ("dead", "moved")}
    order["open"] = (count(now["open"]), "not settled at the end")

    def tile(name: str, number: str, word: str) -> str:
        changes = (_change(now[name], before[name], when) for when, before in then)
        since = "".join(f"<small>{escape(change)}</small>" for change in changes)
        return f"<div><b>{escape(number)}</b><span>{escape(word)}</span>{since}</div>"

    return '<div class="tiles">' + "".join(tile(name, *pair) for name, pair in order.items()) + "</div>"


def _change(now: float, then: float, when: str) -> str:
    if now == then:
        return f"as {when}"
    if not then:
        return f"none {when}"
    grown = (now - then) / then
    if abs(grown) < 0.005:
        return f"about as {when}"
    return f"{'more' if grown > 0 else 'less'} by {abs(grown) * 100:,.0f} % than {when}"


def _changes(summary: Row, earlier: _Earlier) -> str:
    """Which queues have changed most since each of these times."""
    if not earlier:
        return '<p class="note">No report of the time before lies beside this one, so no change is shown.</p>'
    told = (_changed(_by_queue(summary), _by_queue(before), when) for when, before in earlier)
    return "".join(f'<p class="note">{escape(since)}.</p>' for since in told)


def _changed(now: _Counts, then: _Counts, when: str) -> str:
    told = []
    for measure, word in (("dead", "dead letters"), ("sent", "messages sent")):
        apart = {queue: now[queue, measure] - then[queue, measure] for queue, m in {**now, **then} if m == measure}
        queue = max(apart, key=lambda name: (abs(apart[name]), name), default=None)
        if queue is not None and apart[queue]:
            told.append(f"{queue}: {count(then[queue, measure])} to {count(now[queue, measure])} {word}")
    return f"Changed most since {when}: {'; '.join(told)}" if told else f"No queue has changed since {when}"


def _by_queue(summary: Row) -> _Counts:
    found: _Counts = defaultdict(int)
    for row in summary["queues"]:
        found[row["queue"], row["measure"]] += row["messages"]
    return found
