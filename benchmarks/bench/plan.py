"""What is measured: cells of mode, API, batch, connections, body and rate.

Neighbours: `generator` runs a cell against a server. It must not know servers beyond their names.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MODES = ("pipeline", "send", "drain", "latency", "native", "bodies")


@dataclass(frozen=True)
class Cell:
    """One thing to measure. `each`: connections of senders, and as many of receivers; `rate` in
    messages a second, of latency only.
    """

    mode: str
    batch: int
    each: int
    body: int = KIB
    api: str = "sqs"
    rate: int = 0

    @property
    def name(self) -> str:
        size = f"{self.body // KIB} KiB" if self.body >= KIB else f"{self.body} B"
        api = "native " if self.api == "native" else ""
        what = f"latency at {self.rate}/s" if self.rate else self.mode
        return f"{api}{what}, batch {self.batch}, {self.each}+{self.each}, {size}"


def cells(modes: tuple[str, ...]) -> list[Cell]:
    """The cells of these modes, in the order of the table."""
    found: list[Cell] = []
    for mode in ("pipeline", "send", "drain"):
        if mode in modes:
            found += [Cell(mode, batch, each) for batch in (1, 10) for each in (8, 32)]
    if "bodies" in modes:
        found += [Cell("pipeline", batch, 8, body) for body in (100, 64 * KIB) for batch in (1, 10)]
    if "latency" in modes:
        found += [Cell("latency", 1, 8, rate=rate) for rate in (500, 1000)]
    if "native" in modes:
        found += [Cell("pipeline", batch, each, api="native") for batch in (1, 10, 100) for each in (8, 32)]
    return found
