"""CI's seeds: the whole service hurt at random for a while, every promise checked on the history. A
minute and a half in all.

Bounds are on what is right, never on speed: a slow machine sends less and recovers later. More:
`make faults`, docs/how-to/run-the-fault-harness.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from facade.http.sockets.library import NoLibraryError, loaded
from tests.faults.faults import CLOCKS, DEFAULT, FAULTS, OPEN, PENDING
from tests.faults.run import Order, run
from tests.faults.set_clock import NoCompilerError, built

# A heal is followed by this long a wait at most: the bound tells a service that stays away from one
# that is slow.
LIVE_WITHIN_S = 150.0
# What only the other driver has, and what the time for it, or a letter at the end, has to be there
# for.
MAY_HAVE_NOTHING = {
    "Kafka-native readers see each answered send once",
    "a queue made anew is empty and stays",
    "each queue works again after each fault",
    "letters are not late",
    "no letter dies undelivered",
}


@pytest.mark.parametrize(("seed", "workers", "native"), [(1, 2, "auto"), (2, 1, "auto"), (3, 1, "off")])
def test_every_promise_holds_while_the_service_is_hurt(
    programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, workers: int, native: str
) -> None:
    monkeypatch.setenv("LEASEWAY_NATIVE", native)
    order = Order(
        seed=seed,
        seconds=25,
        fault=",".join(f for f in DEFAULT if f not in OPEN),
        live_s=LIVE_WITHIN_S,
        keep=tmp_path,
        history=tmp_path / "history.jsonl",
        workers=workers,
    )
    verdicts, told = run(order)
    broken = [text for verdict in verdicts for text in (verdict.line(), *verdict.breaches) if not verdict.valid]
    # In one line: CI keeps the first of each.
    assert not broken, "; ".join([*broken, f"seed {seed}, struck {told['struck']}, history {order.history}"])
    assert not told["crashes"]
    assert told["works"] and told["drained"]
    assert told["sends"] > 500
    assert (told["by_plane"] > 0) == (native == "auto" and _has_library()), told["by_plane"]
    assert len(told["struck"]) >= 2
    nothing = {verdict.name for verdict in verdicts if not verdict.looked}
    assert nothing <= MAY_HAVE_NOTHING, f"checkers had nothing to look at: {nothing}"


def _has_library() -> bool:
    """Returns whether the plane can serve here."""
    try:
        loaded()
    except NoLibraryError:
        return False
    return True


def test_every_promise_holds_while_clocks_are_set(programs: None, tmp_path: Path) -> None:
    """The clocks of Valkey and of workers, by a library that is preloaded: each must be told of."""
    try:
        built(tmp_path)
    except NoCompilerError as error:
        pytest.skip(str(error))
    order = Order(
        seconds=45,
        fault=",".join(CLOCKS),
        live_s=LIVE_WITHIN_S,
        keep=tmp_path,
        history=tmp_path / "history.jsonl",
        least=3,
    )
    verdicts, told = run(order)
    broken = [text for verdict in verdicts for text in (verdict.line(), *verdict.breaches) if not verdict.valid]
    assert not broken, "; ".join([*broken, f"struck {told['struck']}, history {order.history}"])
    assert told["works"] and told["drained"] and not told["crashes"]
    assert len(told["struck"]) >= 3


def test_a_fault_is_either_struck_by_default_or_pending() -> None:
    assert set(DEFAULT) | set(PENDING) | set(CLOCKS) == set(FAULTS)
    assert not set(DEFAULT) & set(PENDING)
    assert set(OPEN) <= set(DEFAULT)
