"""Numbers of this dialect: the ranges of SQS (reference/sqs.md, sections 3 to 5), and those that a
setting makes wider.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from facade.attributes import Attribute

# Of a request that sends no message.
REQUEST_BYTES: Final = 262_144
# What AWS allows besides messages: it took 1,662,976 bytes when messages had 262,144, six for each
# and these. JSON may write a character in six, a form a byte in three.
_REST_BYTES: Final = 90_112
_IN_JSON, _IN_FORM, _MOST_BYTES = 6, 3, 16_777_216


class Limits(Struct, frozen=True):
    """What depends on the setting `sqs_limits`."""

    delay_s: int
    wait_s: int
    batch: int  # messages, of sends, receives and handles
    batch_bytes: int

    @property
    def json_bytes(self) -> int:
        """Of a request over AWS JSON that sends messages."""
        return min(_IN_JSON * self.batch_bytes + _REST_BYTES, _MOST_BYTES)

    @property
    def form_bytes(self) -> int:
        """Of a form that sends messages."""
        return min(_IN_FORM * self.batch_bytes + _REST_BYTES, _MOST_BYTES)

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The attributes of a queue that are settings and numbers, by name."""
        rows = (
            Attribute("DelaySeconds", "delay_ms", 1000, 0, self.delay_s),
            Attribute("MaximumMessageSize", "max_message_bytes", 1, 1024, 1_048_576, default=1_048_576),
            Attribute("MessageRetentionPeriod", "retention_ms", 1000, 60, 1_209_600),
            Attribute("ReceiveMessageWaitTimeSeconds", "receive_wait_ms", 1000, 0, self.wait_s),
            Attribute("VisibilityTimeout", "lease_ms", 1000, 0, 43_200),
        )
        return {row.name: row for row in rows}


LIMITS: Final = {
    "aws": Limits(delay_s=900, wait_s=20, batch=10, batch_bytes=1_048_576),
    "wide": Limits(delay_s=2_592_000, wait_s=60, batch=100, batch_bytes=4_000_000),
}

KEY_REUSE_SECONDS: Final = (60, 86_400)
RECEIVE_COUNT: Final = (1, 1000)

VISIBILITY_SECONDS: Final = (0, 43_200)
LIST_RESULTS: Final = (1, 1000)
MESSAGE_ATTRIBUTES: Final = 10
NAME_CHARACTERS: Final = 256
DATA_TYPE_CHARACTERS: Final = 256
NUMBER_DIGITS: Final = 38
NUMBER_EXPONENTS: Final = (-128, 126)
TAGS: Final = 50
TAG_KEY_CHARACTERS: Final = 128
TAG_VALUE_CHARACTERS: Final = 256
POLICY_BYTES: Final = 8192
POLICY_STATEMENTS: Final = 20
POLICY_PRINCIPALS: Final = 50
POLICY_CONDITIONS: Final = 10
PERMISSION_ACTIONS: Final = 7
SOURCE_QUEUES: Final = 10
MOVE_RATE: Final = (1, 500)
MOVE_TASKS: Final = (1, 10)
URL_CHARACTERS: Final = 2048
HANDLE_CHARACTERS: Final = 1024
ATTEMPT_CHARACTERS: Final = 128
KEY_ID_CHARACTERS: Final = 128
FORM_FIELDS: Final = 5_000  # 100 messages have 3,600
SKEW_SECONDS: Final = 900
PRESIGNED_SECONDS: Final = 604_800
