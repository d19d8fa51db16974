"""watermill's own suite for a Pub/Sub (Go), over its SQS client: order, redelivery, close and
reconnect of readers, many topics.

`clients/watermill` is the module that names the suite, the features and the endpoint. It runs once;
each of its tests is a case here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.clients import NotFetched
from tests.conformance.conftest import Running
from tests.conformance.shares import shared
from tests.conftest import absent
from tests.golang import NoGo, built, go
from tests.services import Up

MODULE = Path(__file__).parent / "clients" / "watermill"
SECONDS = 240
SUITE = (
    "TestPublishSubscribe",
    "TestConcurrentSubscribe",
    "TestConcurrentSubscribeMultipleTopics",
    "TestResendOnError",
    "TestNoAck",
    "TestContinueAfterSubscribeClose",
    "TestConcurrentClose",
    "TestContinueAfterErrors",
    "TestPublishSubscribeInOrder",
    "TestPublisherClose",
    "TestTopic",
    "TestMessageCtx",
    "TestSubscribeCtx",
)
# What SQS has not (groups of consumers, old messages for new readers), and what needs a command
# that restarts the service.
LEFT_OUT = ("TestConsumerGroups", "TestNewSubscriberReceivesOldMessages", "TestReconnect")
CASES = [f"{run}/{name}" for run in ("TestSingly", "TestInTens") for name in SUITE]
CASES += [
    "TestOrderOfSending",
    "TestOrderOfAFifoQueue",
    "TestAQueueWithOtherSettingsIsTaken",
    "TestAQueueThatIsMissing",
]
CASES += ["TestAReaderThatHoldsAMessageIsClosed"]


def program(endpoint: str, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the tests of the module. Skips where there is no Go."""
    try:
        go(MODULE)
        binary = built(MODULE)
    except NoGo as error:
        pytest.skip(str(error))
    except NotFetched as error:
        absent(str(error))
    return subprocess.run(
        [str(binary), "-test.v=test2json", f"-test.timeout={SECONDS}s", *words],
        env={**os.environ, "SQS_ENDPOINT": endpoint, **variables}, capture_output=True, timeout=SECONDS + 30,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(up: Up | Running) -> dict[str, tuple[str, str]]:
    """How each Go test ended (pass, fail, skip), and what it printed with the tests below it; of
    one that did not end, what the program printed last.
    """
    with shared(up, "watermill"):
        ran = program(up.endpoint, "-test.skip=^TestRounds$")
    lines = subprocess.run([go(MODULE), "tool", "test2json"], input=ran.stdout, capture_output=True, check=True).stdout
    ended: dict[str, str] = {}
    printed: dict[str, str] = defaultdict(str)
    for event in map(json.loads, lines.splitlines()):
        # The suite puts a test of a random name below each of its own.
        name = "/".join(event.get("Test", "").split("/")[:2])
        printed[name] += event.get("Output", "")
        if event["Action"] in {"pass", "fail", "skip"}:
            ended[name] = "skip" if event["Action"] == "skip" or ended.get(name) == "skip" else event["Action"]
    last = (ran.stdout + ran.stderr).decode(errors="replace")
    found = {name: ("not ended", last[last.find("panic: ") :][:4000]) for name in CASES}
    return found | {name: (how, printed[name]) for name, how in ended.items() if name}


@pytest.mark.parametrize("case", CASES)
def test_watermill_s_suite_passes(outcomes: dict[str, tuple[str, str]], case: str) -> None:
    how, printed = outcomes[case]

    assert how == "pass", printed[-4000:]


def test_no_test_of_the_suite_is_left_out_unseen(outcomes: dict[str, tuple[str, str]]) -> None:
    skipped = {name for name, (how, _) in outcomes.items() if how == "skip"}

    assert skipped == {f"{run}/{name}" for run in ("TestSingly", "TestInTens") for name in LEFT_OUT}
    assert set(outcomes) - skipped - {"TestSingly", "TestInTens"} == set(CASES)
