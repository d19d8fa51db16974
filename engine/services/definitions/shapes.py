"""What a document of definitions says, and where in it an error is. What a definition does not name
(None, UNSET) stays as it is; names are those of the caller's account, settings have their engine's
names and units.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from engine.errors import Denied, EngineError, InvalidValue, Unavailable
from schemas.filters import Filter
from schemas.records.settings import QueueSettings, RedrivePolicy

# Queues, and users, of one document.
MAX_DEFINITIONS = 1_000
# What may be deleted where a document does not have it.
PRUNED = ("alerts", "grants", "tags", "queues")


class TagDefinition(Struct, frozen=True):
    """A tag beside the default one."""

    name: str
    filter: Filter | None = None
    user_attributes: dict[str, str] = {}
    read_qps: int = 0
    redrive_policy: RedrivePolicy | None = None


class GrantDefinition(Struct, frozen=True):
    """The level of a principal on a queue, or on messages of a tag."""

    principal: str
    level: str
    tag: str = ""


class AlertDefinition(Struct, frozen=True):
    """An alert policy of a queue, or of a tag."""

    subject: str
    measurement: str
    threshold: float
    tag: str = ""


class QueueDefinition(Struct, frozen=True):
    """A queue. `settings` names no redrive policy; a `redrive_policy` of None = it has none."""

    name: str
    settings: QueueSettings
    redrive_policy: RedrivePolicy | UnsetType | None = UNSET
    tags: list[TagDefinition] | None = None
    grants: list[GrantDefinition] | None = None
    alerts: list[AlertDefinition] | None = None
    daily_statistics: bool | None = None


class UserDefinition(Struct, frozen=True):
    """Contacts and quotas of a user, by the names that `UserInfo` has."""

    name: str
    values: dict[str, Any]


class Definitions(Struct, frozen=True):
    """Queues and users."""

    queues: list[QueueDefinition]
    users: list[UserDefinition]


class Difference(Struct, frozen=True):
    """What is, or would be, done: `action` create, change or delete; `kind` queue, tag, grant,
    alert or user; `queue`: of which queue. `field`: which value of what is changed; `before` and
    `after`: the values, None = there is none.
    """

    action: str
    kind: str
    name: str
    queue: str = ""
    field: str = ""
    before: Any = None
    after: Any = None


class Step(Struct, frozen=True):
    """One call of a verb, for a part of the document at `path`. Steps are done by `phase`; one that
    shows no differences belongs to another.
    """

    phase: int
    path: str
    differences: list[Difference]
    run: Callable[[], Coroutine[Any, Any, Any]]


@contextlib.contextmanager
def at(path: str) -> Iterator[None]:
    """What is refused in here is refused for what stands at `path`. Who may not, and what may be
    repeated, is told as it is.
    """
    try:
        yield
    except (Denied, Unavailable):
        raise
    except EngineError as error:
        error.place(path)
        raise


def check_once(path: str, names: Sequence[object]) -> None:
    """Raises InvalidValue when something is there twice."""
    seen: dict[object, int] = {}
    for place, name in enumerate(names):
        if name in seen:
            about = f"{path}[{place}] is there already, as {path}[{seen[name]}]"
            raise InvalidValue(about, field=f"{path}[{place}]", limit="each once", given=str(name)[:200])
        seen[name] = place
