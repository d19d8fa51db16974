"""requirements/front.lock: which wheels there are, with their checksums, and of which sources.

pip reads it as any lock. Its comments say of which sources the wheels are: of others, nobody
installs them. Neighbours: `build` writes it, `install` has pip read it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# As in the name of a wheel -> as Rust calls it.
TARGETS: Final = {
    "manylinux_2_17_aarch64": "aarch64-unknown-linux-gnu",
    "manylinux_2_17_x86_64": "x86_64-unknown-linux-gnu",
    "musllinux_1_2_aarch64": "aarch64-unknown-linux-musl",
    "musllinux_1_2_x86_64": "x86_64-unknown-linux-musl",
}
NAME: Final = "leaseway_front"
_HEAD: Final = "# Written by `make wheels`; of no use where native/ has another checksum than this.\n"


@dataclass(frozen=True)
class Lock:
    """What the lock says. `sums` is SHA-256 by name of wheel; empty = no wheel was built yet."""

    version: str
    sources: str
    sums: Mapping[str, str]


def path(root: Path = ROOT) -> Path:
    """Where the lock of a checkout is."""
    return root / "requirements" / "front.lock"


def version(root: Path = ROOT) -> str:
    """The version of the wheels: that of the crate."""
    manifest = tomllib.loads((root / "native" / "Cargo.toml").read_text())
    return str(manifest["package"]["version"])


def sources(root: Path = ROOT) -> str:
    """A checksum of all that decides what the library does."""
    native = root / "native"
    files = [native / "Cargo.toml", native / "Cargo.lock", *sorted((native / "src").rglob("*.rs"))]
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(native)}\n" for file in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def wheel_name(version: str, platform: str) -> str:
    """The name of a wheel, as pip reads it."""
    return f"{NAME}-{version}-py3-none-{platform}.whl"


def render(lock: Lock) -> str:
    """The text of a lock; the same for the same content."""
    names = sorted(lock.sums)
    said = [_HEAD, f"# sources: {lock.sources}\n", *(f"# wheel: {name}\n" for name in names)]
    if names:
        hashes = " \\\n".join(f"    --hash=sha256:{lock.sums[name]}" for name in names)
        said.append(f"{NAME.replace('_', '-')}=={lock.version} \\\n{hashes}\n")
    return "".join(said)


def parse(text: str) -> Lock:
    """What `render` has written. Raises ValueError for anything else."""
    sources = re.search(r"^# sources: ([0-9a-f]{64})$", text, re.MULTILINE)
    names = re.findall(r"^# wheel: (\S+)$", text, re.MULTILINE)
    hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", text)
    version = re.search(rf"^{NAME.replace('_', '-')}==(\S+)", text, re.MULTILINE)
    found = Lock(version[1] if version else "", sources[1] if sources else "", dict(zip(names, hashes, strict=False)))
    if render(found) != text:
        raise ValueError("requirements/front.lock is not as `make wheels` writes it")
    return found


def read(root: Path = ROOT) -> Lock:
    """The lock of a checkout. Raises ValueError when it was written by hand, OSError."""
    return parse(path(root).read_text())


def is_stale(lock: Lock, root: Path = ROOT) -> bool:
    """Whether the sources have changed since the wheels were built."""
    return lock.sources != sources(root)
