"""The header before a record in the window."""

from __future__ import annotations

import struct

from state.packed import HEADER_BYTES, delay_of_body, pack_body


def test_a_body_is_three_big_endian_numbers_and_the_record() -> None:
    packed = pack_body(1_000, 1_003, None, b"record")
    assert struct.unpack(">QQq", packed[:HEADER_BYTES]) == (1_000, 1_003, -1)
    assert packed[HEADER_BYTES:] == b"record"
    assert pack_body(1_000, 1_003, 0, b"")[16:] == bytes(8)  # a lease of 0 ms is not the queue's


def test_the_delay_of_a_body_is_from_its_send_to_when_it_is_due() -> None:
    assert delay_of_body(pack_body(1_000, 8_000, 9, b"record")) == 7_000
