"""`leaseway console`: its options, made into an order."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from facade.programs.console.order import IDLE_S, PORT, TIMEOUT_S, Order
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.ports import is_free


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its options."""
    parser.add_argument("--endpoint", help="the service (default LEASEWAY_ENDPOINT, else http://127.0.0.1:9400)")
    parser.add_argument("--ca-file", default="", help="file of the CA that has signed the certificate of the service")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=PORT, help=f"port to listen on (default {PORT})")
    parser.add_argument(
        "--hosts", default="", help="further names under which browsers reach it, with commas in between"
    )
    parser.add_argument(
        "--key-file", type=Path, help="file with a secret that seals sessions, so that they outlive the process"
    )
    parser.add_argument(
        "--idle-minutes",
        type=float,
        default=IDLE_S / 60,
        help="a session that is not used for so long ends (default 60)",
    )
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_S, help="seconds that the service may take to answer (default 5)"
    )
    parser.add_argument(
        "--reports", default="", help="folder that `leaseway report --out` writes to: causes of dead letters are shown"
    )
    parser.add_argument("--tls-cert", default="", help="file with a certificate, for HTTPS")
    parser.add_argument("--tls-key", default="", help="file with its key")
    parser.add_argument(
        "--behind-https", action="store_true", help="a proxy before it speaks HTTPS, so cookies are for HTTPS alone"
    )


def run(given: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Serves until it is asked to stop. Raises StackError: it can't."""
    order = order_of(given)
    if not is_free(order.host, order.port):
        raise StackError(f"port {order.port} of {order.host} is in use or not permitted; give --port another number")
    from facade.programs.console.serve import serve

    scheme = "https" if order.tls_cert else "http"
    host = f"[{order.host}]" if ":" in order.host else order.host
    say(f"the console of {order.endpoint} is {scheme}://{host}:{order.port}")
    serve(order)
    return 0


def order_of(given: argparse.Namespace) -> Order:
    """The order that options ask for. Raises StackError."""
    # Here: every process of ours builds the parser, and few are a console.
    from facade.programs.connect.failures import Failure
    from facade.programs.connect.profiles import ENDPOINT, LOCAL_ENDPOINT, checked_endpoint

    if not 1 <= given.port <= 65_535:
        raise StackError(f"--port is 1 to 65535, given {given.port}")
    if not 0 < given.idle_minutes <= 1440:
        raise StackError(f"--idle-minutes is more than 0 and at most 1440, given {given.idle_minutes:g}")
    if not 0 < given.timeout <= 60:
        raise StackError(f"--timeout is more than 0 and at most 60, given {given.timeout:g}")
    if bool(given.tls_cert) != bool(given.tls_key):
        raise StackError("--tls-cert and --tls-key go together")
    try:
        endpoint = checked_endpoint(given.endpoint or os.environ.get(ENDPOINT) or LOCAL_ENDPOINT)
    except Failure as failure:
        raise StackError(str(failure)) from None
    return Order(
        endpoint=endpoint,
        host=given.host,
        port=given.port,
        ca_file=given.ca_file,
        hosts=tuple(name.strip() for name in given.hosts.split(",") if name.strip()),
        key=_key(given.key_file),
        idle_s=given.idle_minutes * 60,
        timeout_s=given.timeout,
        tls_cert=given.tls_cert,
        tls_key=given.tls_key,
        is_behind_https=given.behind_https,
        reports=given.reports,
    )


def _key(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        key = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StackError(f"--key-file {file} can't be read: {error}") from None
    if len(key) < 16:
        raise StackError(
            f"--key-file {file} has {len(key)} characters, 16 are the least: `openssl rand -base64 32` makes one"
        )
    return key
