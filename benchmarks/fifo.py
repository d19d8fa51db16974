"""The bars of FIFO queues and of move tasks, in full, through the Amazon SQS dialect.

    python -m benchmarks.fifo order|head|dedup|move [--messages N] [--rate R] [--fifo]

Starts its own `leaseway up` with two workers in a temporary folder; talks to 127.0.0.1 only; ends
by itself.

- order: 100 groups x 200 messages, 16 consumers with a visibility of 2 s that hang up, forget, come
  too late, and delete a part; a worker killed hard every 3 s. Breaches: a message that came while
  one before it in its group was neither being deleted nor in the same answer.
- head: while N groups are shut, from a send to a fresh group until a waiting receive has it. All
  2 N messages must be in the window of one partition (8,000 by default): what is behind it is not
  seen until there is room. So LEASEWAY_WINDOW_MESSAGES is 32,000 here.
- dedup: 10,000 sends of 5,000 ids by 8 senders, Redis emptied in the middle.
- move: N dead letters of four sources back to them, at a rate or as fast as it can.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.acceptance.fifo_bars import dedup_over_a_wipe, head_latency
from tests.acceptance.move_bar import make_dead_letters, move
from tests.acceptance.order_bar import order_under_kills
from tests.services import Up

GROUPS = (10, 100, 1_000, 10_000)


def _move(up: Up, options: argparse.Namespace) -> dict[str, Any]:
    made_s = make_dead_letters(up, "move", options.messages, fifo=options.fifo)
    found = move(up, "move", options.messages, options.rate, fifo=options.fifo, within_s=3600)
    return {"dead_letters_made_s": round(made_s, 1), **found}


BARS: dict[str, Callable[[Up, argparse.Namespace], object]] = {
    "order": lambda up, options: order_under_kills(up, groups=100, each=200, consumers=16, kill_every_s=3, kills=100),
    "head": lambda up, options: [head_latency(up, groups, 300) for groups in GROUPS],
    "dedup": lambda up, options: dedup_over_a_wipe(up, 10_000, 8),
    "move": _move,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bar", choices=BARS)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=None, help="messages a second, 1-500; none = as fast as it can")
    parser.add_argument("--fifo", action="store_true", help="move: FIFO queues")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        up = Up(
            Path(folder),
            "--workers",
            "2",
            environment={"LEASEWAY_WINDOW_MESSAGES": "32000"} if options.bar == "head" else None,
        )
        try:
            up.wait_ready(180)
            print(json.dumps(BARS[options.bar](up, options), indent=2))
        finally:
            up.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
