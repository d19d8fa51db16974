"""Where Redis is and how to greet it, out of its URL: redis-py reads the URL, so every option of
TLS and access control has its name and meaning there.

It must not open anything.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field

from redis.asyncio.connection import AbstractConnection, ConnectionPool, SSLConnection
from redis.exceptions import RedisError

# Of a URL that names none. Not redis-py's "localhost": that may be ::1 first, where the embedded
# redis-server does not listen.
# In a URL: scheme://user:password@host, and ?password=..., ?ssl_password=...
_USER_PASSWORD = re.compile(r"(://[^/@:]*:).*@")
_OPTION_PASSWORD = re.compile(r"([?&]\w*password=)[^&]*", re.IGNORECASE)
_HOST, _PORT = "127.0.0.1", 6379


class BadAddress(ValueError):
    """The URL is none of Redis'; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """`socket` = the path of a unix socket, else host and port count. `tls` None = plaintext."""

    socket: str | None
    host: str
    port: int
    tls: ssl.SSLContext | None
    username: str | None
    password: str | None
    database: int
    # All that the URL says, by redis-py's names.
    options: list[tuple[bytes, bytes]] = field(default_factory=list, repr=False)

    @property
    def place(self) -> str:
        """Where Redis is, for people."""
        return self.socket or f"{self.host}:{self.port}"

    @property
    def login(self) -> tuple[str, ...] | None:
        """The arguments of AUTH; None = there is nothing to say. A user without a password is not
        named, as in redis-py.
        """
        if not self.password:
            return None
        return (self.username, self.password) if self.username else (self.password,)


def without_password(url: str, mask: str = "") -> str:
    """A URL to show: `mask` in place of each password in it; without one, also without a user."""
    masked = _USER_PASSWORD.sub(rf"\1{mask}@" if mask else "://", url)
    return _OPTION_PASSWORD.sub(rf"\1{mask}", masked)


def redis_address(url: str) -> RedisAddress:
    """Reads redis://, rediss:// or unix:// with the options of redis-py. Raises BadAddress, also
    when a file of TLS is missing.
    """
    try:
        pool = ConnectionPool.from_url(url)
        made: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]
        tls = made.ssl_context.get() if isinstance(made, SSLConnection) else None
    except (ValueError, TypeError, RedisError, OSError) as error:
        # What urllib takes for the port may be a part of the password.
        why = "its port is none; in a password write / as %2F and # as %23" if "Port" in str(error) else str(error)
        raise BadAddress(f"{type(error).__name__}: {error}" if isinstance(error, OSError) else why) from error
    given = pool.connection_kwargs
    host, port = given.get("host", _HOST), int(given.get("port", _PORT))
    options = [(name.encode(), str(value).encode()) for name, value in given.items() if value is not None]
    if tls is not None:
        options.append((b"tls", b"yes"))
    return RedisAddress(given.get("path"), host, port, tls, made.username, made.password, int(made.db), options)
