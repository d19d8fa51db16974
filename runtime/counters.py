"""Counters and alarms of this process, as `/metrics` and `/health` show them."""

from __future__ import annotations


class Counters:
    """Numbers that only grow, by name. Any task may count."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def count(self, name: str, by: float = 1) -> None:
        self.values[name] = self.values.get(name, 0) + by

    def get(self, name: str) -> float:
        """What was counted under a name; 0 when nothing was."""
        return self.values.get(name, 0)


class Alarms:
    """Alarms that are on: (kind, subject) -> how many. The subject is a queue or a partition."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], float] = {}

    def set(self, kind: str, subject: str, number: float) -> bool:
        """Puts an alarm on, or off with 0; whether it was off and is on."""
        begins = bool(number) and (kind, subject) not in self.values
        if number:
            self.values[kind, subject] = number
        else:
            self.values.pop((kind, subject), None)
        return begins
