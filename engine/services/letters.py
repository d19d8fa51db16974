"""What a request says of the dead letters of one or all queues, and what it is shown of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import structs

from engine.catalog.catalog import Catalog
from engine.errors import InvalidValue
from engine.move.shapes import Letter, Letters, Preview
from engine.move.tasks.outcomes import rows_of
from engine.move.tasks.redrive import Tasks
from engine.move.tasks.selection import address_of
from engine.queues.callers.access import Access
from engine.rules.limits import MAX_TASKS, check_asked
from engine.rules.queue import Ids, Queue
from engine.shapes import Principal
from schemas.accounts import full, short
from schemas.identity import MessageId
from schemas.records import Choice, TaskRecord
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import Verb

# So many queues are asked at once how many letters they have.
ASKED_AT_ONCE = 64


def choice_of(by: Principal, choice: Choice | None) -> Choice | None:
    """A choice with the full name of its source."""
    if choice is None or not choice.source or not by.account:
        return choice
    return structs.replace(choice, source=full(by.account, choice.source))


def preview_for(account: str, preview: Preview) -> Preview:
    """A preview as a caller of `account` is shown it."""
    if not account:
        return preview
    letters = [
        structs.replace(one, queue=None if one.queue is None else short(account, one.queue)) for one in preview.letters
    ]
    return structs.replace(preview, source=short(account, preview.source), letters=letters)


async def sources(
    by: Principal, catalog: Catalog, access: Access, tasks: Tasks, ids: Sequence[str] | None
) -> list[tuple[Queue, Sequence[str] | None]]:
    """The dead-letter queues that `by` may redrive and that have letters; or those of some ids,
    with the ids of each. Raises InvalidValue, Unavailable.
    """
    if ids is None:
        found = [
            q for q in catalog.queues.values() if tasks.is_dead_letter_queue(q) and access.may(by, Verb.REDRIVE, q)
        ]
        rows: list[tuple[Queue, Sequence[str] | None]] = []
        found.sort(key=lambda queue: queue.name)
        for first in range(0, len(found), ASKED_AT_ONCE):
            some = found[first : first + ASKED_AT_ONCE]
            backlogs = await asyncio.gather(*map(tasks.backlog, some))
            rows += [(queue, None) for queue, letters in zip(some, backlogs, strict=True) if letters]
            _check_number(len(rows))
        return rows
    check_asked("ids", len(ids))
    by_queue: dict[str, tuple[Queue, list[str]]] = {}
    for text in ids:
        address = address_of(text, tasks.ids)
        at = None if address is None else catalog.by_incarnation.get(address.incarnation)
        if at is None or not access.may(by, Verb.REDRIVE, at):
            given = text[:100]
            raise InvalidValue(
                f"{given!r} is no id of a message in a queue that you may redrive", field="ids", given=given
            )
        by_queue.setdefault(at.incarnation, (at, []))[1].append(text)
    _check_number(len(by_queue))
    return list(by_queue.values())


def _check_number(queues: int) -> None:
    if queues > MAX_TASKS:
        raise InvalidValue(
            f"more than {MAX_TASKS} queues have such letters: redrive them one by one", field="ids", limit=MAX_TASKS
        )


def letters_of(by: Principal, catalog: Catalog, ids: Ids, task: TaskRecord, limit: int, next: str | None) -> Letters:
    """A page of what came of the letters of a task. Raises InvalidValue."""
    check_asked("limit", limit)
    if next is not None and not (next.isascii() and next.isdecimal() and len(next) <= 9):
        raise InvalidValue("next is not what a page of outcomes has given out", field="next", given=next[:100])
    rows, start = rows_of(task, catalog.outcomes), int(next or "0")
    letters = []
    for row in rows[start : start + limit]:
        copy = MessageId.of_address(row.copy)
        queue = None if copy is None else catalog.by_incarnation.get(copy.incarnation)
        letters.append(
            Letter(
                id=ids.id_of(MessageId(task.source_incarnation, row.partition, row.offset)),
                outcome=row.outcome,
                queue=None if queue is None else short(by.account, queue.name),
                copy=None if copy is None else ids.id_of(copy),
            )
        )
    known = sum(row.outcome not in (LetterOutcome.GONE, LetterOutcome.SKIPPED) for row in rows)
    more = start + limit < len(rows)
    return Letters(letters, str(start + limit) if more else None, complete=known == task.total)
