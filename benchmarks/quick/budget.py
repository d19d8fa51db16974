"""The budget: which figures of which verbs may be how large, and what is over it."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).parent.parent / "budget.json"
# Equal runs give equal numbers of these; the others differ by what falls into the same turn of the
# loop.
EXACT = frozenset(("redis_commands", "redis_round_trips", "redis_inside", "produce_calls"))
PERCENT = 4.0
AT_LEAST = {"python_calls": 3.0, "loop_turns": 2.0, "bytes_held_per_body_byte": 0.3}

Figures = dict[str, dict[str, float]]


def slack(figure: str, budget: float) -> float:
    """How far a figure may be from its budget."""
    return 0.0 if figure in EXACT else max(AT_LEAST.get(figure, 0.0), budget * PERCENT / 100)


def over(budget: Figures, found: Figures) -> list[str]:
    """A sentence for each figure over its budget, and for each verb that the two do not have
    both.
    """
    said = [f"{verb}: in the budget, but not measured" for verb in sorted(budget.keys() - found.keys())]
    for verb, figures in found.items():
        if verb not in budget:
            said.append(f"{verb}: measured, but not in the budget")
            continue
        for figure, number in figures.items():
            allowed = budget[verb].get(figure)
            if allowed is None:
                said.append(f"{verb}: {figure} is not in the budget, found {number:g}")
            elif number > allowed + slack(figure, allowed):
                said.append(f"{verb}: {figure} budget {allowed:g} (+{slack(figure, allowed):g}), found {number:g}")
    return said


def under(budget: Figures, found: Figures) -> list[str]:
    """A sentence for each figure that is so far below its budget that the budget should be
    lowered.
    """
    return [
        f"{verb}: {figure} budget {budget[verb][figure]:g}, found {number:g}"
        for verb, figures in found.items()
        for figure, number in figures.items()
        if number < budget.get(verb, {}).get(figure, 0.0) - slack(figure, budget.get(verb, {}).get(figure, 0.0))
    ]


def read() -> Figures:
    """The budget that is checked in."""
    figures: Figures = json.loads(FILE.read_text())
    return figures


def write(found: Figures) -> None:
    """Makes what was found the budget."""
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
