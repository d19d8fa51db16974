"""dramatiq over its SQS broker: actors, retries, delays, pipelines, dead letters, and what a
consumer gives back.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.clients import NotFetched, environment, fetched
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conftest import absent
from tests.services import Up

HERE = Path(__file__).parent


def test_a_program_with_dramatiq_does_every_message_as_often_as_it_should(up: Up | Running, name: str) -> None:
    try:
        folder = fetched(HERE / "dramatiq.lock")
    except NotFetched as error:
        absent(str(error))
    keys = {"AWS_ACCESS_KEY_ID": "shop", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "eu-central-1"}
    # It polls without a wait too: Python looks at the ends of the log before it says "nothing".
    with shared(up, "dramatiq", 0.85):
        ran = subprocess.run(
            [sys.executable, "actors.py", name], env={**environment(folder), **keys, "AWS_ENDPOINT_URL": up.endpoint},
            cwd=HERE / "clients", capture_output=True, text=True, timeout=150, check=False,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    did = json.loads(ran.stdout)

    assert did["done"] == {str(number): 1 for number in range(200)}
    assert did["tries"] == {"0": 3, "1": 3, "2": 3, "3": 3}
    assert did["dead"] == 2
    assert len(did["early"]) == 1 and did["early"][0] <= 0
    assert did["piped"] == [3, 7]
    assert did["given_back"] == [0, 1, 2, 3]
    assert did["labels"] == {"team": "shop"}
