"""Answers that are late, cut short, or none of a Leaseway."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from facade.programs.connect.client import Client
from facade.programs.connect.failures import Refused, Unreachable
from facade.programs.connect.profiles import Connection
from tests.unit.cli.service import Cli

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


@contextmanager
def raw(pieces: Sequence[bytes], pause_s: float = 0.0) -> Iterator[str]:
    """A server that answers each connection with pieces, and closes it. Yields its endpoint."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            while True:
                taken, _ = listening.accept()
                with taken:
                    taken.settimeout(10)
                    taken.recv(65536)
                    for piece in pieces:
                        taken.sendall(piece)
                        time.sleep(pause_s)
                    taken.shutdown(socket.SHUT_WR)
                    while taken.recv(65536):
                        pass
        except OSError:
            return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)


@pytest.mark.parametrize("content", [b'{"name": "a"', b'{"name": "a"}', b""])
def test_an_answer_that_is_cut_short_is_none(content: bytes) -> None:
    with raw([HEAD % 50 + content]) as endpoint:
        client = Client(Connection(endpoint=endpoint))
        with pytest.raises(Unreachable, match="cut its answer short; it may have been done all the same") as changed:
            client.post("/v1/queues", {"name": "a"})
        with pytest.raises(Unreachable, match=r"cut its answer short$") as looked:
            client.get("/v1/queues")

    assert (changed.value.sent, looked.value.sent) == (True, False)


@pytest.mark.parametrize("drops", [HEAD % 50, b"HTTP/1.1 200 OK\r\nx: " + b"y" * 50], ids=["body", "head"])
def test_an_answer_that_drips_ends_with_the_timeout(drops: bytes) -> None:
    pieces = [HEAD % 50, *[b" "] * 50] if drops == HEAD % 50 else [drops[n : n + 1] for n in range(len(drops))]
    began = time.monotonic()
    with raw(pieces, pause_s=0.05) as endpoint:
        client = Client(Connection(endpoint=endpoint, timeout_s=0.3))
        with pytest.raises(Unreachable, match=r"did not answer within 0.3 s \(--timeout\)"):
            client.get("/v1/queues")
        took = time.monotonic() - began
        client.close()

    assert 0.25 < took < 1.5


def test_a_slow_answer_within_the_timeout_is_one() -> None:
    with raw([b"HTTP/1.1 200 OK\r\n", (HEAD % 2).partition(b"\r\n")[2], b"{", b"}"], pause_s=0.02) as endpoint:
        client = Client(Connection(endpoint=endpoint, timeout_s=5))
        assert client.get("/v1/queues") == {}
        client.close()


def test_a_request_has_no_more_than_what_is_left() -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(Connection(endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=20))
        client.until(began + 0.1)
        with pytest.raises(Unreachable):
            client.get("/v1/queues")
        client.until(began - 5)
        with pytest.raises(Unreachable):
            client.get("/v1/queues")

    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("status", "code"), [(401, 4), (403, 4), (404, 3), (502, 5), (503, 5), (504, 5), (500, 1)])
def test_the_status_counts_before_the_type(status: int, code: int, cli: Cli) -> None:
    cli.service.on("GET /v1/queues/a", (status, b"<html>"))

    ran = cli("queue", "show", "a")

    assert (ran.code, ran.out) == (code, "")
    assert f"answered {status} with text/html, not JSON" in ran.err


def test_a_redirect_or_a_refusal_without_a_body_is_one_by_its_status(cli: Cli) -> None:
    client = Client(Connection(endpoint=cli.service.endpoint))
    cli.service.on("GET /v1/a", (401, None))
    cli.service.on("GET /v1/b", (302, b"moved"))

    for path, status in (("/v1/a", 401), ("/v1/b", 302)):
        with pytest.raises(Refused) as refused:
            client.get(path)
        assert refused.value.status == status
    client.close()


@pytest.mark.parametrize("answer", [(200, None), (204, None), (200, [1]), (200, "x")])
def test_an_answer_without_the_body_that_is_needed_is_named(answer: tuple[int, object], cli: Cli) -> None:
    cli.service.on("GET /v1/queues", answer)

    ran = cli("queue", "ls")

    assert (ran.code, ran.out) == (1, "")
    assert "without a JSON object: is it a Leaseway?" in ran.err


@pytest.mark.parametrize("wait", ["-100", "inf", "nan"])
def test_a_wait_that_can_not_be_is_refused_in_words(wait: str, cli: Cli) -> None:
    cli.service.on("POST /v1/queues/q/receive", (400, {"detail": "wait_seconds must be 0 to 60."}))

    ran = cli("message", "receive", "q", "--wait-seconds", wait)

    assert (ran.code, ran.out) == (2, "")
    assert ("wait_seconds must be" if wait == "-100" else "must be a number of seconds, such as 30") in ran.err


def test_bytes_that_are_no_text_may_be_in_a_key_and_in_a_name(cli: Cli) -> None:
    assert cli("queue", "show", "\udcff", "--key", "\udcff:x").code == 3

    assert cli.service.asked[0][1] == "/v1/queues/%FF"
    assert cli.service.headers[0]["authorization"] == "Basic /zp4"
