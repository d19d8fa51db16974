"""The first minutes of the README: its commands are run as they stand there, and print what it says
that they print.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.acceptance.traffic import Client
from tests.services import Up

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """What stands in the README between fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def shape(value: Any) -> Any:
    """Names in their order and types, without the values."""
    if isinstance(value, dict):
        return [(name, shape(part)) for name, part in value.items()]
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__


def test_the_commands_of_the_readme_print_what_it_shows(up: Up, client: Client) -> None:
    (start,) = [block for block in blocks("sh") if "make up" in block]
    (commands,) = [block for block in blocks("sh") if "leaseway message" in block]
    (shown,) = blocks("text")
    assert start == "make up\n"

    leaseway = f'leaseway() {{ {sys.executable} -m facade "$@"; }}\n'
    environment = {**os.environ, "LEASEWAY_ENDPOINT": up.endpoint}
    done = subprocess.run(
        ["bash", "-euc", leaseway + commands], capture_output=True, text=True, timeout=60, check=True, env=environment
    )

    printed, expected = done.stdout.splitlines(), shown.splitlines()
    assert printed.pop(0) == expected.pop(0) == "orders"
    assert [shape(json.loads(line)) for line in printed] == [shape(json.loads(line)) for line in expected]
    # Printed in one line without blanks, as shown.
    for line in expected:
        assert line == json.dumps(json.loads(line), separators=(",", ":"))
    sent, message = map(json.loads, printed)
    assert (message["id"], message["body"], message["receive_count"]) == (sent["id"], "hello", 1)
    status, queue = client.call("GET", "/v1/queues/orders")
    assert (status, queue["tags"][0]["backlog"]) == (200, 0)


def test_the_commands_that_up_prints_work(up: Up, client: Client) -> None:
    up.wait_line("message receive orders")
    printed = [line.strip() for line in up.lines]
    commands = [line for line in printed if re.match(r"export |\S*leaseway (queue|message) ", line)]
    assert len(commands) == 4, printed

    done = subprocess.run(
        ["bash", "-euc", "\n".join(commands)], capture_output=True, text=True, timeout=60, check=True, env=os.environ
    )

    assert "hello" in done.stdout
    status, queue = client.call("GET", "/v1/queues/orders")
    assert (status, queue["tags"][0]["backlog"]) == (200, 0)
