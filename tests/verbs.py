"""The verbs of an engine: all that a dialect may call and wait for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from engine.engine import Engine
from engine.services.alerts import AlertService
from engine.services.callers import CallerService
from engine.services.definitions.definitions import DefinitionService
from engine.services.messages import MessageService
from engine.services.queues import QueueService
from engine.services.tasks import TaskService
from engine.services.transactions import TransactionService

SERVICES: Final[dict[str, type]] = {
    "messages": MessageService,
    "queues": QueueService,
    "callers": CallerService,
    "tasks": TaskService,
    "alerts": AlertService,
    "transactions": TransactionService,
    "definitions": DefinitionService,
}


def verbs() -> dict[str, Callable[..., Any]]:
    """Returns the coroutine functions of all services by name."""
    found = [one for service in SERVICES.values() for one in inspect.getmembers(service, inspect.iscoroutinefunction)]
    named = [(name, verb) for name, verb in found if not name.startswith("_")]
    assert len(named) == len(dict(named)), "two services have a verb of one name"
    return dict(named)


def verb_of(engine: Engine, name: str) -> Callable[..., Any]:
    """Returns a verb of an engine."""
    (service,) = (getattr(engine, at) for at, of in SERVICES.items() if hasattr(of, name))
    verb: Callable[..., Any] = getattr(service, name)
    return verb
