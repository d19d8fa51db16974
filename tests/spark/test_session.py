"""What the owner of a cluster says wins over what we advise: through a real spark-submit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facade.programs.stack.processes.spark_submit import command
from spark.frames.session import fit_shuffles
from tests.spark.conftest import found_spark

JOB = """
import json, sys
from spark.frames.session import session
made = session("a job of the user")
names = sys.argv[2:]
asked = {name: made.conf.get(name, None) or made.sparkContext.getConf().get(name) for name in names}
asked["ui"] = made.sparkContext.uiWebUrl is not None
open(sys.argv[1], "w").write(json.dumps(asked))
made.stop()
"""
# Nobody says anything of these.
ADVICE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "32",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
# Of these our advice is the contrary.
SAID = {"spark.ui.showConsoleProgress": "true", "spark.sql.adaptive.enabled": "false"}
DEFAULTS = {"spark.sql.adaptive.advisoryPartitionSizeInBytes": "8m", "spark.sql.session.timeZone": "Asia/Kolkata"}


def _submitted(folder: Path, options: list[str], defaults: dict[str, str]) -> dict[str, object]:
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in defaults.items())
    )
    job, found = folder / "job.py", folder / "found.json"
    job.write_text(JOB)
    words = [*options, str(job), str(found), *ADVICE, *SAID, *DEFAULTS]
    root = str(Path(__file__).parents[2])
    environment = {
        **os.environ, "SPARK_CONF_DIR": str(folder / "conf"), "PYTHONPATH": root, "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }  # fmt: skip
    program, *given = command(["x", *words])
    given.remove("x")
    ended = subprocess.run([program, *given], env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    told: dict[str, object] = json.loads(found.read_text())
    return told


def test_spark_submit_and_spark_defaults_win_over_our_advice_but_not_over_utc(tmp_path: Path) -> None:
    found_spark()
    options = [word for name, value in SAID.items() for word in ("--conf", f"{name}={value}")]

    found = _submitted(tmp_path, options, DEFAULTS)

    assert found == {**ADVICE, **SAID, **DEFAULTS, "spark.sql.session.timeZone": "UTC", "ui": False}


def test_shuffles_begin_with_as_many_parts_as_their_input_asks_for(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "rows")
    spark_session.range(50_000).write.parquet(path)
    rows = spark_session.read.parquet(path)
    size = sum(file.stat().st_size for file in Path(path).glob("*.parquet"))

    assert fit_shuffles(rows) == 32
    monkeypatch.setattr("spark.frames.session._FILES_OF_A_TASK", size // 40)
    assert fit_shuffles(rows) == 40
    assert fit_shuffles(rows, rows) == 80
    monkeypatch.setattr("spark.frames.session._FILES_OF_A_TASK", 1)
    assert fit_shuffles(rows) == 1_000
    name = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
    assert spark_session.conf.get(name, None) is None, "who says how many shuffle partitions there are is obeyed"
