"""News without a result. Who tells it does not know who listens; wiring alone connects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Called with the news, it calls every listener in the order of connection.

    A listener returns at once and raises nothing: what takes time it starts as a task of its own.
    """

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[Callable[P, object]] = []

    def connect(self, listener: Callable[P, object]) -> None:
        """From now on `listener` hears of it."""
        self._listeners.append(listener)

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def __call__(self, *news: P.args, **named: P.kwargs) -> None:
        for listener in self._listeners:
            listener(*news, **named)
