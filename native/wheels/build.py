"""Builds the library for every platform, as wheels in dist/wheels, and writes their checksums.

The same sources give the same bytes in any folder: the compiler's version is RUST, the linker and
the C libraries come with `requirements/wheels.lock`, and paths are replaced. Neighbours: `wheel`
packs, `lock` has the checksums.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from native.wheels import lock
from native.wheels.wheel import LIBRARY, pack

RUST: Final = "1.95.0"
# The oldest C library of GNU that the wheels run with.
GLIBC: Final = (2, 17)
_MANIFEST: Final = ("--manifest-path", "native/Cargo.toml")
_LICENCES: Final = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "UNLICENSE*", "COPYRIGHT*")


class BuildError(Exception):
    """No wheel, or not one that can be given away; the text says why in one line."""


def build(tools: Path, out: Path, say: Callable[[str], None], root: Path = lock.ROOT) -> dict[str, str]:
    """Writes a wheel for each target that the toolchain can build for; SHA-256 by name. Raises
    BuildError.
    """
    about = toolchain(root)
    if about["release"] != RUST:
        raise BuildError(f"the wheels are built by Rust {RUST}, here is {about['release']}: make wheel-toolchain")
    # Others have no place in the lock.
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    sums = {}
    for platform, target in lock.TARGETS.items():
        if not Path(_said(["rustc", "--print", "target-libdir", "--target", target], root)).is_dir():
            say(f"wheels: no {platform}, Rust here has no standard library of {target}: make wheel-toolchain")
            continue
        content = pack(library(target, tools, root), lock.version(root), platform, licences(target, root))
        name = lock.wheel_name(lock.version(root), platform)
        (out / name).write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
        say(f"wheels: {name}, {len(content):,} bytes, {sums[name]}")
    return sums


def toolchain(root: Path = lock.ROOT) -> dict[str, str]:
    """What rustc says of itself: release, commit-hash and more. Raises BuildError."""
    lines = _said(["rustc", "-vV"], root).splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def library(target: str, tools: Path, root: Path = lock.ROOT) -> bytes:
    """The library for a target, stripped. Raises BuildError."""
    into = root / ".cache" / "wheels" / "target"
    environment = {
        **_environment(),
        "PATH": f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(tools),
        "CARGO_ZIGBUILD_ZIG_PATH": str(tools / "ziglang" / "zig"),
        "CARGO_TARGET_DIR": str(into),
        "CARGO_PROFILE_RELEASE_DEBUG": "false",
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
    }
    _said(["cargo", "fetch", "-q", "--locked", *_MANIFEST], root, environment)
    environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(_flags(target, root, toolchain(root)["commit-hash"]))
    named = f"{target}.{GLIBC[0]}.{GLIBC[1]}" if target.endswith("-gnu") else target
    command = ["cargo-zigbuild", "zigbuild", "-q", "--release", "--locked", *_MANIFEST, "--target", named]
    _said(command, root, environment)
    content = (into / target / "release" / LIBRARY).read_bytes()
    check(content, target)
    return content


def _flags(target: str, root: Path, commit: str) -> list[str]:
    """No path of this machine is in what is built."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sysroot = _said(["rustc", "--print", "sysroot"], root)
    # The last that fits counts. Without its sources, the standard library has that path anyway.
    replaced = {str(root): "/leaseway", str(home): "/cargo", f"{sysroot}/lib/rustlib/src/rust": f"/rustc/{commit}"}
    replaced |= {str(registry): "/crates" for registry in sorted((home / "registry" / "src").glob("*"))}
    flags = [f"--remap-path-prefix={old}={new}" for old, new in replaced.items()]
    return flags + (["-Ctarget-feature=-crt-static"] if target.endswith("-musl") else [])


def check(content: bytes, target: str) -> None:
    """Raises BuildError when a library needs a newer C library than its platform has, or
    another.
    """
    needed = {(int(major), int(minor)) for major, minor in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", content)}
    if target.endswith("-gnu") != bool(needed) or max(needed, default=GLIBC) > GLIBC:
        raise BuildError(f"the library for {target} needs GNU's C library of {sorted(needed)[-1:] or 'no version'}")


def licences(target: str, root: Path = lock.ROOT) -> dict[str, bytes]:
    """The licences of this project and of the crates that a library holds. Raises BuildError."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target, *_MANIFEST]
    packages: list[dict[str, Any]] = json.loads(_said(command, root))["packages"]
    found = {"LICENSE": (root / "LICENSE").read_bytes()}
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        if folder == root / "native":
            continue
        files = {file for pattern in _LICENCES for file in folder.glob(pattern) if file.is_file()}
        if not files:
            raise BuildError(f"{package['name']} has no file with its licence")
        found |= {f"{package['name']}-{package['version']}/{file.name}": file.read_bytes() for file in files}
    return found


def _environment() -> dict[str, str]:
    """What rustup obeys; without rustup, the version is what it is."""
    return {"RUSTUP_TOOLCHAIN": RUST, **os.environ}


def _said(command: list[str], root: Path, environment: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=root, env=environment or _environment(), capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(f"{command[0]} can't be run: {error.strerror}") from None
    if done.returncode:
        raise BuildError(f"{' '.join(command[:2])} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout.strip()
