"""Where the log is: options of the command line, settings of Kafka clients, times."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark.__main__ import main
from spark.log import BadOption, Log, log_arguments, log_of, moment, properties


def test_security_settings_go_to_the_kafka_source_and_not_into_texts(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text('# of the brokers\nsecurity.protocol = SASL_SSL\nsasl.jaas.config=x required password="a=b";\n\nssl.key.password=p\n')
    parser = ArgumentParser()
    log_arguments(parser)
    given = parser.parse_args(["--bootstrap", "k:1", "--prefix", "t", "--kafka-config", str(file), "--kafka", "ssl.key.password=q"])

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
