"""Where the log is: options of the command line, settings of Kafka clients, times."""

from __future__ import annotations

import socket
import time
from argparse import ArgumentParser
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.__main__ import main
from spark.frames.log import BadOption, Log, NoBroker, log_arguments, log_of, moment, properties, reach
from spark.frames.source import answered
from spark.reports.report import folder_of


def test_security_settings_go_to_the_kafka_source_and_not_into_texts(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# of the brokers\nsecurity.protocol = SASL_SSL\nsasl.jaas.config=x required "
        'password="a=b";\n\nssl.key.password=p\n'
    )
    parser = ArgumentParser()
    log_arguments(parser)
    given = parser.parse_args(
        ["--bootstrap", "k:1", "--prefix", "t", "--kafka-config", str(file), "--kafka", "ssl.key.password=q"]
    )

    log = log_of(given)

    assert (log.bootstrap, log.prefix) == ("k:1", "t")
    assert log.source_options == {
        "kafka.bootstrap.servers": "k:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.jaas.config": 'x required password="a=b";',
        "kafka.ssl.key.password": "q",
    }
    assert "password" not in repr(log) and Log().source_options == {"kafka.bootstrap.servers": "127.0.0.1:9092"}


@pytest.mark.parametrize("line", ["nothing", "=secret", "bootstrap.servers=k:1", "kafka.security.protocol=SSL"])
def test_a_setting_that_cannot_be_used_is_refused_without_its_value(line: str) -> None:
    with pytest.raises(BadOption) as refused:
        properties([line])
    assert "secret" not in str(refused.value)


def test_times_are_utc_unless_they_say_otherwise() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert [moment(text) for text in ("2026-03-01T12:00", "2026-03-01T13:00+01:00", "1772366400000")] == [noon] * 3


def test_a_job_refuses_a_wrong_time_before_it_starts_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--out", str(tmp_path), "--from", "soon"]) == 2
    assert main(["report", "--out", str(tmp_path), "--from", "2026-03-02", "--to", "2026-03-01"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "leaseway report: 'soon' is no time: give 2026-03-01T12:00, or epoch milliseconds",
        "leaseway report: --from must be before --to",
    ]


@pytest.mark.parametrize("job", [["report", "--out", "OUT"], ["sql", "SELECT 1 FROM queues"], ["live", "--out", "OUT"]])
def test_a_broker_that_cannot_be_reached_is_one_line_at_once(
    job: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    assert (
        main([*(str(tmp_path / "out") if word == "OUT" else word for word in job), "--bootstrap", f"127.0.0.1:{port}"])
        == 2
    )

    said = f"leaseway {job[0]}: no broker of 127.0.0.1:{port} can be reached: Connection refused\n"
    assert (capsys.readouterr().err, list(tmp_path.iterdir())) == (said, [])
    assert time.monotonic() - began < 5


def test_a_broker_that_takes_connections_and_does_not_answer_is_one_line(spark_session: SparkSession) -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        log = Log(f"127.0.0.1:{silent.getsockname()[1]}")
        reach(log)
        with pytest.raises(NoBroker) as refused:
            answered(spark_session, log)
    assert str(refused.value).startswith(
        f"the brokers of {log.bootstrap} do not answer: TimeoutException: Timed out waiting"
    )
    assert time.monotonic() - began < 40 and "\n" not in str(refused.value)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(BadOption, match="'kafka' is not HOST:PORT"):
        reach(Log("kafka"))


def test_each_report_has_a_folder_of_its_own() -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    zone = timezone(timedelta(hours=2))
    assert folder_of(day, day + timedelta(days=1)) == "2026-03-01T000000--2026-03-02T000000"
    assert (
        folder_of(day.astimezone(zone), day + timedelta(milliseconds=1)) == "2026-03-01T000000--2026-03-01T000000.001"
    )
