"""The native front in place of the listening of uvicorn's server, which still starts and stops the
app.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from facade.http.bounds.bounds import BOUNDS, Bounds
from facade.http.sockets.listener import Listener, Routes, Served

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


class Certified(Protocol):
    """A certificate that may be renewed."""

    renewed: Callable[[bytes, bytes], None]

    def pem(self) -> tuple[bytes, bytes]:
        """The certificate with its chain, and its key, in PEM."""


def listen(
    bound: socket.socket,
    config: Config,
    state: ServerState,
    app_state: dict[str, Any],
    routes: Routes | None,
    certificate: Certified | None = None,
) -> Callable[[], None]:
    """Accepts on `bound` until uvicorn's server shuts down, in TLS with a certificate; what is
    returned ends all. Raises OSError, ValueError for a certificate that can't be shown.
    """
    connections: set[Any] = state.connections
    bounds = app_state.get(BOUNDS) or Bounds()
    listener = Listener(
        bound,
        routes,
        Served(config.loaded_app, app_state, state.tasks, "http" if certificate is None else "https"),
        config.timeout_keep_alive,
        bounds.connections.most,
        connections.discard,
        bounds.count,
        certificate=None if certificate is None else certificate.pem(),
    )
    if certificate is not None:
        certificate.renewed = listener.certify
    # uvicorn asks each of these to shut down, and waits until none is left.
    connections.add(listener)
    return listener.close
