"""The data folder: made, kept, locked, and refused when it is broken."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from facade.programs.stack.data.folder import DataFolder
from facade.programs.stack.processes.errors import StackError


def test_a_folder_keeps_its_identity_and_secrets_when_opened_again(tmp_path: Path) -> None:
    first = DataFolder.open(tmp_path / "new" / "deep")
    kept = (first.identity, first.secret("secret"))
    first.close()

    second = DataFolder.open(tmp_path / "new" / "deep")

    assert (second.identity, second.secret("secret")) == kept
    second.close()


def test_a_folder_forgets_the_run_file_of_a_killed_supervisor(tmp_path: Path) -> None:
    DataFolder.open(tmp_path).close()
    (tmp_path / "run.json").write_text("{}")

    DataFolder.open(tmp_path)

    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "is broken: stack.json can't be read (JSONDecodeError"),
        ("[]", "is broken: stack.json can't be read (TypeError"),
        ('{"format": 2}', "is broken: stack.json can't be read (TypeError"),
        ('{"format": 99}', "has format 99; this version of Leaseway reads format 2"),
    ],
)
def test_a_broken_folder_is_refused_by_what_is_wrong(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "stack.json").write_text(text)

    with pytest.raises(StackError) as refused:
        DataFolder.open(tmp_path)

    assert line in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")

    with pytest.raises(StackError, match=r"not empty and not Leaseway's \(no stack\.json, but thesis\.txt\)"):
        DataFolder.open(tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StackError, match="can't be made"):
        DataFolder.open(tmp_path / "file")


def test_a_full_disk_is_refused_and_the_lock_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 1024 * 1024))
        with pytest.raises(StackError, match="1 MiB of disk are free, 512 MiB are the least"):
            DataFolder.open(tmp_path)

    DataFolder.open(tmp_path).close()


def test_the_run_file_is_replaced_whole(tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path)
    folder.write_run({"endpoint": "one"})
    folder.write_run({"endpoint": "two"})

    assert json.loads((tmp_path / "run.json").read_text()) == {"endpoint": "two"}
    assert not (tmp_path / "run.json.new").exists()
    folder.close()
    assert not (tmp_path / "run.json").exists()
