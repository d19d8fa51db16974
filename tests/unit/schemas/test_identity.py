"""Message ids and handles: made, parsed, refused."""

from __future__ import annotations

import random
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from uuid import UUID

import pytest

from schemas.identity import BadIdentity, Handle, MessageId, address_of, handles_of, ids_of

SECRET = b"a secret of this installation"
OTHER = b"a secret of another installation"

IDS = [
    MessageId("000000000000", 0, 0),
    MessageId("0123456789ab", 3, 123_456),
    MessageId("ffffffffffff", 4095, 2**40 - 1),
]
HANDLES = [
    Handle("000000000000", 0, 0, 0, 0),
    Handle("0123456789ab", 3, 2, 123_456, 99),
    Handle("ffffffffffff", 4095, 2**16 - 1, 2**48 - 1, 2**64 - 1),
    Handle("0123456789ab", 3, 2, 123_456, 99, 1_767_225_600_000),
    Handle("ffffffffffff", 4095, 2**16 - 1, 2**48 - 1, 2**64 - 1, 2**48 - 1),
    Handle("0123456789ab", 3, 2, 123_456, 99, 1_767_225_600_000, 1_767_225_630_000),
    Handle("0123456789ab", 3, 2, 123_456, 99, 0, 1_767_225_630_000),
    Handle("ffffffffffff", 4095, 2**16 - 1, 2**48 - 1, 2**64 - 1, 2**48 - 1, 2**48 - 1),
]
# Texts that are out in the world: they must be read the same in every later version.
KNOWN_ID = "01234567-89ab-8003-8000-0078900c70cc"
KNOWN_HANDLE = "AQEjRWeJqwADAAIAAAAB4kAAAAAAAAAAY43LR5EvN2is"
KNOWN_HANDLE_WITH_TIME = "AgEjRWeJqwADAAIAAAAB4kAAAAAAAAAAYwGbdtqoACWdcMY9duhE"
KNOWN_HANDLE_FOR_ONE_USE = "AwEjRWeJqwADAAIAAAAB4kAAAAAAAAAAYwGbdtqoAAGbdtsdMA4-lDo57n2_"


@pytest.mark.parametrize("id", IDS)
def test_a_message_id_is_parsed_back_from_its_text(id: MessageId) -> None:
    assert MessageId.parse(id.text(SECRET), SECRET) == id


@pytest.mark.parametrize("handle", HANDLES)
def test_a_handle_is_parsed_back_from_its_text(handle: Handle) -> None:
    assert Handle.parse(handle.text(SECRET), SECRET) == handle


def test_the_texts_of_known_identities_never_change() -> None:
    assert IDS[1].text(SECRET) == KNOWN_ID
    assert HANDLES[1].text(SECRET) == KNOWN_HANDLE
    assert HANDLES[3].text(SECRET) == KNOWN_HANDLE_WITH_TIME
    assert HANDLES[5].text(SECRET) == KNOWN_HANDLE_FOR_ONE_USE


def test_what_makes_the_ids_of_a_partition_makes_each_as_if_alone() -> None:
    offsets = [0, 1, 123_456, 2**26, 2**40 - 1, 123_456]
    texts = [*map(ids_of(SECRET, "0123456789ab", 3), offsets)]

    assert texts[2] == texts[5] == KNOWN_ID
    assert [MessageId.parse(text, SECRET).offset for text in texts] == offsets
    with pytest.raises(ValueError, match="does not fit"):
        ids_of(SECRET, "0123456789ab", 3)(2**40)


def test_what_makes_the_handles_of_a_receive_makes_each_as_if_alone() -> None:
    offsets = [0, 1, 123_456, 2**32, 2**48 - 1, 123_456]
    timed = [*map(handles_of(SECRET, "0123456789ab", 3, 2, 99, 1_767_225_600_000), offsets)]
    without = [*map(handles_of(SECRET, "0123456789ab", 3, 2, 99, 0), offsets)]

    assert timed[2] == timed[5] == KNOWN_HANDLE_WITH_TIME
    assert without[2] == without[5] == KNOWN_HANDLE
    assert [Handle.parse(text, SECRET) for text in timed] == [
        Handle("0123456789ab", 3, 2, o, 99, 1_767_225_600_000) for o in offsets
    ]
    assert [Handle.parse(text, SECRET) for text in without] == [Handle("0123456789ab", 3, 2, o, 99) for o in offsets]


@pytest.mark.parametrize("known", [KNOWN_HANDLE, KNOWN_HANDLE_WITH_TIME, KNOWN_HANDLE_FOR_ONE_USE])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_handle_of_another_version_is_refused_though_its_mac_is_right(known: str, version: int) -> None:
    raw = urlsafe_b64decode(known)
    payload = bytes([version]) + raw[1:-8]
    text = urlsafe_b64encode(
        payload + blake2b(payload, key=SECRET, person=b"lw.handle", digest_size=8).digest()
    ).decode()
    if version == raw[0]:
        assert text == known
    else:
        with pytest.raises(BadIdentity, match=f"version {version} of another length"):
            Handle.parse(text, SECRET)


def test_a_message_id_is_a_uuid_of_version_8_in_either_case() -> None:
    uuid = UUID(KNOWN_ID)

    assert uuid.version == 8
    assert uuid.variant == "specified in RFC 4122"
    assert MessageId.parse(KNOWN_ID.upper(), SECRET) == IDS[1]


def test_an_address_is_that_of_one_message_whichever_secret_made_its_id() -> None:
    ids = [MessageId("0123456789ab", 3, offset) for offset in (0, 1, 2, 3, 4, 2**40 - 1)]

    addresses = [address_of(one.text(SECRET)) for one in ids]

    assert addresses == [address_of(one.text(b"another")) for one in ids]
    assert len(set(addresses)) == len(ids)
    for other in ("", "made up", "0" * 32, f"{KNOWN_ID[:-6]}zzzzzz"):
        assert address_of(other) == other


@pytest.mark.parametrize(
    ("kind", "texts"), [(MessageId, [i.text(SECRET) for i in IDS]), (Handle, [h.text(SECRET) for h in HANDLES])]
)
def test_a_text_made_with_another_secret_is_refused(kind: type[MessageId | Handle], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(BadIdentity):
            kind.parse(text, OTHER)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (MessageId, KNOWN_ID),
        (Handle, KNOWN_HANDLE),
        (Handle, KNOWN_HANDLE_WITH_TIME),
        (Handle, KNOWN_HANDLE_FOR_ONE_USE),
    ],
)
def test_a_truncated_or_lengthened_text_is_refused(kind: type[MessageId | Handle], text: str) -> None:
    for wrong in [text[:n] for n in range(len(text))] + [
        text + "0",
        text + "A",
        text + "=",
        " " + text,
        text + "\n",
        text[1:],
    ]:
        with pytest.raises(BadIdentity):
            kind.parse(wrong, SECRET)


@pytest.mark.parametrize("known", [KNOWN_HANDLE, KNOWN_HANDLE_WITH_TIME, KNOWN_HANDLE_FOR_ONE_USE])
def test_a_handle_with_any_character_altered_is_refused(known: str) -> None:
    for place in range(len(known)):
        for other in "ABQgwz019-_+/=. é\x00":
            if known[place] != other:
                with pytest.raises(BadIdentity):
                    Handle.parse(known[:place] + other + known[place + 1 :], SECRET)


def test_a_message_id_with_any_digit_altered_is_refused() -> None:
    for place in range(len(KNOWN_ID)):
        for other in "05af-_ g\u0661":
            if KNOWN_ID[place] != other:
                with pytest.raises(BadIdentity):
                    MessageId.parse(KNOWN_ID[:place] + other + KNOWN_ID[place + 1 :], SECRET)


def test_random_text_is_refused_by_nothing_else_than_bad_identity() -> None:
    dice = random.Random(20_260)
    for _ in range(3000):
        text = "".join(
            chr(dice.choice([dice.randrange(128), dice.randrange(0xD7FF)]))
            for _ in range(dice.choice([0, 36, 44, 52, 60]))
        )
        for kind in (MessageId, Handle):
            with pytest.raises(BadIdentity):
                kind.parse(text, SECRET)


@pytest.mark.parametrize(
    "wrong",
    [
        MessageId("0123456789ab", 4096, 0),
        MessageId("0123456789ab", -1, 0),
        MessageId("0123456789ab", 0, 2**40),
        MessageId("0123456789ab", 0, -1),
        MessageId("0123", 0, 0),
        Handle("0123456789ab", 0, 2**16, 0, 0),
        Handle("0123456789ab", 0, 0, 2**48, 0),
        Handle("0123456789ab", 0, 0, -1, 0),
        Handle("0123456789ab", 0, 0, 0, 2**64),
        Handle("0123", 0, 0, 0, 0),
        Handle("0123456789ab", 0, 0, 0, 0, 2**48),
        Handle("0123456789ab", 0, 0, 0, 0, -1),
        Handle("0123456789ab", 0, 0, 0, 0, 0, 2**48),
        Handle("0123456789ab", 0, 0, 0, 0, 0, -1),
    ],
)
def test_a_part_out_of_range_is_a_fault_of_the_caller(wrong: MessageId | Handle) -> None:
    with pytest.raises(ValueError, match=r"does not fit|12 hex digits"):
        wrong.text(SECRET)


def test_an_empty_secret_is_refused_and_a_long_one_works() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        IDS[0].text(b"")
    assert Handle.parse(HANDLES[1].text(b"long" * 100), b"long" * 100) == HANDLES[1]
