"""The case that no other test has, once and short: a replica that lags is promoted, and one worker
reaches it later than the other. `make two-redis` runs all cases.
"""

from __future__ import annotations

from pathlib import Path

from tests.services import Services
from tests.two_redis.__main__ import run


def test_a_replica_that_lags_is_promoted(stack: Services, tmp_path: Path) -> None:
    verdict = run("stale", 1, before_s=1.0, split_s=3.0, path=tmp_path / "stage", bootstrap=stack.bootstrap)
    assert not verdict.broken, "\n".join(verdict.broken)
    assert verdict.figures["named"] == 1
    assert verdict.figures["durable_acks"] > 50, verdict.figures
