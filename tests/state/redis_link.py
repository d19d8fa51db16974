"""Drives the plane's connection to Redis (native/src/plane/redis) from a test, by its probe."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import time
from collections.abc import Iterator
from typing import Any

import hiredis
import redis
from redis.asyncio.connection import ConnectionPool, SSLConnection

from facade.http.sockets.library import loaded
from facade.programs.stack.processes.child import Child

ECHO = "return {KEYS[1], ARGV[1]}"
ADD = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
FILL = "local text = string.rep('x', 1048576) local parts = {} for at = 1, ARGV[1] do parts[at] = text end return parts"
GET = "return redis.call('GET', KEYS[1])"
FAIL = "redis.call('INCR', KEYS[1]) return redis.error_reply('OOM it is full')"
SCRIPTS = [ECHO, ADD, FILL, GET, FAIL]

News = tuple[str, int, Any]


class OwnRedis:
    """A redis-server of one module, which is started again when it is killed."""

    def __init__(self, child: Child, port: int, socket: str) -> None:
        self.child = child
        self.url, self.unix = f"redis://127.0.0.1:{port}/0", f"unix://{socket}?db=0"
        self.client: Any = redis.Redis.from_url(self.url)


def _packed(value: Any) -> bytes:
    if isinstance(value, (list, tuple)):
        return b"*%d\r\n" % len(value) + b"".join(map(_packed, value))
    if isinstance(value, int):
        return b":%d\r\n" % value
    data = value.encode() if isinstance(value, str) else bytes(value)
    return b"$%d\r\n%b\r\n" % (len(data), data)


class Refused(Exception):
    """The probe can't do what a command says."""


class Link:
    """One connection, driven by turns. `news` has what was not waited for."""

    def __init__(
        self, options: dict[str, Any], *, connect_ms: int = 2000, reply_ms: int = 4000, most: int = 64 << 20
    ) -> None:
        # Calls give Python's lock away: the servers of some tests are in this process.
        library = ctypes.CDLL(loaded()._name)
        library.front_redis_new.restype = library.front_redis_ask.restype = ctypes.c_void_p
        library.front_redis_ask.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
        library.front_redis_free.argtypes = (ctypes.c_void_p,)
        self._library, self._size = library, ctypes.c_size_t()
        self._probe = library.front_redis_new()
        self.news: list[News] = []
        pairs = [part for name, value in options.items() if value is not None for part in (name, str(value))]
        scripts = [part for source in SCRIPTS for part in (hashlib.sha1(source.encode()).hexdigest(), source)]
        self.ask("open", pairs, scripts, [connect_ms, reply_ms, 20, most, 1 << 28])

    def ask(self, *command: Any) -> Any:
        data = _packed(command)
        answer = self._library.front_redis_ask(self._probe, data, len(data), ctypes.byref(self._size))
        reader = hiredis.Reader()
        reader.feed(ctypes.string_at(answer, self._size.value))
        reply = reader.gets()
        if isinstance(reply, hiredis.ReplyError):
            raise Refused(str(reply))
        return reply

    def turn(self, wait_ms: int = 20) -> None:
        self.news += [(kind.decode(), number, value) for kind, number, value in self.ask("turn", wait_ms)]

    def wait(self, kind: str, seconds: float = 60) -> News:
        """Turns until there is such news; takes it out of `news`."""
        end = time.monotonic() + seconds
        while True:
            for at, item in enumerate(self.news):
                if item[0] == kind:
                    return self.news.pop(at)
            assert time.monotonic() < end, f"no {kind!r} within {seconds} s, but {self.news[:10]}"
            self.turn()

    def use(self, for_ms: int = 600_000) -> int:
        """Waits for a connection and admits it."""
        _, link, info = self.wait("greeted")
        assert b"run_id:" in info
        self.ask("admit", link, for_ms)
        return link

    def begin(self, script: str, *words: Any, keys: tuple[str, ...] = ("k",), token: int = 1, count: int = 1) -> int:
        """Begins `count` calls with tokens from `token` on; how many began."""
        return int(self.ask("begin", token, SCRIPTS.index(script), count, list(keys), *words))

    def call(self, script: str, *words: Any, keys: tuple[str, ...] = ("k",)) -> Any:
        """The reply to a call that succeeds."""
        assert self.begin(script, *words, keys=keys)
        return self.wait("ok")[2]

    def answers(self, count: int, seconds: float = 60) -> dict[int, tuple[str, Any]]:
        """What so many calls came to, by token, once all have one. Takes it out of `news`."""
        found: dict[int, tuple[str, Any]] = {}
        end = time.monotonic() + seconds
        while len(found) < count:
            assert time.monotonic() < end, f"{len(found)} of {count} answers within {seconds} s"
            self.turn(0 if self.news else 20)
            for kind, token, value in self.news:
                if kind not in ("greeted", "lost"):
                    assert token not in found, f"two answers to {token}"
                    found[token] = kind, value
            self.news = [item for item in self.news if item[0] in ("greeted", "lost")]
        return found

    def may_call(self) -> bool:
        """Whether a call would be begun."""
        return bool(self.ask("is_open"))

    def free(self) -> None:
        self._library.front_redis_free(self._probe)


def options_of(url: str) -> dict[str, Any]:
    """The options of a URL, as the plane is told them."""
    pool = ConnectionPool.from_url(url)
    return {**pool.connection_kwargs, "tls": pool.connection_class is SSLConnection}


@contextlib.contextmanager
def linked(options: dict[str, Any] | str, **limits: int) -> Iterator[Link]:
    link = Link(options_of(options) if isinstance(options, str) else options, **limits)
    try:
        yield link
    finally:
        link.free()
