"""What can go wrong between us and Redis.

StateError
    StateUnavailable: Redis can't be reached, or refused (out of memory, read-only); the outcome is
                      unknown
    StateLost:        Redis has no state of this unit, or one of another generation
    OutboxFull:       the journal is far behind; nothing was changed
    Fenced:           another loader owns the unit now
"""

from __future__ import annotations


class StateError(Exception):
    """Something went wrong in Redis."""


class StateUnavailable(StateError):
    """Redis can't be reached or does not take commands."""


class StateLost(StateError):
    """Redis has no state of this unit, or one of another generation."""


class OutboxFull(StateError):
    """The journal is far behind, so the unit takes no more changes until it has caught up; nothing
    was changed.
    """


class Fenced(StateError):
    """Another loader owns the unit now."""
