"""How often, and how soon, `leaseway up` starts on a fresh folder while the machine has far more to
do than it can.

    python -m benchmarks.busy_starts [--starts 10] [--busy 30]

The busy processes only compute, and end by themselves. Each start has a temporary folder, listens
on 127.0.0.1 only, and is stopped when it is ready.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.broker_restart import busy
from facade.programs.stack.processes.ports import free_port

READY = re.compile(r"ready after ([0-9.]+) s")
STOP_S = 300.0


def start(folder: Path) -> dict[str, Any]:
    """One start and stop: when it was ready, or why it was not."""
    command = [
        sys.executable,
        "-m",
        "facade",
        "up",
        "--data",
        str(folder / "data"),
        "--port",
        str(free_port()),
        "--no-console",
    ]
    lines: list[str] = []
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if READY.search(line):
                process.terminate()
        status = process.wait(STOP_S)
    ready = next((float(found[1]) for line in lines if (found := READY.search(line))), None)
    if ready is None:
        return {"ready_s": None, "status": status, "said": lines[-1:], "ended_s": round(time.monotonic() - began, 1)}
    return {"ready_s": ready, "status": status, "load": round(os.getloadavg()[0], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--busy", type=int, default=30)
    options = parser.parse_args()
    started = 0
    for number in range(1, options.starts + 1):
        with tempfile.TemporaryDirectory() as folder, busy(options.busy):
            found = start(Path(folder))
        started += found["ready_s"] is not None
        print(json.dumps({"start": number, **found}), flush=True)
    print(json.dumps({"started": started, "of": options.starts, "busy": options.busy}))


if __name__ == "__main__":
    main()
