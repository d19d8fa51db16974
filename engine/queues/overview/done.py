"""What is shown of numbers that only grow: they never go back, whatever is lost. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.records import Totals
from state.shared.overview import Counted, Done


class Shown:
    """What was shown of each life of a queue; belongs to who counts.

    A delivery is shown at the look after the one that has seen it begin: by then it is known
    whether an answer carried it, but for one that is given back later than that.
    """

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}
        self._done: dict[str, dict[int, Done]] = {}
        # As of the last look, within one life of Redis.
        self._looks: dict[str, Mapping[int, Totals]] = {}
        self._generation = 0

    def begin(self, rows: Mapping[str, Counted]) -> None:
        """Nothing is shown that is less than these rows: another worker has counted them."""
        self._sent = {name: row.sent for name, row in rows.items()}
        self._done = {name: row.done for name, row in rows.items()}
        self._looks = {}

    def begin_look(self, generation: int) -> None:
        """The looks that follow see this life of Redis. What was returned in another is not set
        against what was leased in this one.
        """
        if generation != self._generation:
            self._generation, self._looks = generation, {}

    def forget(self, incarnations: Iterable[str]) -> None:
        """These lives of queues are over."""
        for incarnation in incarnations:
            for known in (self._sent, self._done, self._looks):
                known.pop(incarnation, None)

    def sent(self, incarnation: str, ends: int) -> int:
        """Returns how many records were sent to a queue, of whose partitions the ends add up to so
        much.
        """
        sent = self._sent[incarnation] = max(ends, self._sent.get(incarnation, 0))
        return sent

    def done(self, incarnation: str, totals: Mapping[int, Totals]) -> dict[int, Done]:
        """Returns what was done, by tag, at a look that has found these totals."""
        before, looked = self._done.get(incarnation, {}), self._looks.get(incarnation, {})
        done = {tag: _done(before.get(tag), looked.get(tag), now) for tag, now in totals.items()}
        self._looks[incarnation], self._done[incarnation] = totals, done
        return done


def _done(before: Done | None, looked: Totals | None, now: Totals) -> Done:
    """What is shown after `before`, by the last look and this one. After another worker's looks the
    deliveries stay as that one has shown them; and where less was ever leased now than at the last
    look: the unit has lost what the journal had not yet, perhaps returns among it.
    """
    if before is None:
        before, looked = Done(), looked or now
    if looked is None or now.leased < looked.leased:
        looked = Totals()
    return Done(
        received=max(before.received, looked.leased - now.returned),
        redelivered=max(before.redelivered, looked.leased_again - now.returned_again),
        acked=max(before.acked, now.acked),
        released=max(before.released, now.released),
        dead=max(before.dead, now.dead),
    )
