"""kombu's own integration tests of its SQS transport, which its source package brings: exchanges,
acks, rejects, delays, reconnects.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from tests.clients import NotFetched, environment, fetched, source
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conftest import absent
from tests.services import Up

LOCK = Path(__file__).with_name("celery.lock")
SUITE = "t/integration/test_sqs.py"
PASSED = 35
LEFT_OUT = (
    # these four need a port where nobody is, and no service
    f"{SUITE}::test_SQSBasicFunctionality::test_failed_connect",
    f"{SUITE}::test_SQSBasicFunctionality::test_failed_connection",
    f"{SUITE}::test_SQSBasicFunctionality::test_failed_channel",
    f"{SUITE}::test_SQSBasicFunctionality::test_failed_default_channel",
    f"{SUITE}::test_SQSBaseExchangeTypes::test_fanout",  # needs SNS
    # wants 404 for a second delete, as GoAws says; AWS and we say that it is done
    f"{SUITE}::test_ack_invalid_receipt_with_backoff",
)


def test_kombu_s_own_tests_of_its_sqs_transport_pass(up: Up | Running) -> None:
    try:
        packages, folder = fetched(LOCK), source(LOCK, "kombu")
    except NotFetched as error:
        absent(str(error))
    at = urlsplit(up.endpoint)
    left_out = [f"--deselect={name}" for name in LEFT_OUT]
    # Many polls without a wait, of which Python serves those that find nothing.
    with shared(up, "kombu", 0.5):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SUITE, *left_out],
            env={**environment(packages), "SQS_HOST": str(at.hostname), "SQS_PORT": str(at.port)},
            cwd=folder, capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= PASSED
