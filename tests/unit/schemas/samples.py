"""A message with everything, and what random records are made of."""

from __future__ import annotations

from hypothesis import strategies as st

from schemas.records import Attribute, BatchMark, Message, Origin

FULL = Message(
    body=b"\x00\xffbody",
    attributes={"color": Attribute("string.EN", "röd".encode()), "raw": Attribute("binary", b"\xff\x00")},
    delay_ms=30 * 86_400_000,
    lease_ms=0,
    sender="alice",
    origin=Origin(
        "id",
        "tag",
        "first",
        "orders",
        "default",
        "killed",
        3,
        1_700_000_000_000,
        1_600_000_000_000,
        1_800_000_000_000,
        "note",
    ),
    batch=BatchMark("b", 2, 3),
    group="g",
    dedup_id="d",
    priority=1,
    body_is_text=False,
)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=70)
