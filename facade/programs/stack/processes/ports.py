"""Ports: is one free, find one, keep one."""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from facade.programs.stack.processes.errors import StackError

LOWEST = 20_000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def family_of(host: str) -> socket.AddressFamily:
    """The address family of a host name or address. Raises StackError when it can't be resolved."""
    try:
        return socket.AddressFamily(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0])
    except OSError as error:
        raise StackError(f"host {host!r} can't be resolved: {error.strerror or error}") from None


def is_free(host: str, port: int) -> bool:
    """Whether a server could bind this port now."""
    with socket.socket(family_of(host)) as probe:
        # As servers do; without it, connections in TIME_WAIT would look like a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            # Linux lets a socket bind beside listeners that allow it, and objects when it listens.
            probe.listen()
        except OSError:
            return False
    return True


def free_port(*taken: int) -> int:
    """A port of 127.0.0.1 that is free now and not in `taken`.

    Below the ephemeral range: in it, a client that reconnects to a dead server can be given the
    server's own port, connect to itself, and keep the server from coming back.
    """
    try:
        first_ephemeral = int(EPHEMERAL_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first_ephemeral = 32_768
    highest = max(first_ephemeral, LOWEST + 1000)
    for _ in range(200):
        port = random.randrange(LOWEST, highest)
        if port not in taken and is_free("127.0.0.1", port):
            return port
    raise StackError(f"no free port found between {LOWEST} and {highest} after 200 tries")


def reuse_port_socket(host: str, port: int) -> socket.socket:
    """A bound socket that shares its port with the other workers' sockets; it gets connections once
    it listens.

    Bound and never listening, it reserves the port. Raises StackError when the port can't be bound.
    """
    bound = socket.socket(family_of(host))
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise StackError(f"port {port} of {host} can't be used: {error.strerror}") from None
    return bound


def reserve(host: str, port: int, option: str = "--port") -> socket.socket:
    """A port of the facade, which `option` names, kept until the socket is closed, so that it isn't
    lost while workers restart.

    Raises StackError when something has it.
    """
    if not is_free(host, port):
        raise StackError(
            f"port {port} of {host} is in use or not permitted; stop what uses it, or give {option} another number"
        )
    kept = reuse_port_socket(host, port)
    # It was needed to bind beside old connections; from now on it would let others listen here.
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return kept


@contextlib.contextmanager
def reserved(host: str, ports: Mapping[str, int]) -> Iterator[None]:
    """Keeps ports, by the options that name them; 0 = there is none. Raises StackError as
    `reserve`.
    """
    with contextlib.ExitStack() as kept:
        for option, port in ports.items():
            if port:
                kept.enter_context(reserve(host, port, option))
        yield
