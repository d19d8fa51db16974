"""The id of each request: its answer names it, and so do the lines that are logged while it is
served, and the audit.
"""

from __future__ import annotations

from contextvars import ContextVar
from itertools import count
from random import getrandbits
from typing import Final

# A UUID of version 4, as clients of SQS expect. Nothing relies on it being hard to guess: what is
# drawn once for the process and a number. The native library numbers its own answers from 2^47 on.
PREFIX: Final = f"{getrandbits(32):08x}-{getrandbits(16):04x}-4{getrandbits(12):03x}-a{getrandbits(12):03x}-"
_NUMBERS: Final = count()
SHORT: Final = 24

# The id of the request that this task serves; empty = it serves none.
_current: ContextVar[str] = ContextVar("request_id", default="")


def new() -> str:
    """Returns an id that no other request has."""
    return of(next(_NUMBERS))


def begin(*, short: bool = False) -> str:
    """Gives the request that this task serves an id, and returns it. `short`: of 24 digits in
    capitals, as MNS has it.
    """
    number = new()
    if short:
        number = number.replace("-", "")[-SHORT:].upper()
    _current.set(number)
    return number


def current() -> str:
    """Returns the id of the request that this task serves; empty where there is none."""
    return _current.get()


def of(number: int) -> str:
    """Returns the id with this number."""
    return f"{PREFIX}{number:012x}"
