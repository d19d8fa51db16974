"""How SQS names a queue: queue URLs and ARNs; `orders@billing` is tag `billing` of queue `orders`.

With the setting `sqs_namespaces` account or region or both tell queues apart: the engine's name of
a queue then begins with them, as `123456789012.eu-west-1.orders`. Neither may have a dot in it, and
SQS's own names have none but that of `.fifo`, so the way back is never in doubt. Without the
setting the engine's name is SQS's, and any account and region are as good as ours. That is so until
a key is of an account: then an account in a URL or ARN is that account.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote

from msgspec import Struct, structs

from facade.dialects.sqs.wire.errors import (
    INVALID_ADDRESS,
    INVALID_PARAMETER,
    UNSUPPORTED_OPERATION,
    SqsError,
    invalid,
    missing,
)
from facade.dialects.sqs.wire.limits import URL_CHARACTERS
from schemas.accounts import DEFAULT_ACCOUNT, account_of

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
_ACCOUNT = re.compile(r"[0-9]{12}")
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_REGION_OF_HOST = re.compile(r"https?://sqs\.([a-z0-9-]{1,40})\.")
FIFO_SUFFIX = ".fifo"
_ANY = "*"


class Address(Struct, frozen=True):
    """A queue by the engine's name, and the tag of it that is spoken to; None = the default tag."""

    queue: str
    tag: str | None = None

    @property
    def name(self) -> str:
        return self.queue if self.tag is None else f"{self.queue}@{self.tag}"


class Place(Struct, frozen=True):
    """Whose queues they are, and how URLs begin: with scheme and host as the client called us, so
    that it can reach what it is told.

    `by_account` and `by_region`: what tells queues of the same name apart. `own`, where keys are of
    accounts: the caller's, whose queues the engine takes from the caller without it; `default` is
    what SQS calls the default account.
    """

    base: str
    account: str
    region: str
    by_account: bool = False
    by_region: bool = False
    own: str = ""
    default: str = ""

    def of(self, account: str) -> Place:
        """The place for a caller whose key is of `account`, "" = the default one, where keys are of
        accounts.
        """
        if self.by_account and not account:
            return self
        own = account or self.account
        return structs.replace(
            self, account=own, own=own, default=self.account if not self.by_account else "", by_account=False
        )

    def queue(self, name: str, account: str | None = None, region: str | None = None) -> str:
        """What the engine calls a queue of an account and region; None = those of the request."""
        parts = [account or self.account] if self.by_account else []
        if self.own and account and account != self.own:
            parts = [DEFAULT_ACCOUNT if account == self.default else account]
        parts += [region or self.region] if self.by_region else []
        return ".".join([*parts, name])

    def _split(self, queue: str) -> tuple[str, str, str]:
        """Account, region and SQS's name of a queue of the engine. One made natively under another
        name is taken for ours.
        """
        if self.own:
            return self._split_own(queue)
        parts = queue.split(".", self.by_account + self.by_region)
        account = parts[0] if self.by_account and _ACCOUNT.fullmatch(parts[0]) else None
        region = parts[-2] if self.by_region and len(parts) > 1 and _REGION.fullmatch(parts[-2]) else None
        if (
            (self.by_account and account is None)
            or (self.by_region and region is None)
            or len(parts) <= self.by_account + self.by_region
        ):
            return self.account, self.region, queue
        return account or self.account, region or self.region, parts[-1]

    def _split_own(self, queue: str) -> tuple[str, str, str]:
        account = account_of(queue)
        name = queue.removeprefix(f"{account}.") if account else queue
        region, dot, rest = name.partition(".")
        if self.by_region and dot and _REGION.fullmatch(region):
            name = rest
        else:
            region = self.region
        return (self.default if account == DEFAULT_ACCOUNT else account) or self.own, region, name

    def name(self, queue: str) -> str:
        """What SQS calls a queue of the engine."""
        return self._split(queue)[2]

    def url(self, queue: str) -> str:
        """The URL of a queue of the engine."""
        account, _, name = self._split(queue)
        return f"{self.base}/{account}/{quote(name, safe='@')}"

    def arn(self, queue: str) -> str:
        """The ARN of a queue of the engine."""
        account, region, name = self._split(queue)
        return f"arn:aws:sqs:{region}:{account}:{name}"

    def concerns(self, queue: str, resource: str) -> bool:
        """Whether the ARN in `resource`, which may have `*` and `?`, is that of a queue of the
        engine. Account and region count where they tell queues apart.
        """
        parts = resource.split(":", 5)
        if resource == "*":
            return True
        if len(parts) != 6 or parts[0] != "arn" or not fits("sqs", parts[2]):
            return False
        account, region, name = self._split(queue)
        by_account = self.by_account or bool(self.own)
        wanted = ((name, parts[5], True), (region, parts[3], self.by_region), (account, parts[4], by_account))
        return all(fits(value, pattern) for value, pattern, counts in wanted if counts)

    def principal(self, account: str, name: str) -> str:
        """What the engine calls a user of an account, as the caller says it: any account is as good
        as ours until a key is of one.
        """
        if not self.own or account == self.own:
            return name
        return f"{DEFAULT_ACCOUNT if account == self.default else account}.{name}"

    def tag_of(self, queue: str, resource: str) -> str:
        """The tag of a queue of the engine that an ARN names, "" = none of it."""
        of, at, tag = resource.rpartition("@")
        return tag if at and self.concerns(queue, of) else ""

    def address(self, name: str, account: str | None = None, region: str | None = None) -> Address:
        """The address that a queue name spells. `orders@` is no tag, but a name that no queue
        has.
        """
        queue, _, tag = name.partition("@")
        return Address(self.queue(queue if tag else name, account, region), tag or None)

    def of_url(self, url: str | None) -> Address:
        """The address in a queue URL: its last part, and its account where that tells queues apart.
        Raises SqsError.

        Any host and path before it will do.
        """
        if not url:
            raise missing("QueueUrl")
        if len(url) > URL_CHARACTERS:
            raise SqsError(INVALID_ADDRESS, f"The address {url[:100]} is not valid for this endpoint.")
        return _of_url(self, url) if self.by_account or self.by_region or self.own else _by_name(url)

    def whole(self, url: str | None, action: str) -> str:
        """The queue of a URL for an action that can't be done to a tag. Raises SqsError."""
        found = self.of_url(url)
        if found.tag is not None:
            at = f"the queue {self.name(found.queue)}, not on its tag {found.tag}"
            raise SqsError(UNSUPPORTED_OPERATION, f"{action} works on {at}.")
        return found.queue

    def of_arn(self, arn: str) -> str | None:
        """The queue that an ARN of SQS names, by the engine's name; None for anything else."""
        parts = arn.split(":")
        if len(parts) != 6 or parts[0] != "arn" or parts[2] != "sqs" or not parts[5]:
            return None
        region, account, name = parts[3:]
        if ((self.by_account or self.own) and not _ACCOUNT.fullmatch(account)) or (
            self.by_region and not _REGION.fullmatch(region)
        ):
            return None
        return self.queue(name, account, region)

    def new(self, name: str | None, *, fifo: bool) -> Address:
        """The queue or tag to make. Raises SqsError for a name that SQS does not allow, or not to a
        queue that is (not) `fifo`.

        A tag is of the kind of its queue, whatever is asked for.
        """
        name = named(name)
        queue, _, tag = name.partition("@")
        suffixed = queue.endswith(FIFO_SUFFIX)
        legal = (_FIFO_NAME if suffixed else _NAME).fullmatch(queue if tag else name)
        if not legal or (tag and not _NAME.fullmatch(tag)):
            raise SqsError(INVALID_PARAMETER, _LEGAL_FIFO_NAME if fifo else _LEGAL_NAME)
        if not tag and fifo != suffixed:
            raise SqsError(INVALID_PARAMETER, _LEGAL_FIFO_NAME if fifo else _LEGAL_NAME)
        return self.address(name)


# AWS's words; the one text has a full stop at its end, the other has not.
_LEGAL_NAME = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
_LEGAL_FIFO_NAME = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo "
    "suffix and be 1 to 80 in length."
)


def named(name: str | None) -> str:
    """The name that a request has to give. Raises SqsError when it does not."""
    if not name:
        raise invalid("QueueName", None, "Must specify a queue name.")
    return name


@lru_cache(maxsize=4096)
def _by_name(url: str) -> Address:
    """The address in a URL where its last part says all."""
    name = _last(url, url.rstrip("/").rpartition("/")[2])
    queue, _, tag = name.partition("@")
    return Address(queue, tag) if tag else Address(name)


@lru_cache(maxsize=4096)
def _of_url(place: Place, url: str) -> Address:
    parts = url.rstrip("/").rsplit("/", 2)
    account = parts[-2] if len(parts) > 1 and _ACCOUNT.fullmatch(parts[-2]) else None
    host = _REGION_OF_HOST.match(url)
    return place.address(_last(url, parts[-1]), account, None if host is None else host[1])


def _last(url: str, name: str) -> str:
    if not name:
        raise SqsError(INVALID_ADDRESS, f"The address {url[:100]} is not valid for this endpoint.")
    return unquote(name) if "%" in name else name


def fits(name: str, pattern: str) -> bool:
    """Whether a pattern of IAM, with `*` for any characters and `?` for one, is that of `name`. It
    looks at each place of `name` once at most for each character of the pattern.
    """
    at = tried = begun = 0
    star = -1  # the last one; what is behind it is tried from each place of the name on
    while at < len(name):
        sign = pattern[tried : tried + 1]
        if sign == _ANY:
            star, begun, tried = tried, at, tried + 1
        elif sign and sign in ("?", name[at]):
            at, tried = at + 1, tried + 1
        elif star >= 0:
            begun += 1
            at, tried = begun, star + 1
        else:
            return False
    return not pattern[tried:].strip(_ANY)
