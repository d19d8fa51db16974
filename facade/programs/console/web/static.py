"""Files that pages load: read once, compressed once, named by what is in them."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

FOLDER: Final = Path(__file__).resolve().parent.parent / "static"
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class _File(NamedTuple):
    kind: str
    content: bytes
    packed: bytes
    mark: str


class Static:
    """The files of a folder, by their names."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {path.name: _read(path) for path in sorted(folder.iterdir()) if path.suffix in _TYPES}

    def link(self, name: str) -> str:
        """The path of a file, which is another one when its content is."""
        return f"/static/{name}?{self._files[name].mark}"

    async def serve(self, request: Request) -> Response:
        """A file, or 404."""
        file = self._files.get(request.path_params["name"])
        if file is None:
            return Response("There is no such file.\n", 404, media_type="text/plain")
        named = request.url.query == file.mark
        headers = {
            "cache-control": _FOR_EVER if named else "no-cache",
            "vary": "accept-encoding",
            "content-type": file.kind,
        }
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, headers={**headers, "content-encoding": "gzip"})
        return Response(file.content, headers=headers)


def _read(path: Path) -> _File:
    content = path.read_bytes()
    return _File(
        _TYPES[path.suffix], content, gzip.compress(content, 9, mtime=0), hashlib.sha256(content).hexdigest()[:12]
    )
