"""The tutorials: their commands are run in their order, and print what the pages show.

What differs from run to run (ids, handles, times, places in Kafka) is masked.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.services import Up

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
_BLOCK = re.compile(r"^```(sh|json|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_END = "-- end of a block --"
_MASKS = (
    (r'"(\w*id|handle)":"[^"]*"', r'"\1":"..."'),
    (r'"(\w+_ms|partition|offset)":\d+', r'"\1":0'),
    (r"\d{4}-\d\d-\d\dT[\d.]+", "TIME"),
    (r"made in [\d.]+ s", "made in 0 s"),
    (r"(?m) +$", ""),
)


def blocks(page: str) -> list[tuple[str, str]]:
    """Commands of each block that is run, and what the page shows as output ('' = nothing)."""
    found: list[tuple[str, str]] = []
    for language, text in _BLOCK.findall((TUTORIALS / page).read_text()):
        if language == "sh":
            found.append((text, ""))
        else:
            found[-1] = (found[-1][0], text)
    return [(commands, shown) for commands, shown in found if not commands.startswith("make ")]


def masked(text: str) -> str:
    for pattern, put in _MASKS:
        text = re.sub(pattern, put, text)
    return text.strip()


def run(page: str, up: Up, folder: Path) -> None:
    """Runs a page in one shell; fails at the first block that prints something else."""
    script = "\n".join(f"{commands}\necho '{_END}'" for commands, _ in blocks(page))
    script = script.replace("http://127.0.0.1:9400", up.endpoint).replace("--data .data", f"--data {shlex.quote(str(up.data))}")
    leaseway = f'leaseway() {{ {shlex.quote(sys.executable)} -m facade "$@" 2>/dev/null; }}\n'
    ran = subprocess.run(["bash", "-euc", leaseway + script], capture_output=True, text=True, timeout=390, check=False, cwd=folder)
    printed = ran.stdout.split(f"{_END}\n")
    for (commands, shown), output in zip(blocks(page), printed, strict=False):
        assert masked(output) == masked(shown), f"{page}:\n{commands}\n{ran.stderr}"
    assert ran.returncode == 0, ran.stderr


def test_the_commands_of_the_tutorials_print_what_they_show(up: Up, tmp_path: Path) -> None:
    # The second one reads what the first one did.
    run("first-queue.md", up, tmp_path)
    run("first-report.md", up, tmp_path)
