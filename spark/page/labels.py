"""Numbers, durations, sizes and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
NONE = "\u2013"


def count(value: float | None) -> str:
    """1,234,567; a dash for None."""
    return NONE if value is None else f"{value:,.0f}"


def short(value: float) -> str:
    """For axes: 950, 1.2k, 3M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def duration(ms: float | None) -> str:
    """0.4 ms, 840 ms, 12.5 s, 3.4 min, 2.1 h, 1.3 d; a dash for None."""
    if ms is None:
        return NONE
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s")):
        if abs(ms) >= unit:
            return f"{ms / unit:.3g} {name}"
    return f"{ms:.0f} ms" if ms >= 1 or ms <= 0 else f"{ms:.2g} ms"


def size(bytes: float | None) -> str:
    """Bytes in binary units; a dash for None."""
    if bytes is None:
        return NONE
    for power, name in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if bytes >= 1024**power:
            return f"{bytes / 1024**power:,.1f} {name}"
    return f"{bytes:,.0f} B"


def share(value: float | None) -> str:
    """0.123 is 12.3 %; whole and nothing have no digits; a dash for None."""
    if value is None:
        return NONE
    return f"{value * 100:.0f} %" if value in {0, 1} else f"{value * 100:.1f} %"


def moment(time: datetime | None) -> str:
    """To the second, UTC; a dash for None."""
    return NONE if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def clock(ms: int, span_ms: int) -> str:
    """An epoch time on an axis that is `span_ms` long: with the day when it is longer than two."""
    time = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{time:%m-%d}" if span_ms > 4 * _DAY else f"{time:%m-%d %H:%M}" if span_ms > 2 * _DAY else f"{time:%H:%M}"


def text(value: object) -> str:
    """A name; a dash for nothing."""
    return NONE if value is None or value == "" else str(value)
