"""The views of a warehouse in SQL, over tables of this process; over a warehouse, `tests/spark` has
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from schemas.identity import ids_of
from spark.lake.answers.subset import NotCommon
from spark.lake.answers.views import TIMES, VIEWS, told_of

ALL = (None, None)
PLACES = {name: name for name in (*TIMES, "deliveries")}
HERE, DEAD = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


@pytest.fixture
def db() -> Iterator[Any]:
    """Messages of which two are dead letters, and one a copy that was skipped."""
    with duckdb.connect() as opened:
        origin = (
            "STRUCT(from_id VARCHAR, from_tag VARCHAR, reason VARCHAR, note VARCHAR, original_id VARCHAR, "
            "original_queue VARCHAR, original_tag VARCHAR, original_sent_at_ms BIGINT, first_received_at_ms BIGINT, "
            "receive_count BIGINT)"
        )
        opened.execute(
            f"""SET TimeZone = 'UTC'; CREATE TABLE messages (queue VARCHAR, incarnation VARCHAR, partition INT,
            "offset" BIGINT, status VARCHAR, sent_at TIMESTAMPTZ, body BLOB, body_text VARCHAR, body_bytes BIGINT,
            attributes MAP(VARCHAR, VARCHAR), sender VARCHAR, "group" VARCHAR, priority INT, origin {origin});
            CREATE TABLE lifecycles (incarnation VARCHAR, partition INT, "offset" BIGINT, tag_id INT,
            settled_how VARCHAR, settled_at TIMESTAMPTZ);
            CREATE TABLE control (queue VARCHAR, incarnation VARCHAR, deleted BOOLEAN, log_offset BIGINT,
            log_partition INT, logged_at TIMESTAMPTZ);
            INSERT INTO control VALUES ('orders', '{HERE}', false, 1, 0, NULL), ('gone', 'c', true, 2, 0, NULL)"""
        )
        yield opened


def plant(db: Any, offset: int, reason: str | None, from_id: str, how: str | None, received_ms: int = 0) -> None:
    origin = [from_id, "t", reason, "", "o", "orders", "default", 1_000, received_ms, 3]
    db.execute(
        """INSERT INTO messages SELECT 'dead', ?, 0, ?, 'shown', make_timestamptz(5000000), NULL, 'x', 1, NULL, 's', '',
        0, row(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        [DEAD, offset, *origin],
    )
    db.execute(
        "INSERT INTO lifecycles VALUES (?, 0, ?, 0, ?, NULL), (?, 0, ?, 7, 'acked', NULL)",
        [DEAD, offset, how, DEAD, offset],
    )


def asked(db: Any, name: str, columns: str, span: tuple[int | None, int | None] = ALL) -> list[tuple[Any, ...]]:
    told = re.sub(r"iceberg_scan\('(\w+)'\)", r"\1", told_of(name, PLACES, 0, span))
    rows: list[tuple[Any, ...]] = db.execute(f"SELECT {columns} FROM {told} ORDER BY 1").fetchall()
    return rows


@pytest.mark.parametrize(("partition", "offset"), [(0, 0), (4095, (1 << 40) - 1), (7, 123_456_789_012)])
def test_a_dead_letter_says_where_it_came_from(db: Any, partition: int, offset: int) -> None:
    plant(db, 5, "killed", ids_of(b"secret", HERE, partition)(offset), None, 4_000)
    plant(db, 6, None, "", None)
    found = asked(
        db,
        "dead_letters",
        "address, source_queue, source_partition, source_offset, lived_ms, epoch_ms(first_received_at)",
    )
    assert found == [(f"{DEAD}/0/5", "orders", partition, offset, 4_000, 4_000)]


def test_the_default_tag_says_what_became_of_a_dead_letter(db: Any) -> None:
    for offset, how in enumerate((None, "moved", "skipped")):
        plant(db, offset, "exhausted", ids_of(b"secret", "dddddddddddd", 1)(offset), how)
    found = asked(db, "dead_letters", "address, source_queue, settled_how, first_received_at")
    assert found == [(f"{DEAD}/0/0", None, None, None), (f"{DEAD}/0/1", None, "moved", None)]
    assert len(asked(db, "dead_letters", "address", (5_000, 5_001))) == 2
    assert asked(db, "dead_letters", "address", (5_001, None)) == []


def test_a_day_has_the_sum_of_its_minutes_in_utc(db: Any) -> None:
    db.execute(
        """CREATE TABLE queue_minutes (minute TIMESTAMPTZ, queue VARCHAR, tag VARCHAR, principal VARCHAR,
        measure VARCHAR, requests BIGINT, messages BIGINT, bytes BIGINT)"""
    )
    day_ms = 86_400_000
    for ms, measure, messages in ((day_ms - 60_000, "sent", 1), (day_ms, "sent", 2), (day_ms + 60_000, "sent", 3)):
        row = [ms, measure, messages, 10 * messages]
        db.execute("INSERT INTO queue_minutes SELECT make_timestamptz(?::BIGINT * 1000), 'q', '', 'p', ?, 9, ?, ?", row)
    db.execute("INSERT INTO queue_minutes SELECT make_timestamptz(0), 'q', 't', '', 'leased', 1, 4, 0")
    columns = "date::VARCHAR, queue, tag, principal, sent, sent_bytes, leased"
    whole = [("1970-01-01", "q", "", "p", 1, 10, 0), ("1970-01-01", "q", "t", "", 0, 0, 4)]
    assert sorted(asked(db, "usage_daily", columns)) == [*whole, ("1970-01-02", "q", "", "p", 5, 50, 0)]
    # Of minutes that are in the span.
    assert asked(db, "usage_daily", "sent", (day_ms, day_ms + 1)) == [(2,)]


def test_queues_that_are_gone_are_not_shown(db: Any) -> None:
    assert asked(db, "queues", "queue") == [("orders",)]


def test_a_view_of_a_table_that_is_not_there_is_refused() -> None:
    for name in VIEWS:
        with pytest.raises(NotCommon, match="is no table yet"):
            told_of(name, {}, 0, ALL)
    with pytest.raises(NotCommon, match="deliveries of a span"):
        told_of("deliveries", PLACES, 0, (1, None))
