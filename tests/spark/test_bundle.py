"""The zip for somebody's own Spark: it is whole, and needs PySpark with its numpy alone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark

from facade.programs.cli.cli import main
from spark.bundle import write

# Only the zip, the standard library and PySpark with its numpy: no package of ours or others is
# importable otherwise.
SCRIPT = """
import importlib.util, pathlib, sys
sys.path[:0] = [sys.argv[1]]
sys.path.append(sys.argv[2])
import spark.reports.report, spark.live.live, spark.dead_letters.selection, spark.sql_job
from schemas.registry import schema_ids, schema_text
from spark.page.page import page_of
assert all(schema_text(number) for number in schema_ids())
print(spark.reports.report.__file__)
print(len((importlib.resources.files("spark.page") / "style.css").read_text()) > 1000)
"""


def test_the_jobs_run_from_the_zip_alone(tmp_path: Path) -> None:
    path, others = tmp_path / "leaseway-spark.zip", tmp_path / "others"
    assert main(["spark-zip", str(path)]) == 0
    others.mkdir()
    home = Path(pyspark.__file__).parents[1]
    for name in ("pyspark", "py4j", "numpy", "numpy.libs"):
        (others / name).symlink_to(home / name)

    command = [sys.executable, "-I", "-S", "-c", SCRIPT, str(path), str(others)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.splitlines() == [f"{path}/spark/reports/report.py", "True"]


def test_equal_contents_are_an_equal_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    assert write(one) == write(two) > 40
    assert one.read_bytes() == two.read_bytes()
    assert {name.partition("/")[0] for name in zipfile.ZipFile(one).namelist()} == {"schemas", "spark"}
