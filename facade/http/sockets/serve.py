"""The native front in place of the listening of uvicorn's server, which still starts and stops the
app.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from facade.http.bounds.bounds import BOUNDS, Bounds
from facade.http.sockets.listener import Listener, Plain, Served

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


def listen(bound: socket.socket, config: Config, state: ServerState, app_state: dict[str, Any], plain: Plain | None) -> Callable[[], None]:
    """Accepts on `bound` until uvicorn's server shuts down; what is returned ends all. Raises
    OSError.
    """
    connections: set[Any] = state.connections
    bounds = app_state.get(BOUNDS) or Bounds()
    served = Served(config.loaded_app, app_state, state.tasks)
    listener = Listener(bound, plain, served, config.timeout_keep_alive, bounds.connections.most, connections.discard, bounds.count)
    # uvicorn asks each of these to shut down, and waits until none is left.
    connections.add(listener)
    return listener.close
