"""Bodies that mean harm, read in a process of their own: a crash or a hang ends it alone.

`python -m tests.unit.emq.hostile` prints what came of them, one line of JSON, and fails with the
label of a body that ended in anything but a call or BadThrift.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import random
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from thrift.Thrift import TType

from facade.dialects.emq.wire.protocols import BadThrift, decode_call
from facade.dialects.emq.wire.services import MESSAGE_SERVICE
from tests.unit.emq.values import TYPES, listing, mapping, message, number, struct, text

MOST = 524_288  # bytes of a body, as the SDKs have it
METHOD = "sendMessageBatch"
# Type numbers of the compact protocol.
_I32, _STRING, _LIST, _SET, _MAP, _STRUCT = 0x05, 0x08, 0x09, 0x0A, 0x0B, 0x0C


class Case(NamedTuple):
    """A body; `good` = it is a call, None = it may be one."""

    label: str
    protocol: str
    body: bytes
    good: bool | None = False


def head(protocol: str) -> bytes:
    """A call of METHOD as far as the first byte of its struct."""
    empty = message(protocol, METHOD, struct())
    return empty[:-3] if protocol == "json" else empty[:-1]


def rich(protocol: str) -> bytes:
    """A call with everything in it: maps, bytes, numbers, and a field that nobody knows."""

    def raw(library: Any) -> None:
        library.writeBinary(b"\xff\xfe")

    attribute = struct((1, TType.STRING, text("binary")), (3, TType.STRING, raw))
    attributes = mapping(TType.STRING, TType.STRUCT, (text("a"), attribute), (text("b"), attribute))
    entry = struct(
        (1, TType.STRING, text("1")),
        (2, TType.STRING, text("grün")),
        (3, TType.I32, number(5)),
        (5, TType.MAP, attributes),
        (30, TType.MAP, mapping(TType.STRING, TType.LIST, (text("x"), listing(TType.I32, number(1), number(-1))))),
    )
    request = struct(
        (1, TType.STRING, text("CI1/q")),
        (2, TType.LIST, listing(TType.STRUCT, entry, entry)),
        (3, TType.STRING, text("t")),
    )
    return message(protocol, METHOD, struct((1, TType.STRUCT, request), (9, TType.STRUCT, entry)))


def cut() -> Iterator[Case]:
    """A message that ends at any of its bytes, or goes on."""
    for protocol in TYPES:
        body = rich(protocol)
        yield Case(f"{protocol} whole", protocol, body, good=True)
        yield Case(f"{protocol} and a byte", protocol, body + b"\0")
        yield Case(f"{protocol} twice", protocol, body + body)
        for end in range(len(body)):
            yield Case(f"{protocol} cut at {end}", protocol, body[:end])


def damaged() -> Iterator[Case]:
    """A message with numbers, sizes and types at any of its bytes replaced."""
    fours = [bytes.fromhex(four) for four in ("7fffffff", "80000000", "ffffffff", "00ffffff", "0007ffff", "00000000")]
    varints = [
        bytes.fromhex(one)
        for one in ("ffffffff07", "ffffffff0f", "808080808001", "ff" * 10 + "01", "80" * 12, "ffff1f")
    ]
    ones = [bytes([one]) for one in (0, 1, 0x0B, 0x0C, 0x0F, 0x10, 0x1C, 0x7F, 0x80, 0xFC, 0xFF)]
    marks = [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\\",
        b"-",
        b"99999999999",
        b"null",
        b"true",
        b'"x"',
        b"\0",
        b"\xff",
        b"1e9",
        b"",
    ]
    for protocol, wholes in {"binary": fours + ones, "compact": varints + ones, "json": marks}.items():
        body = rich(protocol)
        for at in range(len(body)):
            for whole in wholes:
                after = at + (1 if protocol != "binary" else len(whole))
                yield Case(f"{protocol} {whole!r} at {at}", protocol, body[:at] + whole + body[after:], None)


def noise() -> Iterator[Case]:
    """Random bytes after a head, and from the start."""
    chance = random.Random(20_260_101)
    for protocol in TYPES:
        letters = b'{}[]":,0123456789strecli' if protocol == "json" else bytes(range(256))
        for _ in range(1000):
            some = bytes(chance.choices(letters, k=chance.randrange(60)))
            yield Case(f"{protocol} noise {some!r}", protocol, some, None)
            yield Case(f"{protocol} head and noise {some!r}", protocol, head(protocol) + some, None)


def _filled(start: bytes, unit: bytes, end: bytes = b"") -> bytes:
    return start + unit * ((MOST - len(start) - len(end)) // len(unit)) + end


def deep() -> Iterator[Case]:
    """Half a megabyte of nesting in a field that nobody knows: structs, lists, sets, maps and keys
    of maps.
    """
    binary = {
        "structs": (b"\x0c\0\x63", b""),
        "lists": (b"\x0f\0\x63", b"\x0f\0\0\0\x01"),
        "sets": (b"\x0e\0\x63", b"\x0e\0\0\0\x01"),
        "maps": (b"\x0d\0\x63", b"\x0b\x0d\0\0\0\x01\0\0\0\0"),
        "keys": (b"\x0d\0\x63", b"\x0d\x0b\0\0\0\x01"),
        "mixed": (b"\x0f\0\x63", b"\x0c\0\0\0\x01\x0d\0\x01\x0b\x0f\0\0\0\x01\0\0\0\0"),
    }
    for name, (start, unit) in binary.items():
        yield Case(f"binary deep {name}", "binary", _filled(head("binary") + start, unit or start))
    compact = {
        "structs": bytes([0x1C]),
        "lists": bytes([0x10 | _LIST]),
        "sets": bytes([0x10 | _SET]),
        "maps": bytes([1, _STRING << 4 | _MAP, 0]),
        "keys": bytes([1, _MAP << 4 | _STRING]),
    }
    for name, unit in compact.items():
        code = {"structs": _STRUCT, "lists": _LIST, "sets": _SET}.get(name, _MAP)
        yield Case(f"compact deep {name}", "compact", _filled(head("compact") + bytes([0xF0 | code]), unit))
    for name, unit in {
        "structs": b'{"1":{"rec":',
        "lists": b'["lst",1,',
        "lists alone": b"[",
        "objects": b'{"":',
    }.items():
        yield Case(f"json deep {name}", "json", _filled(head("json") + b'{"99":{"lst":', unit))
        yield Case(f"json deep {name} alone", "json", _filled(b"", unit))


def _varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def _many(
    protocol: str, start: bytes, unit: Callable[[int], bytes], size: int, end: bytes, good: bool | None, name: str
) -> Case:
    """A body of as many elements as it can have; `size` bytes are what one takes."""
    count = (MOST - len(start) - len(end) - 60) // size
    sized = {"binary": count.to_bytes(4), "compact": _varint(count), "json": str(count).encode()}[protocol]
    items = b"".join(map(unit, range(count)))
    body = head(protocol) + start.replace(b"COUNT", sized) + items + end
    assert len(body) <= MOST
    return Case(f"{protocol} many {name}", protocol, body, good)


def large() -> Iterator[Case]:
    """Half a megabyte of what costs most for its bytes."""
    request = b"\x1c\x18\0"
    entry = b"\x18\0\x18\0\0"
    mapped = b"\x18\0\x18\0\x3b\x01\x8c\0\x18\0\0\0"
    entries = request + b"\x19\xfcCOUNT"
    yield _many("compact", entries, lambda _: entry, len(entry), b"\0\0", True, "entries")
    yield _many("compact", entries, lambda _: mapped, len(mapped), b"\0\0", True, "entries with maps")
    yield _many("compact", entries, lambda _: entry, len(entry), b"\x18\0\0\0\0", None, "entries and a field more")
    yield _many(
        "compact",
        entries,
        lambda i: b"\x18\0\0" if not i else b"\x18\0\x18\0\0",
        len(entry),
        b"\0\0",
        False,
        "entries, one lacking a body",
    )
    yield _many("compact", entries, lambda _: b"\x18\0\x18\x01\xff\0", 6, b"\0\0", False, "entries not in UTF-8")
    yield _many("compact", entries, lambda _: b"\x18\x03\xef\xbf\xbd\x18\0\0", 8, b"\0\0", True, "entries of U+FFFD")
    keys = request + b"\x19\x1c\x18\0\x18\0\x3bCOUNT\x8c"
    yield _many(
        "compact",
        keys,
        lambda i: b"\x03%c%c%c\x18\0\0" % (i >> 14, i >> 7 & 127, i & 127),
        7,
        b"\0\0\0",
        True,
        "attributes",
    )
    yield _many("compact", b"\xf9\xf1COUNT", lambda _: b"\x01", 1, b"\0", False, "bools that nobody knows")
    yield Case("compact fields that nobody knows", "compact", _filled(head("compact"), b"\xf1", b"\0"))
    yield Case(
        "compact control letters",
        "compact",
        _filled(head("compact") + request + b"\x28" + _varint(MOST - 60), b"\x01"),
        None,
    )
    start = b"\x0c\0\x01\x0b\0\x01\0\0\0\0"
    yield _many(
        "binary",
        start + b"\x0f\0\x02\x0cCOUNT",
        lambda _: b"\x0b\0\x01\0\0\0\0\x0b\0\x02\0\0\0\0\0",
        15,
        b"\0\0",
        True,
        "entries",
    )
    yield _many("binary", b"\x0f\0\x09\x02COUNT", lambda _: b"\x01", 1, b"\0", False, "bools that nobody knows")
    yield Case("binary fields that nobody knows", "binary", _filled(head("binary"), b"\x02\0\x09\x01", b"\0"))
    yield from _large_json()


def _large_json() -> Iterator[Case]:
    entries = b'{"1":{"rec":{"1":{"str":""},"2":{"lst":["rec",COUNT'
    entry = b',{"1":{"str":""},"2":{"str":""}}'
    yield _many("json", entries, lambda _: entry, len(entry), b"]}}}}]", True, "entries")
    mapped = b',{"1":{"str":""},"2":{"str":""},"5":{"map":["str","rec",1,{"":{"1":{"str":""}}}]}}'
    yield _many("json", entries, lambda _: mapped, len(mapped), b"]}}}}]", True, "entries with maps")
    unknown = b'{"9":{"lst":["i32",COUNT'
    for name, unit in {
        "numbers": b",1",
        "strings": b',""',
        "lists": b",[]",
        "objects": b",{}",
        "pairs": b',{"":0}',
        "fractions": b",1.5",
    }.items():
        yield _many("json", unknown, lambda _, unit=unit: unit, len(unit), b"]}}]", False, f"{name} that nobody knows")  # type: ignore[misc]
    fields = b'{"1":{"rec":{"1":{"str":""}'
    yield _many("json", fields, lambda i: b',"%07d":0' % i, 12, b"}}}]", False, "fields that nobody knows")
    yield Case(
        "json control letters", "json", _filled(head("json") + b'{"1":{"rec":{"1":{"str":"', b"\\u0001", b'"}}}}]')
    )
    yield Case("json long number", "json", _filled(head("json") + b'{"1":{"rec":{"3":{"i32":', b"9", b"}}}}]"))
    yield Case("json long fraction", "json", _filled(head("json") + b'{"1":{"rec":{"3":{"dbl":1.', b"9", b"}}}}]"))


def outcome(case: Case) -> bool:
    """Whether it is a call. Anything but BadThrift is raised."""
    try:
        decode_call(TYPES[case.protocol], case.body, MESSAGE_SERVICE)
    except BadThrift:
        return False
    return True


def main() -> None:
    """Reads all of them, those that are small or large for memory too."""
    faulthandler.enable()
    counts: Counter[str] = Counter()
    slowest, hungriest, greediest = (0.0, ""), (0.0, ""), (0, "")
    for source in (cut, damaged, noise, deep, large):
        for case in source():
            begun = process_time()
            try:
                good = outcome(case)
            except BaseException:
                print(case.label, file=sys.stderr)
                raise
            slowest = max(slowest, ((process_time() - begun) * 1000, case.label))
            if case.good is not None and good is not case.good:
                sys.exit(f"{case.label}: read {good}, should be {case.good}")
            counts[source.__name__] += 1
    # Not `ru_maxrss`: a child begins with that of its parent.
    peak_kb = next(
        line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    tracemalloc.start()
    for source in (damaged, deep, large):
        for case in source():
            gc.collect(0)
            tracemalloc.reset_peak()
            held = tracemalloc.get_traced_memory()[0]
            outcome(case)
            peak = tracemalloc.get_traced_memory()[1] - held
            if len(case.body) > 10_000:
                hungriest = max(hungriest, (peak / len(case.body), case.label))
            else:
                greediest = max(greediest, (peak, case.label))
    print(json.dumps({
        "counts": counts, "slowest_ms": slowest, "peak_of_large": hungriest, "peak_bytes_of_small": greediest,
        "resident_mb": int(peak_kb) / 1024,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
