"""How SQS names a queue: queue URLs and ARNs; `orders@billing` is tag `billing` of queue `orders`.

Neighbours: the actions. This module must not know whether a queue exists.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

from msgspec import Struct

from facade.sqs.errors import INVALID_ADDRESS, UNSUPPORTED_OPERATION, SqsError, invalid, missing
from facade.sqs.limits import URL_CHARACTERS

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
FIFO_SUFFIX = ".fifo"


class Address(Struct, frozen=True):
    """A queue, and the tag of it that is spoken to; None = the default tag."""

    queue: str
    tag: str | None = None

    @property
    def name(self) -> str:
        return self.queue if self.tag is None else f"{self.queue}@{self.tag}"


class Place(Struct, frozen=True):
    """Whose queues they are; `base` is scheme and host as the client called us, so that it can reach what it is told."""

    base: str
    account: str
    region: str

    def url(self, name: str) -> str:
        """The URL of a queue."""
        return f"{self.base}/{self.account}/{quote(name, safe='@')}"

    def arn(self, name: str) -> str:
        """The ARN of a queue."""
        return f"arn:aws:sqs:{self.region}:{self.account}:{name}"


def address(name: str) -> Address:
    """The address that a queue name spells. `orders@` is no tag, but a name that no queue has."""
    queue, _, tag = name.partition("@")
    return Address(queue, tag) if tag else Address(name)


@lru_cache(maxsize=4096)
def _of_url(url: str) -> Address:
    name = url.rstrip("/").rpartition("/")[2]
    if not name:
        raise SqsError(INVALID_ADDRESS, f"The address {url[:100]} is not valid for this endpoint.")
    return address(unquote(name) if "%" in name else name)


def of_url(url: str | None) -> Address:
    """The address in a queue URL: its last part. Any host, account and path before it will do. Raises SqsError."""
    if not url:
        raise missing("QueueUrl")
    if len(url) > URL_CHARACTERS:
        raise SqsError(INVALID_ADDRESS, f"A queue URL may have {URL_CHARACTERS} characters.")
    return _of_url(url)


def whole(url: str | None, action: str) -> str:
    """The queue of a URL for an action that can't be done to a tag. Raises SqsError."""
    found = of_url(url)
    if found.tag is not None:
        raise SqsError(UNSUPPORTED_OPERATION, f"{action} works on the queue {found.queue}, not on its tag {found.tag}.")
    return found.queue


def new_name(name: str | None, *, fifo: bool) -> Address:
    """The queue or tag to make. Raises SqsError for a name that SQS does not allow, or not to a queue that is (not) `fifo`.

    A tag is of the kind of its queue, whatever is asked for.
    """
    if not name:
        raise missing("QueueName")
    at = address(name)
    suffixed = at.queue.endswith(FIFO_SUFFIX)
    legal = (_FIFO_NAME if suffixed else _NAME).fullmatch(at.queue)
    if not legal or (at.tag is not None and not _NAME.fullmatch(at.tag)):
        raise invalid("QueueName", name, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
    if at.tag is None and fifo != suffixed:
        raise invalid("QueueName", name, f"The name of a queue with FifoQueue=true ends in {FIFO_SUFFIX}, and no other does.")
    return at


def name_of_arn(arn: str) -> str | None:
    """The queue name in an ARN of SQS, any region and account; None for anything else."""
    parts = arn.split(":")
    return parts[5] if len(parts) == 6 and parts[0] == "arn" and parts[2] == "sqs" and parts[5] else None
