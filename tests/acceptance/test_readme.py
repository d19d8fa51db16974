"""The first minutes of the README: its commands are run as they stand there, and print what it says
that they print.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.acceptance.traffic import Client
from tests.services import Up

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """What stands in the README between fences of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def shape(value: Any) -> Any:
    """Names and types, without the values."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value).__name__


def documents(text: str) -> list[Any]:
    """JSON documents that were printed one after the other."""
    found, decoder = [], json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def test_the_commands_of_the_readme_print_what_it_shows(up: Up, client: Client) -> None:
    (start,) = [block for block in blocks("sh") if "make up" in block]
    (commands,) = [block for block in blocks("sh") if "curl" in block]
    (shown,) = blocks("json")
    assert start == "make up\n"

    ran = commands.replace("http://127.0.0.1:9400", up.endpoint)
    done = subprocess.run(["bash", "-euc", ran], capture_output=True, text=True, timeout=60, check=True)
    _created, sent, received = documents(done.stdout)

    assert shape(received) == shape(json.loads(shown))
    (message,), (sent_id,) = received["messages"], [one["id"] for one in sent["messages"]]
    assert (message["id"], message["body"], message["receive_count"]) == (sent_id, "hello", 1)
    status, acked = client.call("POST", "/v1/queues/orders/ack", {"handles": [message["handle"]]})
    assert (status, [one["status"] for one in acked["results"]]) == (200, ["ok"])
