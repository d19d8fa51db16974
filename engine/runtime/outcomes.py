"""Who waits for a result, without a future of its own.

Neighbours: groups of sends, receives and acks tell each that waits. Must not know what of.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

_Result_contra = TypeVar("_Result_contra", contravariant=True)


class Outcome(Protocol[_Result_contra]):
    """Who waits for something: a future, or what answers at once and costs no turn of the loop."""

    def done(self) -> bool:
        """Whether it was told already, or waits no more."""

    def set_result(self, result: _Result_contra, /) -> None:
        """It is told; raises nothing."""

    def set_exception(self, error: Exception, /) -> None:
        """It is told that it failed; raises nothing."""
