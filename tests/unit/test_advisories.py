"""What is made of what pip-audit tells."""

from __future__ import annotations

from typing import Any

from tests.advisories import DAYS, verdict


def package(name: str, *advisories: str) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": [{"id": one, "fix_versions": ["1.1"]} for one in advisories]}


UNKNOWN = {"name": "other", "skip_reason": "Dependency not found on PyPI and could not be audited: other (1.0)"}


def test_an_advisory_is_named_however_young_the_locks_are() -> None:
    well, about = verdict([package("good"), package("bad", "PYSEC-1", "GHSA-2"), UNKNOWN], 0.0)
    assert not well and "bad 1.0: PYSEC-1, GHSA-2" in about and "good" not in about


def test_without_one_the_age_does_not_matter() -> None:
    assert verdict([package("good"), UNKNOWN], 10_000.0) == (
        True,
        "no advisory on 1 packages, 1 are not known to the index",
    )


def test_an_index_without_advisories_leaves_the_age() -> None:
    for found in (None, [], [UNKNOWN]):
        assert verdict(found, DAYS)[0]
        well, about = verdict(found, DAYS + 1.0)
        assert not well and f"{DAYS + 1} days old, {DAYS} at most" in about
        assert verdict(found, None)[0]
