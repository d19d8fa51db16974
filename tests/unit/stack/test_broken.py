"""What is said of data that Kafka or Redis can't start with, and that nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from facade.programs.stack.data.broken import FORMATTED, PREPARED, kafka_gone, redis_refuses, set_aside


def formatted(folder: Path, *names: str) -> Path:
    (folder / FORMATTED).touch()
    for name in names:
        path = folder / "kafka" / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name[-1].isdigit() else path.touch()
    return folder


def test_a_new_folder_and_a_whole_one_lack_nothing(tmp_path: Path) -> None:
    assert kafka_gone(tmp_path) is None
    assert kafka_gone(formatted(tmp_path, "meta.properties", "__cluster_metadata-0", "lw.q.orders-0")) is None


def test_the_topic_that_names_all_queues_is_missed_alone(tmp_path: Path) -> None:
    """Kafka makes a folder that is gone anew, and says nothing."""
    formatted(tmp_path, "meta.properties", "__cluster_metadata-0", "mine.journal-0", "mine.control-0")
    (tmp_path / PREPARED).write_text("mine\n")
    assert kafka_gone(tmp_path) is None
    (tmp_path / "kafka" / "mine.control-0").rmdir()
    told = kafka_gone(tmp_path) or ""
    assert "has no mine.control-0" in told and "--start-empty" in told
    # A start that ended before it made a topic lacks nothing.
    (tmp_path / "kafka" / "mine.journal-0").rmdir()
    assert kafka_gone(tmp_path) is None


@pytest.mark.parametrize(
    ("left", "missing"),
    [
        ((), "meta.properties"),
        (("lw.q.orders-0",), "meta.properties"),
        (("meta.properties", "lw.q.orders-0"), "__cluster_metadata-0"),
    ],
)
def test_what_is_gone_is_named_with_the_command_that_goes_on(
    tmp_path: Path, left: tuple[str, ...], missing: str
) -> None:
    told = kafka_gone(formatted(tmp_path, *left)) or ""
    assert f"has no {missing}" in told and f"leaseway up --data {tmp_path} --start-empty" in told


@pytest.mark.parametrize(
    "words",
    [
        "1:M 01 Jan 2026 # Bad file format reading the append only file appendonly.aof: make a backup",
        "1:M 01 Jan 2026 # Wrong signature trying to load DB from file",
    ],
)
def test_redis_refuses_its_file_in_its_own_words(tmp_path: Path, words: str) -> None:
    told = redis_refuses(tmp_path, f"1:M 01 Jan 2026 * Ready\n{words}\n") or ""
    assert words.partition(" # ")[2] in told and "--rebuild-redis" in told


@pytest.mark.parametrize(
    "words",
    [
        "",
        "1:M 01 Jan 2026 # Server initialized",
        "1:M * append only file loaded",
        "1:M # Short read while loading the AOF, loaded anyway",
        "1:M # Short write while writing to the AOF file: (nwritten=107, expected=612)",
        "1:M # Error writing to the AOF file: No space left on device",
        "1:M # AOF write error looks solved. The server can write again.",
    ],
)
def test_other_ends_of_redis_are_not_taken_for_that(tmp_path: Path, words: str) -> None:
    assert redis_refuses(tmp_path, words) is None


def test_data_set_aside_are_renamed_and_told_of(tmp_path: Path) -> None:
    formatted(tmp_path, "meta.properties")
    said: list[str] = []
    set_aside(tmp_path, ("kafka", "redis"), said.append)
    (kept,) = tmp_path.glob("kafka.aside-*")
    assert (kept / "meta.properties").exists() and not (tmp_path / "kafka").exists()
    assert len(said) == 1 and kept.name in said[0]
    assert kafka_gone(tmp_path) is None, "the folder is a new one"
