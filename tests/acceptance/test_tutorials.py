"""The tutorials: their commands are run in their order, and print what the pages show. So do the
programs of the page on clients.

What differs from run to run (ids, handles, times, places in Kafka) is masked.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import NotFetched, environment, fetched
from tests.conftest import absent
from tests.node import node, with_packages
from tests.services import Up

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
CLIENTS = (ROOT / "docs" / "how-to" / "use-a-client.md").read_text()
_BLOCK = re.compile(r"^```(sh|json|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_END = "-- end of a block --"
# The second page has two jobs of Spark: 95 s by themselves, 270 s beside other tests, and more on a
# machine that is busy besides.
COMMANDS_S = 900
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
    script = script.replace("http://127.0.0.1:9400", up.endpoint).replace(
        "--data .data", f"--data {shlex.quote(str(up.data))}"
    )
    leaseway = f'leaseway() {{ {shlex.quote(sys.executable)} -m facade "$@" 2>/dev/null; }}\n'
    ran = subprocess.run(
        ["bash", "-euc", leaseway + script], capture_output=True, text=True, timeout=COMMANDS_S, check=False, cwd=folder
    )
    printed = ran.stdout.split(f"{_END}\n")
    for (commands, shown), output in zip(blocks(page), printed, strict=False):
        assert masked(output) == masked(shown), f"{page}:\n{commands}\n{ran.stderr}"
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def first_queue(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Up:
    """The service after the first tutorial, which the second one follows."""
    run("first-queue.md", up, tmp_path_factory.mktemp("tutorial"))
    return up


def test_the_commands_of_the_first_tutorial_print_what_it_shows(first_queue: Up) -> None:
    assert first_queue.status("/ready") == 200


@pytest.mark.timeout(COMMANDS_S + 60)
def test_the_commands_of_the_second_tutorial_print_what_it_shows(first_queue: Up, tmp_path: Path) -> None:
    run("first-report.md", first_queue, tmp_path)


def program(language: str, up: Up, about: str = "sqs") -> str:
    """The only program in a language that has the word `about`."""
    programs = re.findall(rf"^```{language}\n(.*?)^```", CLIENTS, re.MULTILINE | re.DOTALL)
    (text,) = [text for text in programs if about in text]
    return str(text).replace("http://127.0.0.1:9400", up.endpoint)


def test_the_program_in_python_says_hello(up: Up) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program("python", up)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr


def test_the_program_for_mns_says_hello(up: Up) -> None:
    try:
        folder = fetched(ROOT / "tests" / "conformance" / "mns" / "mns.lock")
    except NotFetched as error:
        absent(str(error))
    command = [sys.executable, "-c", program("py", up, "mns")]
    done = subprocess.run(command, env=environment(folder), capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr


def test_the_program_in_javascript_says_hello(up: Up, tmp_path: Path) -> None:
    try:
        folder, command = with_packages(ROOT / "tests" / "conformance" / "sqs" / "clients" / "consumer"), str(node())
    except NotFetched as error:
        absent(str(error))
    # Node looks for packages in the folders above a program.
    (tmp_path / "node_modules").symlink_to(folder / "node_modules")
    (tmp_path / "hello.mjs").write_text(program("js", up))
    done = subprocess.run(
        [command, "hello.mjs"], cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
