"""What failed beside other groups is run once more by itself, but for what looks for broken
promises.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tiers
from tests.tiers import MOST_AGAIN, ROOT, SLOW_CLIENTS, TIERS, Group, run_again, run_beside, told

ONCE = """
from pathlib import Path

import logging

import pytest

@pytest.mark.parametrize("which", ["a one", "b"])
def test_fails_the_first_time(which):
    seen = Path(__file__).with_suffix("." + which[0])
    before = seen.exists()
    logging.getLogger("some.part").error("what pytest shows of a test that fails")
    seen.touch()
    assert before or which == "b"
"""
ALWAYS = "def test_fails():\n    assert False\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Within the project: pytest names no test outside of it."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache") as made:
        yield Path(made)


def ran(folder: Path, **texts: str) -> list[Group]:
    """A group for each file, which has ended."""
    groups = []
    for name, text in texts.items():
        path = folder / f"test_{name}.py"
        path.write_text(text)
        groups.append(Group(name, (str(path),)))
    run_beside(groups, 1)
    return groups


def test_what_failed_once_passes_by_itself_and_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    groups = ran(folder, once=ONCE, good="def test_good():\n    pass\n")
    assert [group.status for group in groups] == [1, 0]
    assert run_again(groups) == [0, 0]
    told = capfd.readouterr().out
    assert "failed beside others and passed by themselves" in told and "test_fails_the_first_time[a one]" in told
    assert "1 passed" in told


def test_what_fails_again_fails_and_is_named_last(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    groups = ran(folder, once=ONCE, always=ALWAYS)
    assert told(groups, run_again(groups)) == 1
    last = capfd.readouterr().out.splitlines()[-1]
    assert last.startswith("always: FAILED") and "test_fails" in last


def test_what_cannot_be_collected_fails(folder: Path) -> None:
    assert run_again(ran(folder, broken="import nothing_of_that_name\n")) == [2]


def test_a_broken_promise_is_not_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (group,) = groups = ran(folder, once=ONCE)
    monkeypatch.setattr(tiers, "PROMISES", (group.failed[0].partition("::")[0],))
    assert run_again(groups) == [1]


def test_when_much_fails_nothing_is_repeated(folder: Path) -> None:
    (group,) = groups = ran(folder, once=ONCE)
    group.failed *= MOST_AGAIN + 1
    assert run_again(groups) == [1]


def test_no_more_groups_run_beside_each_other_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    now, most, ended = 0, 0, []

    def run(group: Group) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        time.sleep(0.05)
        now -= 1
        ended.append(group)

    monkeypatch.setattr(Group, "run", run)
    groups = [Group(str(number), ()) for number in range(7)]
    run_beside(groups, 3)
    assert most == 3 and set(ended) == set(groups)


def test_the_full_tier_has_every_test() -> None:
    options = [option for group in TIERS["full"].values() for option in group]
    ignored = {option.removeprefix("--ignore=") for option in options if option.startswith("--ignore=")}
    begun = {option for option in options if option.startswith("tests/")}
    assert ignored <= begun | {f"tests/conformance/sqs/test_{client}.py" for client in SLOW_CLIENTS}
    for path in (ROOT / "tests").rglob("test_*.py"):
        name = path.relative_to(ROOT)
        assert any(str(part) in begun for part in (name, *name.parents)), name
