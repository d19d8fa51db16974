"""What the plane writes is what Python writes, and what it reads is what Python reads or nothing:
seeded cases of ids, handles, records, entries of the window and of the journal, whole and damaged.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from engine.journal.outbox import DRAIN_OFFSETS, _pieces
from facade.http.sockets.library import try_formats
from schemas.identity import BadIdentity, Handle, handles_of, ids_of
from schemas.records import Attribute, BatchMark, JournalEntry, JournalRecord, Message
from schemas.registry import schema_id, schema_text
from schemas.vocabulary import DEFAULT_PRIORITY, EventKind
from schemas.wire import decode, decode_message, encode
from state.packed import HEADER_BYTES, delay_of_body, pack_body
from state.replies import Entry
from state.upkeep import _entry
from tests.unit.schemas.samples import FULL

pytestmark = pytest.mark.usefixtures("library")

SEED = 20261127
CASES = 100_000
TOGETHER = 10_000
PLACES, MAKE, HANDLE, WRITE, READ, PACK, UNPACK, JOURNAL, PRODUCED = range(9)


def kinds() -> list[str]:
    fields = json.loads(schema_text(schema_id("journal")))["fields"][-1]["type"]["items"]["fields"]
    symbols: list[str] = next(field["type"]["symbols"] for field in fields if field["name"] == "kind")
    return symbols


def head_of(record: Message | JournalRecord) -> bytes:
    return encode(record)[:5]


def formats(most_offsets: int = DRAIN_OFFSETS) -> list[Any]:
    """What Python says of the formats."""
    return [[head_of(Message(b"")), DEFAULT_PRIORITY], [head_of(JournalRecord("", "", 0, [])), kinds(), most_offsets]]


def answers(cases: Sequence[Any], first: Sequence[Any] = (), **told: int) -> Iterator[Any]:
    """An answer for each case; `first` are said before each batch."""
    for at in range(0, len(cases), TOGETHER):
        yield from try_formats(formats(**told), [*first, *cases[at : at + TOGETHER]])[len(first) :]


def number(chance: random.Random, bits: int) -> int:
    """Mostly one with few bits, or at an edge."""
    return chance.choice(
        [
            0,
            1,
            (1 << bits) - 1,
            chance.getrandbits(chance.randrange(1, bits + 1)),
            chance.getrandbits(chance.randrange(1, bits + 1)),
        ]
    )


def long(chance: random.Random) -> int:
    return number(chance, 63) * chance.choice([1, 1, 1, -1])


def text(chance: random.Random, most: int = 20) -> str:
    return "".join(
        chance.choice(["a", "é", "€", "😀", "\0", "\n", '"', "xyz" * 9]) for _ in range(chance.randrange(most))
    )


def hurt(chance: random.Random, data: bytes) -> bytes:
    """With some bytes cut, altered, taken out or put in."""
    wrong = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 3])):
        at, byte = (
            chance.randrange(len(wrong) + 1),
            chance.choice([0, 1, 2, 16, 32, 127, 128, 255, chance.randrange(256)]),
        )
        what = chance.randrange(5)
        if what == 0:
            del wrong[at:]
        elif what == 1 and at < len(wrong):
            wrong[at] ^= 1 << chance.randrange(8)
        elif what == 2:
            wrong[at : at + 1] = bytes([byte])
        elif what == 3:
            wrong[at:at] = bytes([byte])
        else:
            del wrong[at : at + chance.randrange(1, 4)]
    return bytes(wrong)


SECRETS = [b"s", b"a secret of a length", b"x" * 64, b"y" * 65, "ü".encode() * 200]
INCARNATIONS = ["000000000000", "0123456789ab", "ffffffffffff"]
WHERE = [(0, 0), (1, 0), (63, 7), (4095, 65535), (256, 256)]


def places(secret: bytes, incarnation: str) -> list[Any]:
    return [PLACES, secret, bytes.fromhex(incarnation), WHERE]


def made_id(secret: bytes, incarnation: str, partition: int, offset: int) -> list[str]:
    try:
        return [ids_of(secret, incarnation, partition)(offset)]
    except ValueError:
        return []


def made_handle(
    secret: bytes, incarnation: str, partition: int, tag: int, offset: int, nonce: int, at_ms: int
) -> list[str]:
    try:
        return [handles_of(secret, incarnation, partition, tag, nonce, at_ms)(offset)] if at_ms else []
    except ValueError:
        return []


def test_ids_and_handles_are_made_as_python_makes_them() -> None:
    chance = random.Random(SEED)
    each = CASES // (len(SECRETS) * len(INCARNATIONS)) + 1
    for secret in SECRETS:
        for incarnation in INCARNATIONS:
            cases = [
                [
                    MAKE,
                    *chance.choice(WHERE),
                    number(chance, chance.choice([40, 40, 49])),
                    number(chance, 64),
                    number(chance, chance.choice([48, 48, 49])),
                ]
                for _ in range(each)
            ]
            for case, (made, handle) in zip(cases, answers(cases, [places(secret, incarnation)]), strict=True):
                _, partition, tag, offset, nonce, at_ms = case
                assert made == made_id(secret, incarnation, partition, offset)
                assert handle == made_handle(secret, incarnation, partition, tag, offset, nonce, at_ms)


def test_a_partition_that_fits_into_no_id_and_an_empty_secret_are_refused() -> None:
    cases = [[PLACES, b"s", bytes(6), [(4095, 0), (4096, 0)]], [PLACES, b"", bytes(6), [(0, 0)]]]
    assert try_formats(formats(), cases) == [[1], [0]]
    for secret, partition in ((b"s", 4096), (b"", 0)):
        with pytest.raises(ValueError, match=r"partition|secret"):
            ids_of(secret, "000000000000", partition)


def some_handle(chance: random.Random, secret: bytes, incarnation: str) -> tuple[str, Handle | None]:
    """A text, and the handle that it is, if it is one of these places."""
    partition, tag = chance.choice(WHERE)
    at_ms = chance.choice([0, number(chance, 48), 1_700_000_000_000])
    until_ms = chance.choice([0, 0, number(chance, 48)])
    whole = Handle(incarnation, partition, tag, number(chance, 48), number(chance, 64), at_ms, until_ms)
    odd = chance.random()
    if odd < 0.1:
        others: list[dict[str, Any]] = [{"incarnation": "0123456789ac"}, {"partition": 2}, {"tag": 8}]
        whole = msgspec.structs.replace(whole, **chance.choice(others))
        return whole.text(secret), None
    if odd < 0.15:
        return whole.text(secret + b"!"), None
    text = whole.text(secret)
    if odd < 0.5:
        damaged = hurt(chance, text.encode()).decode("utf-8", "replace")
        if odd < 0.2:
            damaged = text.translate(str.maketrans("-_", "+/"))
        return damaged, whole if damaged == text else None
    return text, whole


def test_a_handle_is_read_as_python_reads_it() -> None:
    chance = random.Random(SEED + 1)
    read = 0
    each = CASES // (len(SECRETS) * len(INCARNATIONS)) + 1
    for secret in SECRETS:
        for incarnation in INCARNATIONS:
            given = [some_handle(chance, secret, incarnation) for _ in range(each)]
            found = answers([[HANDLE, text] for text, _ in given], [places(secret, incarnation)])
            for (text, expected), fields in zip(given, found, strict=True):
                if expected is None:
                    assert fields == []
                    continue
                read += 1
                assert Handle.parse(text, secret) == expected
                assert Handle(incarnation, *fields) == expected
    assert read > CASES / 2


def test_what_python_refuses_as_a_handle_the_plane_refuses() -> None:
    chance = random.Random(SEED + 2)
    secret, incarnation = SECRETS[0], INCARNATIONS[1]
    texts = [
        hurt(chance, some_handle(chance, secret, incarnation)[0].encode()).decode("utf-8", "replace")
        for _ in range(CASES)
    ]
    for text, fields in zip(
        texts, answers([[HANDLE, text] for text in texts], [places(secret, incarnation)]), strict=True
    ):
        try:
            parsed = Handle.parse(text, secret)
        except BadIdentity:
            assert fields == [], text
        else:
            assert fields == [] or Handle(incarnation, *fields) == parsed


def body(chance: random.Random) -> tuple[bytes, bool]:
    if chance.random() < 0.7:
        return (text(chance).encode() * chance.choice([1, 1, 1, 40]), chance.random() < 0.9)
    return chance.randbytes(chance.choice([0, 1, 63, 64, 100])), False


def attributes(chance: random.Random) -> dict[str, Attribute]:
    if chance.random() < 0.7:
        return {}
    types = ["string", "number.int", "binary", text(chance, 4)]
    return {
        text(chance, 5): Attribute(chance.choice(types), chance.randbytes(chance.randrange(9)))
        for _ in range(chance.randrange(1, 11))
    }


def message(chance: random.Random) -> tuple[Message, int]:
    """One as the plane sends it, and what its batch's id is made of."""
    content, is_text = body(chance)
    delay_ms = chance.choice([0, 0, long(chance)])
    lease_ms = chance.choice([None, None, 0, long(chance)])
    marked, made_of = chance.random() < 0.5, chance.getrandbits(64)
    size = chance.choice([2, 10, 63, 64, 100, (1 << 32) - 1])
    mark = BatchMark(f"{made_of:016x}", chance.randrange(size), size) if marked else None
    sender = chance.choice(["alice", "", text(chance)])
    return Message(content, attributes(chance), delay_ms, lease_ms, sender, None, mark, body_is_text=is_text), made_of


def test_a_message_is_written_as_python_writes_it() -> None:
    chance = random.Random(SEED + 3)
    given = [message(chance) for _ in range(CASES)]
    cases = []
    for m, made_of in given:
        rows = [[name, a.type, a.value] for name, a in m.attributes.items()]
        mark = [] if m.batch is None else [[made_of, m.batch.index, m.batch.size]]
        cases.append(
            [
                WRITE,
                m.body,
                int(m.body_is_text),
                rows,
                m.delay_ms,
                [] if m.lease_ms is None else [m.lease_ms],
                m.sender,
                mark,
            ]
        )
    for (m, _), (record, place) in zip(given, answers(cases), strict=True):
        assert record == encode(m)
        assert place == m.body


def any_message(chance: random.Random) -> Message:
    """One in three is such as the plane does not read."""
    plain, _ = message(chance)
    if chance.random() < 0.6:
        return msgspec.structs.replace(plain, priority=chance.choice([8, 8, 1, long(chance)]))
    changes: list[dict[str, Any]] = [
        {"origin": FULL.origin},
        {"group": text(chance)},
        {"dedup_id": text(chance)},
        {"batch": BatchMark(text(chance), 1, 2)},
        {"batch": BatchMark("0123456789abcdef", long(chance), long(chance))},
        {"body": b"\xff" + plain.body, "body_is_text": True},
        {"attributes": {str(n): Attribute("string", b"") for n in range(chance.choice([100, 101]))}},
    ]
    return msgspec.structs.replace(plain, **chance.choice(changes))


def is_read(m: Message) -> bool:
    """Whether it is one that the plane should read."""
    mark = m.batch
    if mark is not None and not (
        len(mark.id.encode()) == 16 and 0 <= mark.index < 1 << 32 and 0 <= mark.size < 1 << 32
    ):
        return False
    try:
        m.body.decode() if m.body_is_text else None
    except UnicodeDecodeError:
        return False
    return (m.origin, m.group, m.dedup_id) == (None, None, None) and len(m.attributes) <= 100


def message_of(fields: list[Any]) -> Message:
    content, is_text, rows, delay_ms, lease_ms, sender, mark, priority = fields
    return Message(
        content,
        {name: Attribute(kind, value) for name, kind, value in rows},
        delay_ms,
        lease_ms[0] if lease_ms else None,
        sender,
        None,
        BatchMark(*mark[0]) if mark else None,
        None,
        None,
        priority,
        bool(is_text),
    )


def test_a_record_is_read_as_python_reads_it() -> None:
    chance = random.Random(SEED + 4)
    given: list[Message] = [any_message(chance) for _ in range(CASES)]
    for m, fields in zip(given, answers([[READ, encode(m)] for m in given]), strict=True):
        assert (message_of(fields) if fields else None) == (m if is_read(m) else None)


def test_what_is_read_in_a_damaged_record_is_what_python_reads_in_it() -> None:
    chance = random.Random(SEED + 5)
    records = [hurt(chance, encode(any_message(chance))) for _ in range(CASES)]
    records += [b"", b"\0", encode(FULL), encode(JournalRecord("q", "0" * 12, 0, [])), b"native"]
    read = 0
    for record, fields in zip(records, answers([[READ, record] for record in records]), strict=True):
        if fields:
            read += 1
            found: Message = message_of(fields)
            assert found == decode_message(record, None)
            assert encode(found) == record
    assert read > CASES / 50


@pytest.mark.parametrize(
    "tail",
    [
        b"\0\0\0\0\0\0\0\0\x10\2",  # a boolean that is neither
        b"\0\0\0\0\0\0\0\0\x90\0\1",  # a number in more bytes than it needs
        b"\1\x0c\2a\0\0\0\0\0\0\0\0\0\0\x10\1",  # attributes with their size
        b"\4\2a\0\0\2a\0\0\0\0\0\0\0\0\0\0\x10\1",  # a name that stands twice
        b"\2\2a\0\0\2\2b\0\0\0\0\0\0\0\0\0\0\x10\1",  # attributes in two blocks
        b"\0\0\4\0\0\0\0\0\x10\1",  # a third branch
        b"\0\0\0\2\xff\0\0\0\0\x10\1",  # a sender that is no text
        b"\0\0\0\0\0\0\0\0\x10\1\0",  # more
    ],
)
def test_what_we_never_write_is_left_to_python(tail: bytes) -> None:
    record = head_of(Message(b"")) + b"\0" + tail
    assert (
        try_formats(formats(), [[READ, head_of(Message(b"")) + b"\0" + b"\0\0\0\0\0\0\0\0\x10\1"], [READ, record]])[1]
        == []
    )


def test_an_entry_of_the_window_is_that_of_python() -> None:
    chance = random.Random(SEED + 6)
    given = []
    for _ in range(CASES):
        lease_ms = chance.choice([None, 0, number(chance, 62)])
        given.append((number(chance, 64), number(chance, 64), lease_ms, chance.randbytes(chance.randrange(40))))
    packed = [pack_body(*entry) for entry in given]
    cases = [
        [PACK, sent_at_ms, due_ms, [] if lease_ms is None else [lease_ms], record]
        for sent_at_ms, due_ms, lease_ms, record in given
    ]
    assert [answer for (answer,) in answers(cases)] == packed
    cut: list[Any] = [
        [UNPACK, data[: chance.choice([len(data), len(data), chance.randrange(len(data) + 1)])]] for data in packed
    ]
    for (_, data), fields, (sent_at_ms, due_ms, lease_ms, record) in zip(cut, answers(cut), given, strict=True):
        if len(data) < HEADER_BYTES:
            assert fields == []
            continue
        assert fields == [
            sent_at_ms,
            due_ms,
            [] if lease_ms is None else [lease_ms],
            record[: len(data) - HEADER_BYTES],
        ]
        assert fields[1] - fields[0] == delay_of_body(data)


def entry(chance: random.Random, seq: int) -> bytes:
    offsets = [number(chance, 40) for _ in range(chance.choice([0, 1, 1, 2, 3, 20]))]
    times = chance.choice([0, [], [long(chance) for _ in offsets]])
    kind = chance.choice(list(EventKind)).value
    tag = chance.choice([0, 0, number(chance, 16)])
    return msgspec.msgpack.encode(
        [seq, number(chance, 48), kind, tag, offsets, times, chance.choice(["", "killed", text(chance)])]
    )


def values_of(queue: str, incarnation: str, partition: int, entries: list[Entry]) -> list[bytes]:
    """What `Outbox.drain` appends."""
    return [
        encode(
            JournalRecord(
                queue,
                incarnation,
                partition,
                [JournalEntry(e.seq, e.at_ms, e.kind, e.tag, e.offsets, e.times, e.reason) for e in piece],
            )
        )
        for piece in _pieces(entries)
    ]


def test_a_record_of_the_journal_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(SEED + 7)
    monkeypatch.setattr("engine.journal.outbox.DRAIN_OFFSETS", 6)
    given = []
    for _ in range(CASES):
        first = number(chance, 40)
        entries = [entry(chance, first + place) for place in range(chance.choice([1, 1, 1, 2, 3, 5]))]
        given.append((text(chance), chance.choice(INCARNATIONS), chance.randrange(64), entries))
    for (queue, incarnation, partition, packed), found in zip(
        given, answers([[JOURNAL, *case] for case in given], most_offsets=6), strict=True
    ):
        seen = [_entry(data) for data in packed]
        assert found == [values_of(queue, incarnation, partition, seen), seen[0].at_ms, seen[-1].seq]


def test_a_damaged_entry_of_the_journal_is_refused_or_read_as_python_reads_it() -> None:
    chance = random.Random(SEED + 8)
    given = [hurt(chance, entry(chance, number(chance, 40))) for _ in range(CASES)]
    given += [msgspec.msgpack.encode([1, 2, kind, 0, [], 0, ""]) for kind in ("", "lost", b"acked")]
    given += [
        msgspec.msgpack.encode([1, 2, "acked", *rest])
        for rest in ([0, [1.0], 0, ""], [0, [1], 1, ""], [0, [1], None, ""], [2**63, [], 0, ""])
    ]
    read = 0
    for packed, found in zip(given, answers([[JOURNAL, "q", "0" * 12, 0, [packed]] for packed in given]), strict=True):
        if found:
            read += 1
            one = _entry(packed)
            assert found == [values_of("q", "0" * 12, 0, [one]), one.at_ms, one.seq]
    assert CASES / 50 < read < CASES
    assert all(found == [] for found in answers([[JOURNAL, "q", "0" * 12, 0, [packed]] for packed in given[CASES:]]))
    assert try_formats(formats(), [[JOURNAL, "q", "0" * 12, 0, []]]) == [[]]


def test_each_kind_of_the_journal_is_known() -> None:
    assert sorted(kinds()) == sorted(EventKind)
    for kind in EventKind:
        packed = msgspec.msgpack.encode([1, 2, kind.value, 0, [3], 0, ""])
        ((value,), _, _) = try_formats(formats(), [[JOURNAL, "q", "0" * 12, 0, [packed]]])[0]
        record = decode(value)
        assert isinstance(record, JournalRecord)
        assert record.entries[0].kind == kind
