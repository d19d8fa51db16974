"""`leaseway demo`: airports of a real data set streamed through a queue, and an account of what
went where.
"""

from __future__ import annotations

from facade.programs.demo.run import main

__all__ = ["main"]
