"""MD5s of attributes against vectors that were not made with this code.

The digests were computed with coreutils' md5sum over bytes typed by hand from the rule: length and
name, length and data type, kind of transport, length and value, in the order of the names.
"""

from __future__ import annotations

import pytest

from facade.dialects.sqs.wire.digests import of_attributes, of_body

VECTORS = [
    ([("a", "String", b"b")], "bef8bf215374a0a228d67533b1a488be"),
    ([("n", "Number.eur", b"12.5")], "16120153ab20501d3b82adc51e45300a"),
    ([("logo", "Binary.PNG", b"\x89\x00")], "c912678a72213b2b431fdbbd85bdfbbe"),
    ([("a", "String", "üx".encode()), ("b", "Binary", b"\xff")], "970775a09ed530ac66408c5d671d8370"),
]


@pytest.mark.parametrize(("attributes", "digest"), VECTORS)
def test_attributes_have_the_digest_of_sqs(attributes: list[tuple[str, str, bytes]], digest: str) -> None:
    assert of_attributes(attributes) == digest
    assert of_attributes(reversed(attributes)) == digest


def test_no_attributes_have_no_digest() -> None:
    assert of_attributes([]) is None


def test_a_body_has_the_md5_of_its_bytes() -> None:
    assert of_body(b"") == "d41d8cd98f00b204e9800998ecf8427e"
    assert of_body(b"The quick brown fox jumps over the lazy dog") == "9e107d9d372bb6826bd81d3542a419d6"
