"""A library as a wheel that holds nothing else but licences. The same library gives the same bytes.

Nothing is compressed: two zlibs need not compress alike. This module must not know how a library is
built.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from typing import Final

from native.wheels.lock import NAME

LIBRARY: Final = f"lib{NAME}.so"
# The first that a zip file can say.
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644 << 16
_UNIX: Final = 3


def pack(library: bytes, version: str, platform: str, licences: Mapping[str, bytes]) -> bytes:
    """The wheel. `licences`: texts by the path that they get among the licences."""
    about = f"{NAME}-{version}.dist-info"
    files = {
        f"{NAME}/{LIBRARY}": library,
        f"{about}/METADATA": _metadata(version).encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: leaseway\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode(),
        **{f"{about}/licenses/{place}": licences[place] for place in sorted(licences)},
    }
    record = "".join(f"{place},sha256={_digest(content)},{len(content)}\n" for place, content in files.items())
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as wheel:
        for place, content in files.items():
            entry = zipfile.ZipInfo(place, _DATE)
            entry.external_attr, entry.create_system = _MODE, _UNIX
            wheel.writestr(entry, content)
    return written.getvalue()


def _metadata(version: str) -> str:
    return (
        f"Metadata-Version: 2.1\nName: {NAME.replace('_', '-')}\nVersion: {version}\n"
        "Summary: The native front of Leaseway, a queue service: a library that its workers load. Of no use alone.\n"
        "License: Apache-2.0\n"
    )


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
