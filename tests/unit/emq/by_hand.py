"""Messages as the protocols' descriptions have them, written by hand: no code has made them."""

from __future__ import annotations


def _hex(head: str, name: str, rest: str) -> bytes:
    return bytes.fromhex(head) + name.encode() + bytes.fromhex(rest)


# deleteMessage {"q", "h"}, number 1.
CALLS = {
    "binary": _hex("80010001 0000000d", "deleteMessage", "00000001 0c0001 0b0001 00000001 71 0b0002 00000001 68 00 00"),
    "compact": _hex("8221 01 0d", "deleteMessage", "1c 180171 180168 00 00"),
    "json": b'[1,"deleteMessage",1,1,{"1":{"rec":{"1":{"str":"q"},"2":{"str":"h"}}}}]',
}
# Its answer, which is nothing.
DONE = {
    "binary": _hex("80010002 0000000d", "deleteMessage", "00000001 00"),
    "compact": _hex("8241 01 0d", "deleteMessage", "00"),
    "json": b'[1,"deleteMessage",2,1,{}]',
}
# What it throws: {6, "gone"}.
THROWN = {
    "binary": _hex(
        "80010002 0000000d", "deleteMessage", "00000001 0c0001 080001 00000006 0b0002 00000004 676f6e65 00 00"
    ),
    "compact": _hex("8241 01 0d", "deleteMessage", "1c 150c 1804 676f6e65 00 00"),
    "json": b'[1,"deleteMessage",2,1,{"1":{"rec":{"1":{"i32":6},"2":{"str":"gone"}}}}]',
}
# receiveMessage, number -2: one message with a system attribute, and an attribute of bytes.
RECEIVED = {
    "binary": _hex(
        "80010002 0000000e",
        "receiveMessage",
        "fffffffe 0f0000 0c00000001 0b0001 00000001 6d 0b0002 00000001 68 0b0003 00000002 c3a9"
        " 0d0004 0b0b00000001 00000001 61 00000001 62"
        " 0d0005 0b0c00000001 00000001 78 0b0001 00000001 42 0b0003 00000002 ff00 00 00 00",
    ),
    "compact": _hex(
        "8241 feffffff0f 0e",
        "receiveMessage",
        "0900 1c 18016d 180168 1802c3a9 1b 01 88 0161 0162 1b 01 8c 0178 180142 2802ff00 00 00 00",
    ),
    "json": (
        '[1,"receiveMessage",2,-2,{"0":{"lst":["rec",1,{"1":{"str":"m"},"2":{"str":"h"},"3":{"str":"é"},'
        '"4":{"map":["str","str",1,{"a":"b"}]},"5":{"map":["str","rec",1,{"x":{"1":{"str":"B"},"3":{"str":"/wA="}}}]}}]}}]'
    ).encode(),
}
# setQueueDailyStatisticsState {"q", true}, number 0: the compact protocol has a bool in the head of
# its field.
ENABLED = {
    "binary": _hex(
        "80010001 0000001c", "setQueueDailyStatisticsState", "00000000 0c0001 0b0001 00000001 71 020002 01 00 00"
    ),
    "compact": _hex("8221 00 1c", "setQueueDailyStatisticsState", "1c 180171 11 00 00"),
    "json": b'[1,"setQueueDailyStatisticsState",1,0,{"1":{"rec":{"1":{"str":"q"},"2":{"tf":1}}}}]',
}
