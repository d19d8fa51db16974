"""`python -m native.wheels build|twice|install|toolchain`, as the Makefile calls it.

build TOOLS     wheels in dist/wheels, and requirements/front.lock
twice TOOLS     builds once more, in another folder with crates of its own: are the bytes the same?
install         what the lock has for this platform, by pip
toolchain       the Rust that builds wheels, by rustup
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from native.wheels import lock
from native.wheels.build import RUST, BuildError, build
from native.wheels.install import install

OUT = lock.ROOT / "dist" / "wheels"


def main() -> int:
    parser = argparse.ArgumentParser(prog="native.wheels")
    parser.add_argument("what", choices=("build", "twice", "install", "toolchain"))
    parser.add_argument("tools", nargs="?", type=Path, help="folder with what requirements/wheels.lock names")
    given = parser.parse_args()
    if given.what == "install":
        return 0 if install(print) else 1
    if given.what == "toolchain":
        targets = [word for target in lock.TARGETS.values() for word in ("--target", target)]
        return subprocess.run(["rustup", "toolchain", "install", RUST, "--profile", "minimal", *targets], check=False).returncode
    try:
        return _twice(given.tools.resolve()) if given.what == "twice" else _build(given.tools.resolve())
    except BuildError as error:
        print(f"wheels: {error}", file=sys.stderr)
        return 1


def _build(tools: Path) -> int:
    sums = build(tools, OUT, print)
    lock.path().write_text(lock.render(lock.Lock(lock.version(), lock.sources(), sums)))
    print(f"wheels: requirements/front.lock names {len(sums)} of {len(lock.TARGETS)} platforms; a release has all")
    return 0 if sums else 1


def _twice(tools: Path) -> int:
    """1 when there is a wheel in dist/wheels that is not the same when it is built elsewhere."""
    with tempfile.TemporaryDirectory(prefix="lw-wheels-") as folder:
        elsewhere = Path(folder, "a", "checkout")
        shutil.copytree(lock.ROOT / "native", elsewhere / "native", ignore=shutil.ignore_patterns("target"))
        shutil.copy(lock.ROOT / "LICENSE", elsewhere)
        # Crates and what zig has compiled are had anew; one job at a time, for another order.
        os.environ |= {"CARGO_HOME": f"{folder}/home", "XDG_CACHE_HOME": f"{folder}/cache", "CARGO_BUILD_JOBS": "1"}
        again = build(tools, elsewhere / "wheels", lambda line: None, elsewhere)
    here = {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in OUT.glob("*.whl")}
    other = [name for name in again if again[name] != here.get(name)]
    print(f"wheels: {len(again)} built elsewhere, {f'not the same: {other}' if other else 'the same bytes'}")
    return 1 if other or not again else 0


if __name__ == "__main__":
    sys.exit(main())
