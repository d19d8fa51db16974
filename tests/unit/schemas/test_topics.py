"""Names in Kafka, and that nobody else spells them."""

from __future__ import annotations

import re
from pathlib import Path

import schemas
from schemas import topics

ROOT = Path(schemas.__file__).parent.parent
PACKAGES = ("engine", "facade", "spark", "state", "runtime", "schemas")


def test_names_are_what_they_were_in_every_log_that_exists() -> None:
    assert topics.queue_topic("lw", "orders") == "lw.q.orders"
    assert topics.queue_topic("lw", "orders").startswith(topics.queue_topics("lw"))
    assert topics.control_topic("lw") == "lw.control"
    assert topics.journal_topic("lw") == "lw.journal"
    assert topics.snapshot_topic("lw") == "lw.snapshot"
    assert topics.half_topic("lw") == "lw.half"
    assert topics.history_topic("lw") == "lw.history"
    assert topics.rates_topic("lw") == "lw.rates"
    assert topics.group_name("lw", "orders", "default") == "lw.orders.default"
    assert (topics.DEFAULT_PREFIX, topics.QUEUE_KEY) == ("lw", "queue/")


def test_no_other_module_makes_a_topic_name() -> None:
    spelled = re.compile(r"""prefix\}\.(q|control|journal|snapshot|half|history|rates)\b|f?["']queue/""")
    found = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "topics.py" and spelled.search(path.read_text())
    ]
    assert found == []
