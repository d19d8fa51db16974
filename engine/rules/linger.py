"""How long a batch of calls waits for more calls to join it: not at all while little is done at
once, a moment while much is; and whether a queue has the worker to itself.

Who is answered asks again a fraction of a millisecond later. A batch that starts before that leaves
them to the next one: under load there would be two halves in turn, each with the costs of a whole.
Sends, receives and acks use it alike.
"""

from __future__ import annotations

# After so long without a use another queue does not count.
RECENT_S = 1.0


class Activity:
    """Remembers the last two queues in use, and when each was received from. Times are the loop's,
    in seconds.
    """

    def __init__(self) -> None:
        self._last = ""
        self._last_at = self._other_at = float("-inf")
        self._received_at: dict[str, float] = {}

    def note_use(self, incarnation: str, now: float) -> None:
        """A queue is in use."""
        if incarnation != self._last:
            self._last, self._other_at = incarnation, self._last_at
        self._last_at = now

    def is_contended(self, incarnation: str, now: float) -> bool:
        """Whether another queue than this was in use within RECENT_S."""
        return now - (self._other_at if incarnation == self._last else self._last_at) < RECENT_S

    def note_receive(self, incarnation: str, now: float) -> None:
        """Messages of a queue were leased."""
        self._received_at[incarnation] = now

    def is_received(self, incarnation: str, now: float) -> bool:
        """Whether messages of a queue were leased within RECENT_S."""
        return now - self._received_at.get(incarnation, float("-inf")) < RECENT_S

    def forget(self, incarnation: str) -> None:
        """A queue is gone."""
        self._received_at.pop(incarnation, None)


# Messages at once: eight clients that send singly are not many, eight that send tens are.
MANY = 16
LINGER_S = 0.001
# Of the time that the last batch of sends took, while its queue is received from; and at most so
# long.
SEND_PART = 0.5
SEND_LINGER_S = 0.02


def batch_size_if_shared(size: int, callers: int) -> int:
    """What to keep of a batch of `size` messages as the last one: nobody is going to join a single
    caller.
    """
    return size if callers > 1 else 0


def is_busy(last: int, waiting: int) -> bool:
    """Whether much is done at once: messages of the last batch and those that came meanwhile."""
    return last + waiting >= MANY


def should_linger(last: int, waiting: int) -> bool:
    """Whether a batch should wait for LINGER_S: much is done at once, and the callers of the last
    batch have not asked again yet.
    """
    return waiting <= last and is_busy(last, waiting)


def send_linger_s(took_s: float) -> float:
    """How long a batch of sends waits while messages of its queue are received here too, if it
    should linger; the last one took `took_s`.

    A message is sent in one request, and received and acked in two. When all take as long, senders
    are ahead for ever, and what waits is more and more: each message then costs Redis a quarter
    more, and comes after seconds. Whoever only sends is not held up.
    """
    return min(max(LINGER_S, took_s * SEND_PART), SEND_LINGER_S)
