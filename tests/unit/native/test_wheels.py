"""Wheels of the native front: what is in one, and what the lock says of them."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from pathlib import Path

import pytest

from native.wheels import lock
from native.wheels.build import BuildError, check
from native.wheels.lock import Lock
from native.wheels.wheel import pack

LICENCES = {"LICENSE": b"ours", "crate-1.0/LICENSE-MIT": b"theirs"}
SUMS = {lock.wheel_name("0.1.0", platform): hashlib.sha256(platform.encode()).hexdigest() for platform in lock.TARGETS}


def test_a_wheel_holds_the_library_and_licences_and_no_code() -> None:
    wheel = zipfile.ZipFile(io.BytesIO(pack(b"\x7fELF", "0.1.0", "linux_x86_64", LICENCES)))

    about = "leaseway_front-0.1.0.dist-info"
    assert [name for name in wheel.namelist() if not name.startswith(about)] == ["leaseway_front/libleaseway_front.so"]
    assert wheel.read(f"{about}/licenses/crate-1.0/LICENSE-MIT") == b"theirs"
    recorded = {line.split(",")[0] for line in wheel.read(f"{about}/RECORD").decode().splitlines()}
    assert recorded == set(wheel.namelist())
    assert wheel.testzip() is None


def test_the_same_library_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    first = pack(b"\x7fELF", "0.1.0", "linux_x86_64", LICENCES)
    monkeypatch.setattr("time.time", lambda: 0.0)
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    assert pack(b"\x7fELF", "0.1.0", "linux_x86_64", dict(reversed(LICENCES.items()))) == first
    assert pack(b"\x7fELG", "0.1.0", "linux_x86_64", LICENCES) != first


@pytest.mark.parametrize(
    ("content", "target", "well"),
    [
        (b"\0GLIBC_2.2.5\0GLIBC_2.17\0", "x86_64-unknown-linux-gnu", True),
        (b"\0GLIBC_2.2.5\0GLIBC_2.18\0", "x86_64-unknown-linux-gnu", False),
        (b"\0GLIBC_3.0\0", "aarch64-unknown-linux-gnu", False),
        (b"libc.so\0", "x86_64-unknown-linux-gnu", False),
        (b"libc.so\0", "x86_64-unknown-linux-musl", True),
        (b"\0GLIBC_2.17\0", "x86_64-unknown-linux-musl", False),
    ],
)
def test_a_library_that_its_platform_could_not_load_is_no_wheel(content: bytes, target: str, well: bool) -> None:
    if well:
        check(content, target)
    else:
        with pytest.raises(BuildError):
            check(content, target)


@pytest.mark.parametrize("sums", [{}, dict(list(SUMS.items())[:1]), SUMS])
def test_the_lock_is_read_as_it_was_written(sums: dict[str, str]) -> None:
    written = Lock("0.1.0" if sums else "", "0" * 64, sums)

    assert lock.parse(lock.render(written)) == written


def test_a_lock_that_was_written_by_hand_is_refused() -> None:
    text = lock.render(Lock("0.1.0", "0" * 64, SUMS))

    for other in ("", text.replace("==0.1.0", "==0.1.0 "), text + "requests==2.0\n", text.replace("# sources: 0", "# sources: x")):
        with pytest.raises(ValueError, match="not as `make wheels` writes it"):
            lock.parse(other)


def test_any_change_of_the_library_makes_the_lock_stale(tmp_path: Path) -> None:
    shutil.copytree(lock.ROOT / "native", tmp_path / "native", ignore=shutil.ignore_patterns("target"))
    known = Lock("0.1.0", lock.sources(tmp_path), SUMS)
    assert known.sources == lock.sources() and not lock.is_stale(known, tmp_path)

    for name in ("Cargo.toml", "Cargo.lock", "src/c.rs"):
        file = tmp_path / "native" / name
        before = file.read_bytes()
        file.write_bytes(before + b"\n")
        assert lock.is_stale(known, tmp_path), name
        file.write_bytes(before)
    (tmp_path / "native" / "src" / "new.rs").touch()
    assert lock.is_stale(known, tmp_path)
    (tmp_path / "native" / "src" / "new.rs").unlink()
    assert not lock.is_stale(known, tmp_path)


def test_the_lock_names_wheels_of_the_platforms_that_there_are() -> None:
    found = lock.read()

    assert set(found.sums) <= {lock.wheel_name(found.version, platform) for platform in lock.TARGETS}
    if lock.is_stale(found):
        # Who edits native/ need not have what builds wheels: until a release, set-ups use cargo.
        pytest.skip("native/ has changed since the wheels were built: `make wheels` before a release (CONTRIBUTING.md)")
    assert not found.sums or found.version == lock.version()
