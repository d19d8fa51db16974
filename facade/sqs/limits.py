"""Numbers and fixed words of this dialect: whose queues they are, and the ranges of SQS (reference/sqs.md, sections 3 to 5).

Neighbours: every module of the dialect reads them. This module must not know the engine; its ranges are narrower than the engine's.
"""

from __future__ import annotations

from typing import Final

ACCOUNT: Final = "000000000000"
REGION: Final = "us-east-1"

# Attribute of a queue -> its range, and its value in a queue that SQS clients create without naming it.
ATTRIBUTE_RANGES: Final[dict[str, tuple[int, int]]] = {
    "DelaySeconds": (0, 900),
    "MaximumMessageSize": (1024, 1_048_576),
    "MessageRetentionPeriod": (60, 1_209_600),
    "ReceiveMessageWaitTimeSeconds": (0, 20),
    "VisibilityTimeout": (0, 43_200),
    "KmsDataKeyReusePeriodSeconds": (60, 86_400),
}
NEW_QUEUE_MESSAGE_BYTES: Final = 1_048_576
RECEIVE_COUNT: Final = (1, 1000)

DELAY_SECONDS: Final = (0, 900)
VISIBILITY_SECONDS: Final = (0, 43_200)
WAIT_SECONDS: Final = (0, 20)
RECEIVE_MESSAGES: Final = (1, 10)
LIST_RESULTS: Final = (1, 1000)
BATCH_ENTRIES: Final = 10
BATCH_BYTES: Final = 1_048_576
MESSAGE_ATTRIBUTES: Final = 10
DATA_TYPE_CHARACTERS: Final = 256
NUMBER_DIGITS: Final = 38
NUMBER_EXPONENTS: Final = (-128, 126)
TAGS: Final = 40  # of 50 user attributes that a queue may have; SQS advises at most 50
TAG_KEY_CHARACTERS: Final = (1, 128)
TAG_VALUE_CHARACTERS: Final = (0, 256)
URL_CHARACTERS: Final = 2048
HANDLE_CHARACTERS: Final = 1024
KEY_ID_CHARACTERS: Final = 128
