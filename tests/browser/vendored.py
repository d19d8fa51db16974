"""Fetches what the console ships of others from npm's registry, by hash: `python -m
tests.browser.vendored` writes it to the folder of static files. The files are committed, so nobody
else needs to.
"""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from pathlib import Path

from tests.clients import ROOT, NotFetched
from tests.node import npm

FOLDER = ROOT / "facade" / "programs" / "console" / "static"
# Package, and which of its files is called what.
PACKAGES = {
    "htmx.org@4.0.1": {"package/dist/htmx.min.js": "htmx.min.js", "package/LICENSE": "htmx.licence.txt"},
    "uplot@1.6.32": {
        "package/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
        "package/dist/uPlot.min.css": "uPlot.min.css",
        "package/LICENSE": "uPlot.licence.txt",
    },
}
SHA256: dict[str, str] = {
    "htmx.min.js": "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130",
    "htmx.licence.txt": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.licence.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def fetched(package: str, files: dict[str, str]) -> dict[str, bytes]:
    """The files of a package, by the names that they get. Raises NotFetched."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        npm("pack", package, "--silent", folder=folder)
        (tarball,) = folder.glob("*.tgz")
        with tarfile.open(tarball) as archive:
            found = {to: archive.extractfile(at) for at, to in files.items()}
            return {to: file.read() for to, file in found.items() if file is not None}


def write() -> None:
    """Writes all files. Raises NotFetched when one is not what it was."""
    for package, files in PACKAGES.items():
        for name, content in fetched(package, files).items():
            digest = hashlib.sha256(content).hexdigest()
            if digest != SHA256[name]:
                raise NotFetched(f"{name} of {package} is not what it was: {digest}")
            (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    write()
