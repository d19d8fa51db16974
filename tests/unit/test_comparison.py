"""What docs/explanation/comparison.md says of Leaseway is what settings and limits say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from engine.settings import variable_of
from facade.config import Settings
from schemas.records.settings import DAY_MS, MAX_DELAY_MS
from schemas.vocabulary import PRIORITIES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "comparison.md"
FIELDS = {variable_of(field.name): field for field in dataclasses.fields(Settings)}
# Rows that hold because of a setting, and the setting.
BY_SETTING = {
    "TLS": "LEASEWAY_TLS_CERT",
    "authentication and policies": "LEASEWAY_AUTH",
    "quotas of users and accounts": "LEASEWAY_QUOTAS",
}
# The dialects, as the page calls them, by the folder of each.
DIALECTS = {"native": "REST", "sqs": "SQS", "emq": "EMQ", "mns": "MNS", "rocketmq": "RocketMQ 5"}


def rows() -> dict[str, str]:
    """What is said of Leaseway, by what it is about."""
    told = PAGE.read_text().split("## What is different", 1)[1]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in told.splitlines() if line.startswith("|")
    ]
    return {cell[0]: cell[1] for cell in cells if len(cell) == 4}


@pytest.mark.parametrize(("about", "variable"), BY_SETTING.items())
def test_what_a_setting_gives_is_said_and_names_it(about: str, variable: str) -> None:
    assert variable in FIELDS
    assert rows()[about] == f"yes (`{variable}`)"


def test_each_dialect_is_named_and_the_port_of_the_one_that_has_its_own() -> None:
    dialects = PAGE.parents[2] / "facade" / "dialects"
    assert {folder.parent.name for folder in dialects.glob("*/wire")} == DIALECTS.keys()
    assert rows()["APIs for queues"] == ", ".join(DIALECTS.values()) + " (`LEASEWAY_ROCKETMQ_PORT`)"
    assert FIELDS["LEASEWAY_ROCKETMQ_PORT"].default == 0, "it is off by default, so the page names it"


def test_each_setting_that_the_page_names_exists() -> None:
    named = set(re.findall(r"LEASEWAY_[A-Z_]+", PAGE.read_text()))
    assert named and named <= FIELDS.keys()


def test_numbers_are_those_of_the_limits() -> None:
    assert rows()["longest delay"].startswith(f"{MAX_DELAY_MS // DAY_MS} days (native)")
    assert rows()["priority of messages"].startswith(f"yes, {PRIORITIES} levels")
