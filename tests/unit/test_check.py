"""`make check` finds the unit tests of what has changed."""

from __future__ import annotations

import pytest

from tests.check import ALWAYS, READERS, ROOT, concerned_by, imported


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("import schemas.wire", {"schemas.wire"}),
        ("from schemas import wire, registry", {"schemas", "schemas.wire", "schemas.registry"}),
        ("    from schemas import wire", set()),
    ],
)
def test_a_line_imports_modules(line: str, names: set[str]) -> None:
    assert imported(line) == names


def test_a_change_of_a_module_concerns_the_tests_that_import_it() -> None:
    found = concerned_by(["schemas/topics.py"])
    assert "tests/unit/schemas/test_topics.py" in found
    assert "tests/unit/schemas/test_filters.py" not in found
    assert set(ALWAYS) <= set(found)


def test_changed_tests_and_documents_are_tested() -> None:
    assert "tests/unit/test_check.py" in concerned_by(["tests/unit/test_check.py"])
    assert "tests/integration/test_far.py" not in concerned_by(["tests/integration/test_far.py"])
    assert concerned_by([]) == sorted(ALWAYS)


def test_a_change_of_the_judge_concerns_its_tests() -> None:
    assert {"tests/judge/test_checkers.py", "tests/judge/test_report.py"} <= set(concerned_by(["tests/judge/story.py"]))
    assert "tests/judge/test_report.py" not in concerned_by(["tests/faults/run.py"])


@pytest.mark.parametrize("name", ["README.md", "state/lua/include/handle.lua", "schemas/avro/queue.1.avsc"])
def test_a_file_that_no_test_imports_concerns_the_tests_that_read_it(name: str) -> None:
    readers = READERS[f".{name.rpartition('.')[2]}"]
    assert set(readers) <= set(concerned_by([name]))
    assert [path for path in (*readers, *ALWAYS) if not (ROOT / path).is_file()] == []
