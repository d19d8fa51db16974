"""The whole suite of this folder once more, with the last boto3 that speaks the query protocol.

That boto3 needs another botocore than ours, so it runs in a process of its own, against the same
service.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.clients import ROOT, NotFetched, environment, fetched
from tests.conformance.conftest import Running
from tests.conftest import absent
from tests.services import Up

HERE = Path(__file__).parent
CASES = 230


def test_the_suite_passes_with_the_query_protocol(up: Up, strict: Running, spaces: Running) -> None:
    try:
        folder = fetched(HERE / "query.lock")
    except NotFetched as error:
        absent(str(error))
    # The other clients are the same whatever boto3 is here.
    programs = ("aws_cli", "celery", "consumer", "dramatiq", "kombu", "query_client", "watermill")
    others = [f"--ignore={HERE / name}" for name in ("clients", *(f"test_{program}.py" for program in programs))]
    endpoints = {
        "SQS_ENDPOINT": up.endpoint,
        "SQS_STRICT_ENDPOINT": strict.endpoint,
        "SQS_SPACES_ENDPOINT": spaces.endpoint,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE), *others],
        env={**environment(folder), **endpoints, "SQS_PROTOCOL": "query"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= CASES
