"""`leaseway demo`: airports of a real data set streamed through a queue, and an account of what
went where.

Neighbours: `facade.cli.cli` calls `main`. It is a client of the native dialect like any other: it
must not know the engine, Kafka or Redis, and can do nothing that the HTTP API cannot.
"""

from __future__ import annotations

from facade.demo.run import main

__all__ = ["main"]
