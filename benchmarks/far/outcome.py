"""What a day of far delays has shown, and whether that keeps the bars."""

from __future__ import annotations

from pathlib import Path

import msgspec

# Issue 24: of Redis in MiB, of the 99th percentile in ms; for a million messages.
MOST_MIB, MOST_LATE_MS = 64, 1_000
FOLDER = Path(__file__).parent / "results"


class Look(msgspec.Struct, frozen=True):
    """Some seconds at the clock's own pace, at an hour of the day: how late the messages were that
    became due in it, in ms, ascending. `missed`: those that did not come within a minute.
    """

    hour: float
    seconds: float
    late_ms: list[int]
    missed: int
    is_after_wipe: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """`memory`: rows of (hour of the day, bytes that Redis uses); before 0 the messages are sent.
    `load`: averages of the machine over a minute, at the begin and at the end.
    """

    command: str
    machine: str
    commit: str
    messages: int
    hours: float
    came: int
    early: int
    twice: int
    ordinary_s: float
    send_s: float
    whole_s: float
    load: tuple[float, float]
    looks: list[Look]
    memory: list[tuple[float, int]]
    wiped_at: float | None = None

    def late_ms(self) -> list[int]:
        """Of all looks, ascending."""
        return sorted(late for look in self.looks for late in look.late_ms)

    def most_bytes(self) -> int:
        return max((used for _, used in self.memory), default=0)

    def broken(self) -> list[str]:
        """The bars that were missed, each as a sentence."""
        late = self.late_ms()
        missed = sum(look.missed for look in self.looks)
        bars = {
            f"{self.messages - self.came} of {self.messages} never came": self.came != self.messages,
            f"{self.early} came early": self.early > 0,
            f"{self.twice} came twice": self.twice > 0,
            f"Redis had {self.most_bytes() / 2**20:.1f} MiB, the bar is {MOST_MIB}": self.most_bytes()
            >= MOST_MIB * 2**20,
            f"{missed} did not come within a minute": missed > 0,
            f"p99 is {percentile(late, 99)} ms, the bar is {MOST_LATE_MS}": bool(late)
            and percentile(late, 99) >= MOST_LATE_MS,
        }
        return [text for text, is_missed in bars.items() if is_missed]

    def told(self) -> dict[str, object]:
        """The figures of a report."""
        late = self.late_ms()
        after = [look for look in self.looks if look.is_after_wipe]
        return {
            "command": self.command, "commit": self.commit, "machine": self.machine, "load_average": self.load,
            "messages": self.messages, "came": self.came, "early": self.early, "twice": self.twice,
            "redis_mib": round(self.most_bytes() / 2**20, 1), "wiped_at_hour": self.wiped_at,
            "measured_live": len(late), "late_ms": spread(late),
            "after_the_wipe": [spread(look.late_ms) for look in after],
            "send_s": self.send_s, "ordinary_s": self.ordinary_s, "whole_s": self.whole_s, "broken": self.broken(),
        }  # fmt: skip


def percentile(ascending: list[int], part: float) -> int:
    """0 of nothing."""
    return ascending[min(len(ascending) - 1, int(len(ascending) * part / 100))] if ascending else 0


def spread(ascending: list[int]) -> dict[str, int]:
    return (
        {"n": len(ascending)}
        | {f"p{part}": percentile(ascending, part) for part in (50, 90, 99)}
        | {"max": percentile(ascending, 100)}
    )


def write(outcome: Outcome, folder: Path = FOLDER) -> None:
    """Keeps a run; the one before it of its kind is gone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{'plain' if outcome.wiped_at is None else 'wiped'}.json").write_bytes(
        msgspec.json.encode(outcome) + b"\n"
    )


def read(folder: Path = FOLDER) -> list[Outcome]:
    """What is kept: the plain run, the one with a wipe."""
    files = [folder / f"{name}.json" for name in ("plain", "wiped")]
    return [msgspec.json.decode(file.read_bytes(), type=Outcome) for file in files if file.exists()]
