"""How a worker writes its log: text or JSON, each line with the id of the request it is about, and
no more of one kind than a disk can bear.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from facade.config import ServerSettings
from facade.http.log import request_ids
from facade.http.log.access_log import log as access

# What one place in the code says is written so often at once, and this often a second after that: a
# stranger who causes a line can neither fill the disk nor hide what else is there.
BURST: Final = 50
A_SECOND: Final = 1.0
# The same of the access log, which is asked for.
ACCESS_BURST: Final = 5_000
ACCESS_A_SECOND: Final = 1_000.0
# Of the text of a line, and of the stack of an exception in it.
CHARACTERS: Final = 8_192
STACK_CHARACTERS: Final = 16_384

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# A template of ours: `action=move queue=%s ms=%.1f`.
_FIELD: Final = re.compile(r"(\w+)=(%(?:\.\d+)?[a-z]|[^\s%=]+)(?:\s+|$)")
_PLACED: Final = ("time", "level", "logger", "pid", "message", "exception")


class LogRate(logging.Filter):
    """A filter of a handler that bounds how often one line is written; the next one that is written
    says how many were left out. For any number of threads: a race may let one line more through.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        # By place: how many lines may be written now, when that was so, and how many were left out.
        self._places: dict[tuple[str, int], tuple[float, float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether the line is written."""
        burst, a_second = (ACCESS_BURST, ACCESS_A_SECOND) if record.name == access.name else (BURST, A_SECOND)
        place, now = (record.pathname, record.lineno), self._clock()
        left, at, dropped = self._places.get(place, (float(burst), now, 0))
        left = min(burst, left + (now - at) * a_second)
        if left < 1:
            self._places[place] = left, now, dropped + 1
            return False
        self._places[place] = left - 1, now, 0
        if dropped:
            record.left_out = dropped
        return True


class TextLines(logging.Formatter):
    """A line for people: time, level, who says it, what."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging calls it
        """Returns the line, without an exception."""
        line = super().formatMessage(record)
        if "request_id=" not in line and (number := request_ids.current()):
            line += f" request_id={number}"
        left_out = getattr(record, "left_out", 0)
        return f"{line} ({left_out} such lines were left out)" if left_out else line


class JsonLines(logging.Formatter):
    """An object in a line for machines: `time` (RFC 3339, UTC), `level`, `logger`, `pid`, and the
    words of the line as fields, or its text as `message`; `request_id` while a request is served,
    `left_out` as in text, `exception` with its stack.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {"time": f"{at}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        line |= {"logger": record.name, "pid": record.process}
        fields = fields_of(record)
        line |= {"message": record.getMessage()[:CHARACTERS]} if fields is None else fields
        if number := request_ids.current():
            line.setdefault("request_id", number)
        if left_out := getattr(record, "left_out", 0):
            line["left_out"] = left_out
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-STACK_CHARACTERS:]
        return json.dumps(line, default=str)  # in ASCII: nothing within it breaks the line


def fields_of(record: logging.LogRecord) -> dict[str, Any] | None:
    """Returns the fields of a line that is `name=value name=value ...` in the code, each value as
    it was given; None of any other.
    """
    template, found = str(record.msg), list(_FIELD.finditer(str(record.msg)))
    args = record.args if isinstance(record.args, tuple) else ()
    if not found or "".join(one.group() for one in found) != template:
        return None
    given = iter(args)
    fields: dict[str, Any] = {}
    for one in found:
        name, value = one.groups()
        if name in _PLACED or name in fields:
            return None
        fields[name] = _value(next(given), value) if value.startswith("%") else value
    return fields


def _value(given: Any, conversion: str) -> Any:
    """A number as a number, all else as its text."""
    if isinstance(given, bool | int | float):
        return given if conversion in ("%s", "%d", "%r") else float(conversion % given)
    return (conversion % (given,))[:CHARACTERS]


def write_log(settings: ServerSettings) -> None:
    """Has this process write its log to stderr, as the settings say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    handler.addFilter(LogRate())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for package in ("facade", "engine", "state", "runtime"):
        logging.getLogger(package).setLevel(settings.log_level.upper())
