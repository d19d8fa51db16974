"""How long a batch of calls waits for more calls to join it: not at all while little is done at
once, a moment while much is.

Who is answered asks again a fraction of a millisecond later. A batch that starts before that leaves
them to the next one: under load there would be two halves in turn, each with the costs of a whole.
Sends, receives and acks use it alike.
"""

from __future__ import annotations

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
