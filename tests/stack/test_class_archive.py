"""The class archive of Kafka is made, used, and never needed. The real JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from facade.programs.stack import broker, class_archive
from facade.programs.stack.processes.errors import StackError
from tests.services import running_services


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def test_the_broker_uses_the_archive_that_set_up_made(
    programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "classes.jsa"
    monkeypatch.setattr(broker, "class_archive", lambda _java: made)
    said: list[str] = []
    class_archive.make(said.append)
    assert made.stat().st_size > 20_000_000 and len(said) == 1 and "class archive" in said[0]
    class_archive.make(said.append)
    assert len(said) == 1, "it is there already"
    with running_services(tmp_path / "data") as services:
        assert str(made) in maps(services.kafka_pid)
        assert "jsa" not in (tmp_path / "data" / "logs" / "kafka.out").read_text()


def test_kafka_starts_with_an_archive_that_is_broken(
    programs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken.jsa"
    broken.write_bytes(b"no archive" * 1000)
    monkeypatch.setattr(broker, "class_archive", lambda _java: broken)
    with running_services(tmp_path / "data") as services:
        assert str(broken) not in maps(services.kafka_pid)


def test_an_archive_that_can_not_be_made_is_said_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StackError("no room")

    monkeypatch.setattr(broker, "class_archive", lambda _java: tmp_path / "classes.jsa")
    monkeypatch.setattr(broker, "program", refuse)
    said: list[str] = []
    class_archive.make(said.append)
    assert "is not made (no room)" in said[-1] and not list(tmp_path.iterdir())
