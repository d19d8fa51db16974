"""The native library (native/, docs/decisions/0033): found, loaded by ctypes, checked; or why not.

Here it is decided which one is loaded, of several that may be there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from facade.http.bounds.handshakes import HANDSHAKE_S
from facade.http.bounds.pace import HEAD_S, LEAST_BYTES_A_SECOND, SPAN_S
from facade.http.bounds.shares import COMING, MIB

NAME: Final = "libleaseway_front.so"
# Of the functions and of what batches look like; native/src/c.rs has the same.
INTERFACE: Final = 28
# Beside this module, where the image has it, and where `make setup` builds it.
BESIDE: Final = Path(__file__).with_name(NAME)
BUILT: Final = Path(__file__).parents[3] / "native" / "target" / "release" / NAME

KEY_BYTES: Final = 32
# Of a body, in one call.
READ_BYTES: Final = 64 * 1024
MORE, UNSENT, BAD = 1, 2, 4
# Which requests a front reads: none, every plain one, or those that a key has signed which is known
# for the address they come from; FORWARDED: and a proxy tells that address.
NOTHING, ALL, SIGNED, FORWARDED = range(4)

_decode = msgspec.msgpack.Decoder().decode
_encode = msgspec.msgpack.Encoder().encode
_Pointer = ctypes.c_void_p
_Size = ctypes.c_size_t
_FUNCTIONS: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "front_interface": (ctypes.c_uint32, ()),
    "front_new": (_Pointer, (ctypes.c_int, ctypes.c_char_p, _Size, ctypes.c_uint32, ctypes.c_uint64)),
    "front_free": (None, (_Pointer,)),
    "front_descriptor": (ctypes.c_int, (_Pointer,)),
    "front_look": (_Pointer, (_Pointer, _Pointer, _Pointer)),
    "front_answer": (ctypes.c_uint32, (_Pointer, ctypes.c_char_p, _Size)),
    "front_receive": (_Size, (_Pointer, ctypes.c_uint64, _Pointer, _Size, _Pointer)),
    "front_bounds": (_Size, (_Pointer, _Pointer, _Size)),
    "front_unsent": (_Pointer, (_Pointer, _Pointer)),
    "front_tick": (ctypes.c_uint32, (_Pointer, ctypes.c_uint64, ctypes.c_uint64)),
    "front_drain": (ctypes.c_uint32, (_Pointer,)),
    "front_waiting": (_Size, (_Pointer, ctypes.c_uint64)),
    "front_connections": (ctypes.c_uint64, (_Pointer,)),
    "front_key": (None, (_Pointer, ctypes.c_char_p, _Size, ctypes.c_char_p, _Size, ctypes.c_char_p, ctypes.c_uint64)),
    "front_certify": (_Size, (_Pointer, ctypes.c_char_p, _Size, ctypes.c_char_p, _Size, ctypes.c_char_p, _Size)),
    "front_forget": (ctypes.c_uint32, (_Pointer,)),
    "front_plane": (_Pointer, (_Pointer, ctypes.c_char_p, _Size, _Pointer)),
    "front_tell": (ctypes.c_uint32, (_Pointer, ctypes.c_uint32, ctypes.c_char_p, _Size)),
    "front_ask": (_Pointer, (_Pointer, ctypes.c_uint32, _Pointer)),
    "front_refused": (ctypes.c_uint64, (_Pointer, ctypes.c_uint32)),
    "front_panic": (None, (_Pointer,)),
    "front_fits": (ctypes.c_uint32, (ctypes.c_char_p, _Size, ctypes.c_char_p, ctypes.c_uint64)),
    "front_read": (_Size, (ctypes.c_char_p, _Size, ctypes.c_char_p, _Size)),
    "front_formats": (_Size, (ctypes.c_char_p, _Size, ctypes.c_char_p, _Size)),
    "front_stream": (_Size, (ctypes.c_char_p, _Size, _Size, ctypes.c_char_p, _Size)),
}


class NoLibraryError(Exception):
    """The library is not there, or is not ours; the text says which, in one line. `brief` says so
    without the places of files, for strangers.
    """

    def __init__(self, brief: str, text: str = "") -> None:
        super().__init__(text or brief)
        self.brief = brief


class FrontEndedError(RuntimeError):
    """A front was asked for something after it had ended."""


class Choice(NamedTuple):
    """Whether a worker uses the library, and why in a few words; `brief` is why it does not, for
    strangers.
    """

    native: bool
    why: str
    brief: str = ""

    @property
    def state(self) -> str:
        """Returns what /health says."""
        return "on" if self.native else f"off: {self.brief or self.why}"


@lru_cache(maxsize=1)
def found() -> tuple[ctypes.PyDLL, str]:
    """The first library that is there and has our interface, and where it came from in a few words.
    Raises NoLibraryError.

    Its calls keep Python's lock: they take microseconds, and to give the lock away and wait for it
    again would take longer. None of them waits or calls Python.
    """
    wrong: NoLibraryError | None = None
    for path, origin in _places():
        try:
            return _load(path), origin
        except NoLibraryError as error:
            wrong = wrong or error
    raise wrong or NoLibraryError(
        "the library is not there", f"{NAME} is not there (`make setup` builds it where cargo is)"
    )


def loaded() -> ctypes.PyDLL:
    """As `found`, the library alone. Raises NoLibraryError."""
    return found()[0]


def _places() -> Iterator[tuple[Path, str]]:
    """The libraries that are there."""
    if BESIDE.exists():
        yield BESIDE, "packed with the code"
    if BUILT.exists():
        yield BUILT, "built here"


def _load(path: Path) -> ctypes.PyDLL:
    try:
        library = ctypes.PyDLL(str(path))
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise NoLibraryError("the library can't be loaded", f"{path} can't be loaded: {error}") from None
    if library.front_interface() != INTERFACE:
        brief = f"the library has interface {library.front_interface()}, not {INTERFACE}"
        raise NoLibraryError(brief, f"{path}: {brief}: make setup")
    return library


def chosen(native: str, audit: str, cert: str = "", key: str = "") -> Choice:
    """Returns whether a worker with these settings uses the library; `cert` and `key` are the files
    of its certificate. Raises NoLibraryError when it must and can't.
    """
    if native == "off":
        return Choice(False, "LEASEWAY_NATIVE=off")
    if native == "auto" and audit == "all":
        return Choice(False, "LEASEWAY_AUDIT=all: requests are written down one by one")
    certificate = "LEASEWAY_TLS_CERT and LEASEWAY_TLS_KEY"
    try:
        _, origin = found()
        if cert and (wrong := wrong_with(Path(cert).read_bytes(), Path(key).read_bytes())):
            brief = f"the library can't use {certificate}"
            raise NoLibraryError(brief, f"{brief} ({cert}, {key}): {wrong}")
    except OSError as error:
        return Choice(False, f"{certificate} can't be read: {error}", f"{certificate} can't be read")
    except NoLibraryError as error:
        if native == "require":
            raise
        return Choice(False, str(error), error.brief)
    return Choice(True, f"LEASEWAY_NATIVE={native}, {origin}")


class Limits(NamedTuple):
    """What the library bounds; the numbers of native/src/net/bounds.rs, in their order."""

    handshake_ms: int = int(HANDSHAKE_S * 1000)
    head_ms: int = int(HEAD_S * 1000)
    span_ms: int = int(SPAN_S * 1000)
    span_bytes: int = int(SPAN_S * LEAST_BYTES_A_SECOND)
    # What a client still sends is dropped for so long after its last reply.
    last_ms: int = 2000
    # Of requests whose heads, or hot requests whose bodies, are not whole: bytes, and how many.
    part_bytes: int = 32 * MIB
    parts: int = COMING
    # Of hot requests in hand, and of what came behind requests that are answered.
    asked_bytes: int = 128 * MIB
    # Of a body that nobody wants any more; with more than that, its connection ends.
    let_go_bytes: int = 8 * MIB
    # Not 0: requests that carry a sampled trace context are Python's.
    traced: int = 0


class NativeFront:
    """One front. For one thread. After `free` each call raises FrontEndedError."""

    def __init__(
        self,
        descriptor: int,
        prefix: bytes,
        most: int,
        reads: int,
        limits: Limits | None = None,
        heed: Callable[[int], None] = lambda flags: None,
    ) -> None:
        """Accepts `most` connections at once on `descriptor`, which is the front's from now on.
        `prefix` begins the ids of replies; `reads` is NOTHING, ALL, SIGNED or FORWARDED. `heed`
        gets the flags of calls that somebody else makes than who looks. Raises OSError.
        """
        self._heed = heed
        limits = limits or Limits()
        library = loaded()
        self._owned: int | None = library.front_new(descriptor, prefix, len(prefix), reads, most)
        if not self._owned:
            raise OSError("the native front could not be made")
        numbers = (ctypes.c_uint64 * len(limits))(*limits)
        if library.front_bounds(self._front, numbers, len(limits)) != len(limits):
            raise NoLibraryError("the library bounds other things than this Python does: make setup")
        self._look: Callable[..., int | None] = library.front_look
        self._answer: Callable[..., int] = library.front_answer
        self._library = library
        room = bytearray(READ_BYTES)
        self._room, self._room_at = memoryview(room), (ctypes.c_char * READ_BYTES).from_buffer(room)
        self._size, self._flags = _Size(), ctypes.c_uint32()
        self._size_at, self._flags_at = ctypes.byref(self._size), ctypes.byref(self._flags)

    def free(self) -> None:
        """Closes everything; once more does nothing."""
        owned, self._owned = self._owned, None
        if owned is not None:
            self._library.front_free(owned)

    @property
    def _front(self) -> int:
        """What the library knows it by: memory that is not ours any more after `free`."""
        if self._owned is None:
            raise FrontEndedError("the native front has ended: nothing can be asked of it any more")
        return self._owned

    @property
    def descriptor(self) -> int:
        """What is readable when `look` has something to do."""
        return int(self._library.front_descriptor(self._front))

    def look(self) -> tuple[Any, bool]:
        """News as native/src/batch.rs says, and whether to call again at once."""
        pointer = self._look(self._front, self._size_at, self._flags_at)
        news = _decode(ctypes.string_at(pointer, self._size.value)) if pointer else ()
        return news, bool(self._flags.value & MORE)

    def receive(self, connection: int) -> tuple[bytes, bool]:
        """What has come of the body of a request that news said is to be read, and whether that is
        the last; empty = nothing now. There may be news after it.
        """
        size = self._library.front_receive(self._front, connection, self._room_at, READ_BYTES, self._flags_at)
        return bytes(self._room[:size]), bool(self._flags.value)

    def answer(self, batch: bytes) -> int:
        """Takes answers as native/src/answers.rs says; flags."""
        return self._answer(self._front, batch, len(batch))

    def unsent(self) -> list[int]:
        """The connections whose messages could not be given."""
        pointer = self._library.front_unsent(self._front, self._size_at)
        found: list[int] = _decode(ctypes.string_at(pointer, self._size.value))
        return found

    def tick(self, idle_s: float, part_s: float) -> int:
        """Ends connections on which nothing was asked for so long, and requests that come too
        slowly; hot ones that are not whole after `part_s` go the long way. Returns flags.
        """
        return int(self._library.front_tick(self._front, int(idle_s * 1000), int(part_s * 1000)))

    def drain(self) -> int:
        """Accepts nothing more; flags."""
        return int(self._library.front_drain(self._front))

    def waiting(self, connection: int) -> int:
        """How many bytes of its output its client has to read before more is written; 0 = more may
        be.
        """
        return int(self._library.front_waiting(self._front, connection))

    def certify(self, certificate: bytes, key: bytes) -> str:
        """Has new connections shown a certificate with its chain, in PEM; returns what is wrong
        with these, "" = nothing.
        """
        return _certify(self._library, self._front, certificate, key)

    def learn(self, signer: bytes, address: bytes, key: bytes, seconds: int) -> None:
        """The signing key of `key/day/region` at an address, as news told both; 32 bytes, which
        count for so long.
        """
        assert len(key) == KEY_BYTES
        self._library.front_key(self._front, signer, len(signer), address, len(address), key, seconds)

    def forget(self) -> None:
        """No key that was learnt counts any more, lanes are told again, and who waits in the plane
        is passed on.
        """
        self._heed(int(self._library.front_forget(self._front)))

    # The plane: see `engine.plane.library.Library`.

    def start_plane(self, told: list[Any]) -> None:
        """Starts the plane: from now on a thread of the library polls. Raises OSError, which says
        why there is none.
        """
        batch = _encode(told)
        pointer = self._library.front_plane(self._front, batch, len(batch), self._size_at)
        if self._size.value:
            raise OSError(ctypes.string_at(pointer, self._size.value).decode())

    def tell(self, what: int, told: list[Any] | int) -> None:
        """Tells the plane something. Raises ValueError when it can't be read (our fault)."""
        batch = _encode(told)
        flags = int(self._library.front_tell(self._front, what, batch, len(batch)))
        if flags & BAD:
            raise ValueError(f"the plane could not read {what}: {told!r}")
        self._heed(flags)

    def ask(self, what: int) -> list[Any]:
        """Asks the plane something."""
        pointer = self._library.front_ask(self._front, what, self._size_at)
        answer: list[Any] = _decode(ctypes.string_at(pointer, self._size.value))
        return answer

    @property
    def connections(self) -> int:
        """How many there are."""
        return int(self._library.front_connections(self._front))

    @property
    def ended(self) -> tuple[int, int, int]:
        """How many connections were closed because there were too many, how many idle ones for
        others, and how many requests that were not whole gave way.
        """
        refused, closed, gave_way = (int(self._library.front_refused(self._front, which)) for which in range(3))
        return refused, closed, gave_way


def wrong_with(certificate: bytes, key: bytes) -> str:
    """Returns why the library can't show a certificate with its chain, in PEM; "" = it can."""
    return _certify(loaded(), None, certificate, key)


def _certify(library: ctypes.PyDLL, front: Any, certificate: bytes, key: bytes) -> str:
    room = ctypes.create_string_buffer(512)
    size = library.front_certify(front, certificate, len(certificate), key, len(key), room, len(room))
    return room.raw[:size].decode("utf-8", "replace")


def read(request: bytes) -> Any:
    """Returns what the library reads of one whole request (native/src/c/probes.rs); None = it is
    Python's. For tests.
    """
    room = ctypes.create_string_buffer(len(request) * 2 + 4096)
    size = loaded().front_read(request, len(request), room, len(room))
    return _decode(room.raw[:size]) if size else None


def requests_of(stream: bytes, step: int) -> Any:
    """All requests of a stream that comes in pieces of `step` bytes, and its end, as
    native/src/http/stream.rs says. For tests.
    """
    room = ctypes.create_string_buffer(len(stream) * 4 + 4096)
    size = loaded().front_stream(stream, len(stream), step, room, len(room))
    return _decode(room.raw[:size])


def fits(request: bytes, key: bytes, now_s: int) -> bool:
    """Whether the library finds that a signing key has signed one whole request. For tests."""
    assert len(key) == KEY_BYTES
    return bool(loaded().front_fits(request, len(request), key, now_s))


def try_formats(formats: Any, cases: list[Any]) -> list[Any]:
    """Returns what the formats of the plane make of each case, as
    native/src/plane/format/tried.rs says. Raises ValueError for a batch that it can't read. For
    tests.
    """
    batch = msgspec.msgpack.encode([formats, cases])
    room = ctypes.create_string_buffer(len(batch) * 2 + 128 * len(cases) + 4096)
    size = loaded().front_formats(batch, len(batch), room, len(room))
    if not size:
        raise ValueError("the library could not read the batch of cases")
    answers: list[Any] = _decode(room.raw[:size])
    return answers
