"""Spark's class archive is made, used, and never needed. The real JVM, and the command as people
give it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from facade.programs.stack.processes import spark_submit
from facade.programs.stack.processes.programs import find_java
from tests.services import Services
from tests.spark.conftest import found_spark

# Says with which files of /tmp the JVM runs: only those of the archive are mapped from there.
SCRIPT = """
import sys
from pathlib import Path
from facade.programs.cli.cli import main
from facade.programs.stack.processes import spark_submit
from facade.programs.stack.processes.programs import find_java
from pyspark import SparkContext
spark_submit.class_archive = lambda _java: Path(sys.argv[1])
lines = __import__("spark.sql_job").sql_job.lines
def seen(*given):
    pid = SparkContext._jvm.java.lang.ProcessHandle.current().pid()
    sys.stderr.write("mapped " + str(sys.argv[1] in Path(f"/proc/{pid}/maps").read_text()) + "\\n")
    return lines(*given)
__import__("spark.sql_job").sql_job.lines = seen
sys.exit(main(["sql", "--bootstrap", sys.argv[2], "--format", "json", "SELECT 1 AS one"]))
"""


def asked(archive: Path, bootstrap: str) -> tuple[bool, str]:
    """Whether a question's JVM has mapped an archive, and what was written to stdout."""
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(archive), bootstrap],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return "mapped True" in done.stderr, done.stdout


def _started(archive: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a JVM writes to stdout that a question would start with this archive."""
    monkeypatch.setattr(spark_submit, "class_archive", lambda _java: archive)
    words = shlex.split(spark_submit.submit_arguments(*spark_submit.ONE_COMPILER))
    options = shlex.split(words[words.index("--driver-java-options") + 1])
    assert f"-XX:SharedArchiveFile={archive}" in options
    words = [find_java(), *options, "-version"]  # Which is told on stderr.
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.timeout(600)
def test_a_question_uses_the_archive_that_set_up_made_and_needs_none(
    stack: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_spark()
    made = spark_submit.class_archive(find_java())
    said: list[str] = []
    # Set-up has made it, but for who has fetched the jars in another way.
    spark_submit.make_archive(said.append)
    assert made.stat().st_size > 50_000_000 and all("class archive" in line for line in said)
    said.clear()
    spark_submit.make_archive(said.append)
    assert said == [] and not list(made.parent.glob("tmp*"))

    broken = tmp_path / "broken.jsa"
    broken.write_bytes(b"no archive" * 1000)
    row = json.dumps({"one": 1}, separators=(",", ":")) + "\n"
    assert asked(made, stack.bootstrap) == (True, row)
    assert _started(broken, monkeypatch) == ""


def test_an_archive_that_can_not_be_made_is_said_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found_spark()
    monkeypatch.setattr(spark_submit, "class_archive", lambda _java: tmp_path / "classes.jsa")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    said: list[str] = []
    spark_submit.make_archive(said.append)
    assert "is not made" in said[-1] and not list(tmp_path.iterdir())
