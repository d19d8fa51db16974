"""Strikes faults: each is done, held, healed, and written into the history with what it excuses."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from facade.programs.stack.processes.child import Child
from tests.faults.proxy import Mode, Proxy
from tests.faults.stack import Stack
from tests.judge.history import Line, Recorder

Work = Iterator[None]


@dataclass(frozen=True, slots=True)
class Fault:
    """`work` does it before its yield and heals it after; `hold_s` are the least and most seconds
    between.

    `holds_up`: the journal may be behind for a while after it. `cuts`: workers may lose Redis
    between a call and its answer, though it runs.
    """

    work: Callable[[Nemesis], Work]
    hold_s: tuple[float, float] = (0.0, 0.0)
    holds_up: bool = True
    cuts: bool = False


class Nemesis:
    """Strikes one fault at a time. The same seed gives the same faults in the same order; when they
    hit is for the machine.
    """

    def __init__(self, stack: Stack, recorder: Recorder, rest: random.Random) -> None:
        self.stack = stack
        self.rest = rest
        self.done: list[str] = []
        self._recorder = recorder
        self._op = 0

    def strike(self, name: str, fault: Fault) -> None:
        """Does the fault, holds it, heals it, and returns when every part runs again. Raises
        TimeoutError when one does not.
        """
        self._op = self._recorder.number()
        self._write("begin", name, holds_up=fault.holds_up, cuts=fault.cuts)
        work = fault.work(self)
        next(work)
        time.sleep(self.rest.uniform(*fault.hold_s))
        next(work, None)
        self.stack.wait_back()
        self._write("heal", name)
        self.done.append(name)

    def _write(self, type: str, name: str, **args: Any) -> None:
        self._recorder.write(Line(type, time.monotonic_ns(), op=self._op, verb=name, args=args))

    @contextlib.contextmanager
    def losing(self) -> Iterator[None]:
        """Redis loses state somewhere inside."""
        began = time.monotonic_ns()
        yield
        self._write("loss", "", began=began)

    def facade(self) -> Child:
        return self.rest.choice(self.stack.facades)

    def command(self, *words: str | int) -> Any:
        """A Redis command past the proxy."""
        with self.stack.direct() as client:
            return client.execute_command(*words)  # type: ignore[no-untyped-call]

    def keys(self, suffix: str) -> list[bytes]:
        """Keys of a kind (meta, body, visible:0 ...), in the order of their names."""
        with self.stack.direct() as client:
            return sorted(client.scan_iter(f"lw:{{*:{suffix}", count=1000))

    def mode(self, proxy: Proxy, mode: Mode) -> None:
        self.stack.run(proxy.set(mode))
