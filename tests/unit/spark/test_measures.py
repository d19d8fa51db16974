"""What a live job says of itself, from the progress of a query as Spark has it, and a folder."""

from __future__ import annotations

from pathlib import Path

from spark.live.measures import FILE, write

PROGRESS = {
    "name": "sends",
    "timestamp": "2026-03-01T00:00:10.000Z",
    "batchId": 7,
    "numInputRows": 30,
    "durationMs": {"triggerExecution": 1500},
    "sources": [
        {
            "endOffset": {"lw.q.a": {"0": 10, "1": 20}},
            "latestOffset": {"lw.q.a": {"0": 15, "1": 20}, "lw.q.new": {"0": 3}},
        }
    ],
}
# While it has read nothing, a source has no offsets.
IDLE = {"name": "events", "timestamp": "2026-03-01T00:00:11.500Z", "batchId": 0, "numInputRows": 0, "durationMs": {},
        "sources": [{"endOffset": None, "latestOffset": None}]}  # fmt: skip


def test_lag_rates_state_and_files_are_written_as_prometheus_reads_them(tmp_path: Path) -> None:
    sizes = {"open/6/a": 100, "open/9/a": 1, "open/10/a": 20, "open/10/b": 3}
    given = {f"states/{name}": size for name, size in sizes.items()}
    for name, size in {**given, "tallies/stream=sends/batch=0/a": 1, "tallies/stream=sends/batch=1/a": 1}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)

    write(tmp_path, [PROGRESS, IDLE])

    lines = (tmp_path / FILE).read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        'leaseway_live_lag_records{stream="sends"} 8',
        'leaseway_live_lag_records{stream="events"} 0',
        'leaseway_live_batch{stream="sends"} 7',
        'leaseway_live_batch{stream="events"} 0',
        'leaseway_live_batch_records{stream="sends"} 30',
        'leaseway_live_batch_records{stream="events"} 0',
        'leaseway_live_batch_seconds{stream="sends"} 1.5',
        'leaseway_live_batch_seconds{stream="events"} 0',
        'leaseway_live_records_per_second{stream="sends"} 20',
        'leaseway_live_records_per_second{stream="events"} 0',
        'leaseway_live_progress_timestamp_seconds{stream="sends"} 1772323210',
        'leaseway_live_progress_timestamp_seconds{stream="events"} 1772323211.5',
        'leaseway_live_state_bytes{state="open"} 23',
        'leaseway_live_files{folder="tallies"} 2',
        'leaseway_live_files{folder="leases"} 0',
        'leaseway_live_files{folder="states"} 4',
        'leaseway_live_files{folder="checkpoints"} 0',
    ]
    assert lines[0] == "# HELP leaseway_live_lag_records Records that the log had behind the last micro-batch."
    assert lines[1] == "# TYPE leaseway_live_lag_records gauge"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [FILE]
