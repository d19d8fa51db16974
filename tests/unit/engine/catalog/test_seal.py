"""The seal of control records: what was sealed opens, and nothing that was touched does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalog.seal import FRESH_MS, SEAL, SEEN, Broken, Opened, Reason, Seal
from engine.log import Record
from schemas.records import KeyRecord
from schemas.wire import encode

NOW = 1_764_000_000_000
KEY = encode(KeyRecord("k", "its secret", "alice", True, NOW))


def record(seal: Seal, key: str, content: bytes | None, seen: int = 7, at_ms: int = NOW, **changes: Any) -> Record:
    """A record as Kafka gives it back, with changes of somebody else's."""
    value, headers = seal.close(key, content, seen, at_ms)
    made = Record("lw.control", 0, 9, NOW, key.encode(), value, headers)
    return msgspec.structs.replace(made, **changes)


def reason_of(seal: Seal, key: str, found: Record) -> Broken:
    with pytest.raises(Broken) as caught:
        seal.open(key, found)
    return caught.value


@pytest.mark.parametrize("key", ["key/k", "user/u", "producers/p", "queue/q", "task/t", "watch/w", "generation"])
@pytest.mark.parametrize("value", [KEY, None])
def test_what_was_sealed_opens(key: str, value: bytes | None) -> None:
    seal = Seal("lw.control", "secret")
    found = record(seal, key, value)
    opened = seal.open(key, found)
    assert (opened.value, opened.seen, opened.current) == (value, 7, True)


def test_secrets_are_encrypted_and_what_spark_reads_is_not() -> None:
    seal = Seal("lw.control", "secret")
    for key in ("key/k", "user/u", "producers/p"):
        assert b"secret" not in (record(seal, key, KEY).value or b"")
    assert record(seal, "queue/q", KEY).value == KEY


@given(st.integers(0, 10_000), st.integers(0, 7), st.sampled_from(["key/k", "queue/q"]), st.sampled_from([KEY, None]))
def test_a_flipped_bit_anywhere_is_refused(at: int, bit: int, key: str, value: bytes | None) -> None:
    seal = Seal("lw.control", "secret")
    found = record(seal, key, value)
    headers = dict(found.headers or [])
    parts = {
        "value": bytearray(found.value or b""),
        SEEN: bytearray(headers[SEEN] or b""),
        SEAL: bytearray(headers[SEAL] or b""),
    }
    names = [name for name, part in parts.items() for _ in part]
    which = names[at % len(names)]
    offset = (at % len(names)) - names.index(which)
    parts[which][offset] ^= 1 << bit
    changed = [(SEEN, bytes(parts[SEEN])), (SEAL, bytes(parts[SEAL]))]
    touched = msgspec.structs.replace(found, value=bytes(parts["value"]) or None, headers=changed)
    broken = reason_of(seal, key, touched)
    assert broken.reason in (Reason.ALTERED, Reason.OTHER)
    if broken.reason == Reason.ALTERED:
        assert broken.content is None


def test_a_record_can_not_be_moved() -> None:
    seal = Seal("lw.control", "secret")
    found = record(seal, "key/k", KEY)
    assert reason_of(seal, "key/admin", found).reason == Reason.ALTERED
    assert reason_of(seal, "queue/k", found).reason == Reason.ALTERED
    assert reason_of(Seal("lx.control", "secret"), "key/k", found).reason == Reason.ALTERED
    # Where one part ends and the next begins is covered, too.
    assert reason_of(Seal("lw.controlk", "secret"), "ey/k", found).reason == Reason.ALTERED


def test_a_record_that_deletes_is_no_record_that_sets_nor_the_other_way_round() -> None:
    seal = Seal("lw.control", "secret")
    for key in ("key/k", "queue/q"):
        assert reason_of(seal, key, record(seal, key, KEY, value=None)).reason == Reason.ALTERED
        assert reason_of(seal, key, record(seal, key, None, value=KEY)).reason == Reason.ALTERED


def test_what_has_no_seal_does_not_count_and_says_what_it_would() -> None:
    seal = Seal("lw.control", "secret")
    plain = reason_of(seal, "key/k", record(seal, "key/k", None, value=KEY, headers=None))
    assert (plain.reason, plain.content) == (Reason.UNSEALED, Opened(KEY, None))
    before = reason_of(seal, "key/k", record(seal, "key/k", None, value=KEY, headers=[(SEEN, b"3")]))
    assert before.content == Opened(KEY, 3)
    for junk in (b"", b"\x01" * 42, b"\x01\x00" + bytes(40), bytes(1000)):
        headers = [(SEEN, b"3"), (SEAL, junk)]
        assert reason_of(seal, "key/k", record(seal, "key/k", None, headers=headers)).reason in (
            Reason.ALTERED,
            Reason.OTHER,
        )


def test_another_secret_does_not_count_and_an_old_one_does() -> None:
    theirs, ours = Seal("lw.control", "secret"), Seal("lw.control", "another")
    hidden, shown = record(theirs, "key/k", KEY), record(theirs, "queue/q", KEY)
    assert (reason_of(ours, "key/k", hidden).reason, reason_of(ours, "key/k", hidden).content) == (Reason.OTHER, None)
    assert reason_of(ours, "queue/q", shown).content == Opened(KEY, 7)
    both = Seal("lw.control", "another", "secret")
    opened = both.open("key/k", hidden)
    assert (opened.value, opened.current) == (KEY, False)
    again, headers = both.close("key/k", KEY, 7, NOW)
    assert ours.open("key/k", record(theirs, "key/k", None, value=again, headers=headers)).current


def test_a_record_that_is_appended_long_after_it_was_sealed_does_not_count() -> None:
    seal = Seal("lw.control", "secret")
    for late in (-FRESH_MS, 0, FRESH_MS):
        seal.open("key/k", record(seal, "key/k", KEY, timestamp_ms=NOW + late))
    for late in (-FRESH_MS - 1, FRESH_MS + 1):
        broken = reason_of(seal, "key/k", record(seal, "key/k", KEY, timestamp_ms=NOW + late))
        assert broken.reason == Reason.STALE
        assert broken.content is not None and broken.content.value == KEY


def test_what_comes_again_is_known_for_as_long_as_it_could_count() -> None:
    seal = Seal("lw.control", "secret")
    assert not seal.was_known(b"a", NOW)
    assert seal.was_known(b"a", NOW + 2 * FRESH_MS)
    assert not seal.was_known(b"b", NOW + 2 * FRESH_MS + 1)
    assert not seal.was_known(b"a", NOW + 2 * FRESH_MS + 1)
