"""Who can reach a Spark driver while a job runs: nobody on another machine, nobody without the
secret of the cluster.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from facade.programs.stack.processes.ports import free_port
from facade.programs.stack.processes.spark_submit import command, run
from spark.frames.log import BadOption, reach_master
from spark.frames.session import session

LOOPBACK = "127.0.0.1"


def listening(pid: int) -> set[str]:
    """Returns the addresses on which a process listens, in the form of /proc."""
    inodes = {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir() if fd.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                found.add(fields[1].rpartition(":")[0])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
def test_the_driver_and_its_block_manager_listen_on_loopback_alone(spark_session: SparkSession) -> None:
    spark_session.range(10).count()
    jvm = spark_session.sparkContext._jvm
    assert jvm is not None
    addresses = listening(int(jvm.java.lang.ProcessHandle.current().pid()))

    assert addresses, "a driver listens somewhere"
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert addresses <= loopback


def test_a_job_of_the_user_is_guarded_unless_its_owner_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback = [f"spark.driver.host={LOOPBACK}", f"spark.driver.bindAddress={LOOPBACK}"]
    for words, confs in (
        (["job.py"], loopback),
        (["--master", "local[4]", "job.py"], loopback),
        (["shell"], loopback),
        (["--master", "spark://h:7077", "job.py"], ["spark.authenticate=true"]),
        (["--master=yarn", "job.py"], ["spark.authenticate=true"]),
        (["--conf", "spark.master=k8s://h", "job.py"], ["spark.authenticate=true"]),
    ):
        made = command(words)
        given = [made[at + 1] for at, word in enumerate(made) if word == "--conf"]
        assert [conf for conf in given if conf.startswith(("spark.driver", "spark.auth"))] == confs
    given = command(["--conf", "spark.authenticate=false", "--master", "yarn", "job.py"])
    assert given.index("spark.authenticate=true") < given.index("spark.authenticate=false"), "the later one counts"
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not [word for word in command(["job.py"]) if word.startswith(("spark.driver", "spark.auth"))]


def test_a_standalone_cluster_without_its_secret_is_refused_in_one_line(spark_session: SparkSession) -> None:
    with pytest.raises(BadOption, match=r"--master spark://h:7077: give spark\.authenticate\.secret"):
        session("x", "spark://h:7077")


def test_a_standalone_cluster_that_is_not_there_is_one_line() -> None:
    port = free_port()
    master = f"spark://{LOOPBACK}:{port}"
    with pytest.raises(BadOption, match=rf"^--master {master}: no master can be reached: Connection refused$"):
        reach_master(master)
    with pytest.raises(BadOption, match=r"--master: 'h' is not HOST:PORT"):
        reach_master("spark://h")
    with socket.create_server((LOOPBACK, 0)) as there:
        reach_master(f"{master},{LOOPBACK}:{there.getsockname()[1]}")


def test_a_master_that_spark_does_not_take_is_an_option_that_cannot_be_used() -> None:
    begin = "from spark.frames.session import session; session('x', 'local[x')"
    ended = subprocess.run([sys.executable, "-c", begin], capture_output=True, text=True, timeout=240, check=False)
    said = "BadOption: --master local[x: Spark does not start: Could not parse Master URL: 'local[x'"
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, f"spark.frames.log.{said}")


def test_a_file_of_the_user_gets_the_memory_and_the_logs_that_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda _program, _words, environment: begun.append(environment))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dmine=1")
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)
    run(["count.py"])
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "3g")
    run(["count.py"])

    assert [environment["SPARK_DRIVER_MEMORY"] for environment in begun] == ["2g", "3g"]
    options = begun[0]["SPARK_SUBMIT_OPTS"].split()
    assert "-Dleaseway.spark.log=WARN" in options and options[-1] == "-Dmine=1"
