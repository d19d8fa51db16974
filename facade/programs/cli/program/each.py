"""The same for several names: what fails for one is said, and the others are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from facade.programs.cli.program.session import Session
from facade.programs.connect.failures import FAILED, Failure


def each(session: Session, names: Sequence[str], do: Callable[[str], None]) -> None:
    """Does `do` with each name. Raises Failure: that of a single name as it is; of several names
    one that says how many failed.
    """
    if len(names) == 1:
        do(names[0])
        return
    failed = 0
    for name in names:
        try:
            do(name)
        except Failure as failure:
            failed += 1
            session.say(f"{name!r}: {failure}")
    if failed:
        raise Failure(f"{failed} of {len(names)} failed", FAILED)
