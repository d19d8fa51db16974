"""Errors say where in the document they are about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from engine.errors import Denied, EngineError, InvalidValue, Unavailable


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
