"""Checker of queues that are deleted and made anew: a new one is empty and stays, an old one is
gone.

One client works on a name, one step after the other, so the operations of a name are its history.
"""

from __future__ import annotations

import dataclasses

from tests.judge.history import Op
from tests.judge.losses import SECOND
from tests.judge.story import Story
from tests.judge.verdict import Verdict


@dataclasses.dataclass
class _Life:
    """What is known of a name so far."""

    name: str
    number: int = 0
    there: bool | None = False
    since: int = 0
    open_creations: int = 0
    open_deletion: bool = False
    vanished: set[int] = dataclasses.field(default_factory=set)


def lives(story: Story) -> Verdict:
    """A queue made anew is empty and stays until it is deleted; a deleted one is gone."""
    verdict = Verdict("a queue made anew is empty and stays")
    names = {name: _Life(name) for name, plan in story.plans.items() if plan.remade}
    steps = [op for op in story.history.ops if op.line.queue in names]
    for op in sorted(steps, key=lambda op: (op.began, op.lines)):
        verdict.saw("steps")
        _next(story, verdict, names[op.line.queue], op)
    for note in story.notes("missing"):
        verdict.saw("drained")
        if note.args["uids"]:
            verdict.breach("missing", f"{note.queue}, life {note.args['life']}: answered: {note.args['uids'][:5]}")
    return verdict


def _next(story: Story, verdict: Verdict, life: _Life, op: Op) -> None:
    verb, args = op.line.verb, op.line.args
    where = f"{life.name}, life {life.number} (since {life.since / SECOND:.2f} s): {verb} at {op.where()}"
    if verb == "create":
        _created(life, op)
    elif verb == "delete" and op.outcome in ("ok", "info"):
        life.there = False if op.ok else None
        life.open_deletion = not op.ok
    elif op.status == 404:
        _not_found(verdict, life, where)
    elif verb == "look" and op.ok:
        if life.there is False:
            verdict.judge(life.open_creations > 0, "not deleted", where)
    elif verb == "info" and op.ok and args.get("born") and op.end is not None:
        born = sum(op.end.answer["default"].values())
        if born:
            verdict.judge(born <= _may_come(story, life.name, op.left), "born", f"{where} with {born}")
    elif verb == "receive" and op.ok and op.end is not None:
        for it in op.end.deliveries:
            if int(it.uid.rsplit("-", 2)[1]) != life.number:
                # A send without an answer is done when who has it wakes, to whatever has the name
                # then.
                message = story.messages[life.name].get(it.uid)
                verdict.judge(message is not None and not message.ok, "of another life", f"{it.uid} at {where}")


def _may_come(story: Story, name: str, until: int) -> int:
    """Sends to a name without an answer, each of which may come at any time (see the receives)."""
    return sum(not message.ok and message.began < until for message in story.messages[name].values())


def _created(life: _Life, op: Op) -> None:
    """201 is a new life, whatever deletion is open: it has happened. 200 beside an open deletion
    says nothing.
    """
    if op.ok and (op.status == 201 or not life.open_deletion):
        life.number, life.there, life.since, life.open_deletion = op.line.args["life"], True, op.left, False
    elif op.outcome == "info":
        life.there, life.open_creations = None, life.open_creations + 1


def _not_found(verdict: Verdict, life: _Life, where: str) -> None:
    """404 of a queue that was made and not deleted since; told once a life."""
    if life.there and life.number not in life.vanished:
        life.vanished.add(life.number)
        verdict.breach("vanished", where)
    life.there = False if life.there is None else life.there
