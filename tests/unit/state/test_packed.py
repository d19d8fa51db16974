"""The header before a record in the window."""

from __future__ import annotations

import struct

from state.packed import HEADER_BYTES, delay_of_body, first_due, pack_body
from state.replies import LoadEntry


def test_a_body_is_three_big_endian_numbers_and_the_record() -> None:
    packed = pack_body(1_000, 1_003, None, b"record")
    assert struct.unpack(">QQq", packed[:HEADER_BYTES]) == (1_000, 1_003, -1)
    assert packed[HEADER_BYTES:] == b"record"
    assert pack_body(1_000, 1_003, 0, b"")[16:] == bytes(8)  # a lease of 0 ms is not the queue's


def test_the_delay_of_a_body_is_from_its_send_to_when_it_is_due() -> None:
    assert delay_of_body(pack_body(1_000, 8_000, 9, b"record")) == 7_000


def test_the_first_due_is_that_of_the_entries_with_a_time() -> None:
    entries = [LoadEntry(offset, pack_body(0, due, None, b""), "1") for offset, due in enumerate((300, 256, 65_536))]
    assert first_due(entries) == 256
    assert first_due([LoadEntry(9, b"", "0", reason="filtered"), *entries]) == 256
    assert first_due([]) == 0
