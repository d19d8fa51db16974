"""A snapshot packed in blocks is what the library writes, and other threads run meanwhile."""

from __future__ import annotations

import json
import threading
from io import BytesIO

import msgspec
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from schemas.pack import ROWS
from schemas.records import OpenDelivery, SnapshotRecord, TagSnapshot, Totals
from schemas.registry import schema_id, schema_text
from schemas.wire import decode, encode
from tests.unit.schemas.samples import LONGS, TEXTS

SNAPSHOT_SCHEMA = parse_schema(json.loads(schema_text(schema_id("snapshot"))))
DELIVERIES = st.builds(OpenDelivery, LONGS, LONGS, st.integers(0, 2**31 - 1), LONGS, st.integers(0, 3), LONGS)
SNAPSHOTS = st.builds(
    SnapshotRecord,
    TEXTS,
    TEXTS,
    st.integers(0, 2**31 - 1),
    LONGS,
    LONGS,
    st.lists(
        st.builds(
            TagSnapshot,
            st.integers(0, 99),
            LONGS,
            st.lists(LONGS),
            st.lists(LONGS),
            st.lists(DELIVERIES),
            totals=st.builds(Totals, *[LONGS] * 7),
        ),
        max_size=3,
    ),
    st.lists(TEXTS),
    st.lists(LONGS),
)


@given(SNAPSHOTS)
def test_a_snapshot_is_packed_as_the_library_packs_it(snapshot: SnapshotRecord) -> None:
    data, expected = encode(snapshot), BytesIO()
    schemaless_writer(expected, SNAPSHOT_SCHEMA, msgspec.to_builtins(snapshot))
    assert data[5:] == expected.getvalue()
    assert decode(data) == snapshot


def test_a_large_snapshot_lets_other_threads_run_while_it_is_packed() -> None:
    rows = [OpenDelivery(n, n + 1, 1, 1_795_313_164_012, 0, 1_795_313_164_012 + n) for n in range(50 * ROWS)]
    snapshot = SnapshotRecord(
        "q",
        "0123456789ab",
        0,
        5,
        6,
        [TagSnapshot(0, 7, [*range(9_000)], [1] * 9_000, rows)],
        ["a" * 24] * 5_000,
        [8] * 5_000,
    )
    ticks, over = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not over.wait(0.0005):
            ticks += 1

    other = threading.Thread(target=tick)
    other.start()
    data = encode(snapshot)
    over.set()
    other.join()
    assert ticks >= 10  # as one, it lets the other thread run two or three times
    assert decode(data) == snapshot
