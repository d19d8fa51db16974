"""Who has asked this worker for what in the minute that runs, and what came of it.

A request costs one look-up here. Rows that name a principal or a queue are at most MOST_ROWS a
minute; requests beyond that are added up by dialect and outcome alone, so sums stay exact. Rows
without a name are as many as there are operations and outcomes, so strangers use up no room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from schemas.records.watching import Request, RequestRow
from schemas.vocabulary import OK

MOST_ROWS: Final = 2_000
# Of a name that a client may have made up, in open mode.
CHARACTERS: Final = 200
NATIVE: Final = "native"


class _Cell(Struct, gc=False):
    requests: int = 0
    sum_us: int = 0
    max_us: int = 0


def dialect_of(operation: str) -> str:
    """Returns the dialect of an operation: native's have no dialect in their names."""
    dialect, dot, _ = operation.partition(".")
    return dialect if dot else NATIVE


class RequestCounts:
    """Belongs to one event loop. `is_queue`: whether there is a queue of that name; one that is
    not is counted without its name unless the request succeeded.
    """

    def __init__(self, is_queue: Callable[[str], bool] = bool) -> None:
        self._is_queue = is_queue
        self._cells: dict[Request, _Cell] = {}
        self._named = 0
        # Of requests that had no room, by dialect and outcome.
        self._others: dict[tuple[str, str], _Cell] = {}

    def add(self, request: Request, requests: int, sum_us: int, max_us: int) -> None:
        """Counts requests that are alike, with the sum and the greatest of their times. Each was
        answered, or its client has gone.
        """
        cell = self._cells.get(request)
        if cell is None:
            cell = self._cell(request)
        cell.requests += requests
        cell.sum_us += sum_us
        if max_us > cell.max_us:  # noqa: PLR1730 - a branch costs less than max
            cell.max_us = max_us

    def _cell(self, request: Request) -> _Cell:
        """Returns where a request is counted that was not counted as it is yet."""
        principal, queue = request.principal[:CHARACTERS], request.queue[:CHARACTERS]
        if request.outcome != OK and not self._is_queue(queue):
            queue = ""
        key = Request(principal, queue, request.operation, request.verb, request.outcome)
        cell = self._cells.get(key)
        if cell is not None:
            return cell
        if principal or queue:
            if self._named >= MOST_ROWS:
                return self._others.setdefault((dialect_of(request.operation), request.outcome), _Cell())
            self._named += 1
        return self._cells.setdefault(key, _Cell())

    def take(self) -> list[RequestRow]:
        """Returns what was counted since the last call, which begins anew."""
        cells, others = self._cells, self._others
        self._cells, self._others, self._named = {}, {}, 0
        rows = [_row(dialect_of(request.operation), request, cell) for request, cell in cells.items()]
        rows += [_row(dialect, Request("", "", "", "", outcome), cell) for (dialect, outcome), cell in others.items()]
        return rows


def _row(dialect: str, request: Request, cell: _Cell) -> RequestRow:
    return RequestRow(
        dialect,
        request.operation,
        request.verb,
        request.principal,
        request.queue,
        request.outcome,
        cell.requests,
        cell.sum_us,
        cell.max_us,
    )
