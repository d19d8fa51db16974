"""Each checker passes a clean history and finds every breach planted in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judge import check_rest
from tests.judge.book import Book, clean, letter
from tests.judge.checkers import CHECKERS, TIMED, check
from tests.judge.histories import BROKEN, CLEAN, letters, rest
from tests.judge.history import Line, Recorder, read


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_history_passes(name: str) -> None:
    checker, book = CLEAN[name]
    verdict = checker(book.story)
    assert verdict.valid, verdict.breaches
    assert sum(verdict.counts.values()) > 0, "nothing was looked at"


@pytest.mark.parametrize("name", BROKEN)
def test_a_planted_breach_is_found(name: str) -> None:
    checker, book, kind = BROKEN[name]
    verdict = checker(book.story)
    assert not verdict.valid
    assert any(text.startswith(f"{kind}: ") for text in verdict.breaches), verdict.breaches


def steady() -> Book:
    return Book().queue(steady=True).fault(1000, "kill", 2000)


def test_recovery_is_measured_until_the_last_steady_queue_sends_and_lends() -> None:
    book = steady().queue("p", steady=True).send(1500, "early")
    book.send(2500, "a").lease(2600, "a").send(3000, "b", queue="p").lease(3990, "b", queue="p")
    assert list(check_rest.recoveries(book.story).values()) == [2.0]
    assert check_rest.live(book.story, within_s=2.1).valid
    assert not check_rest.live(book.story, within_s=1.9).valid


@pytest.mark.parametrize(
    "book",
    [
        steady().lease(2600, "a"),
        steady().send(2600, "a"),
        steady().send(1500, "a").lease(1600, "a"),
        steady().send(2500, "a").receive(2600),
    ],
    ids=["no send", "no receive", "both before the heal", "nothing received"],
)
def test_a_service_that_stays_away_is_found(book: Book) -> None:
    assert not check_rest.live(book.story, within_s=60).valid


def test_a_fault_that_was_never_healed_is_found() -> None:
    book = steady().send(2500, "a").lease(2600, "a")
    book.lines = [line for line in book.lines if line.type != "heal"]
    assert check_rest.live(book.story, within_s=60).breaches == ["not healed: kill, line 4"]


def test_every_checker_has_a_clean_and_a_broken_history() -> None:
    for checker in (*CHECKERS, letters.late, rest.works, rest.live):
        assert any(row[0] is checker for row in CLEAN.values()), checker
        assert any(row[0] is checker for row in BROKEN.values()), checker
    names = [verdict.name for verdict in check(clean().story, 60)]
    assert len(set(names)) == len(names) == len(CHECKERS) + len(TIMED)


def test_a_history_is_read_back_as_it_was_written_but_for_a_cut_line(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "h.jsonl")
    book = letter(500).fault(600, "wipe", 700, loses=True).rest(900)
    for line in book.lines[1:]:
        recorder.write(line)
    recorder.close()
    recorder.write(Line("note", 1))
    with (tmp_path / "h.jsonl").open("ab") as file:
        file.write(b'{"type":"inv')
    found, wanted = read(tmp_path / "h.jsonl"), book.story.history
    assert found.ops == wanted.ops
    assert (found.faults, found.losses) == (wanted.faults, wanted.losses)
