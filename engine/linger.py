"""How long a group waits for company: not at all while little is done at once, a moment while much is.

Who is answered asks again a fraction of a millisecond later. A group that starts before that leaves them to the next one: under load
there would be two halves in turn, each with the costs of a whole. Sends, receives and acks use it alike. Must not know any of them.
"""

from __future__ import annotations

# Messages at once: eight clients that send singly are not many, eight that send tens are.
MANY = 16
LINGER_S = 0.001


def company(size: int, callers: int) -> int:
    """What to keep of a group of `size` messages as the last one: who is alone has no company to wait for."""
    return size if callers > 1 else 0


def many(last: int, waiting: int) -> bool:
    """Whether much is done at once: messages of the last group and those that came meanwhile."""
    return last + waiting >= MANY


def lingers(last: int, waiting: int) -> bool:
    """Whether a group should wait for LINGER_S: much is done at once, and those of the last group are not back yet."""
    return waiting <= last and many(last, waiting)
