"""A server of canned answers, and the program run in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from facade.programs.cli.cli import main

Answer = tuple[int, Any]


@dataclass
class Service:
    """`answers` by method and path without the query; several are given in turn, the last one
    again and again. `asked` has what came: method, path with query, body.
    """

    endpoint: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ahead_s: float = 0.0

    def on(self, request: str, *answers: Answer) -> None:
        """Answers to a request, such as "GET /v1/queues"."""
        self.answers[request] = list(answers)

    def answer(self, method: str, path: str) -> Answer:
        known = self.answers.get(f"{method} {path.partition('?')[0]}")
        if known is None:
            return 404, {"code": "path_not_found", "title": "There is nothing at this path.", "detail": f"No {path}."}
        return known.pop(0) if len(known) > 1 else known[0]


@contextmanager
def canned() -> Iterator[Service]:
    """A running service."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length)
            service.asked.append((self.command, self.path, json.loads(body) if body else None))
            service.headers.append(dict(self.headers))
            status, content = service.answer(self.command, self.path)
            data = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
            self.send_response_only(status)
            self.send_header("date", formatdate(time.time() + service.ahead_s, usegmt=True))
            kind = "text/html" if isinstance(content, bytes) else "application/json"
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True)
class Ran:
    """What a run has printed, and its exit status."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """Runs the program against a service."""

    def __init__(self, service: Service, capsys: pytest.CaptureFixture[str]) -> None:
        self.service = service
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        code = main(arguments)
        out, err = self._capsys.readouterr()
        return Ran(code, out, err)
