"""Are there advisories on the packages of the locks? `python -m tests.advisories`, as `make audit`.

Asks what the index knows of each version, by pip-audit. Where it knows nothing of any package (an
index may be a mirror without advisories), the age of the locks has to do: ends with 1 for an
advisory, or for locks that are older than DAYS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = ("run", "spark", "test")
TOOL = "pip-audit==2.10.1"
SECONDS = 120
DAYS = 90


def verdict(found: list[dict[str, Any]] | None, age_days: float | None) -> tuple[bool, str]:
    """Whether all is well, and why in a line. `found`: the packages as pip-audit tells of them,
    None = it told nothing; `age_days` of the oldest lock, None = not known.
    """
    asked = [one for one in found or () if "skip_reason" not in one]
    bad = [
        f"{one['name']} {one['version']}: {', '.join(v['id'] for v in one['vulns'])}" for one in asked if one["vulns"]
    ]
    if bad:
        return False, "advisories on locked packages (make lock may help): " + "; ".join(bad)
    if asked:
        return True, f"no advisory on {len(asked)} packages, {len(found or ()) - len(asked)} are not known to the index"
    about = "the index knows no advisories"
    if age_days is None:
        return True, f"{about}, and the age of the locks is not known here"
    return age_days <= DAYS, f"{about}; the locks are {age_days:.0f} days old, {DAYS} at most: make lock"


def _asked() -> list[dict[str, Any]] | None:
    uv = Path(sys.executable).with_name("uv")
    command = [
        str(uv),
        "run",
        "-q",
        "--no-project",
        "--isolated",
        "--with",
        TOOL,
        "pip-audit",
        "--disable-pip",
        "--require-hashes",
    ]
    command += [
        "-f",
        "json",
        "--progress-spinner",
        "off",
        *(part for lock in LOCKS for part in ("-r", f"requirements/{lock}.lock")),
    ]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError):
        return None
    return found


def _age_days() -> float | None:
    """Of the lock that was written first; a checkout knows when."""
    times = []
    for lock in LOCKS:
        command = ["git", "log", "-1", "--format=%ct", "--", f"requirements/{lock}.lock"]
        try:
            said = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
            ).stdout.strip()
        except OSError:
            return None
        if not said:
            return None
        times.append(int(said))
    return (time.time() - min(times)) / 86_400


def main() -> int:
    well, about = verdict(_asked(), _age_days())
    print(f"audit: {about}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
