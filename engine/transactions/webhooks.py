"""Producer groups that are asked by HTTP: registered, and asked.

A webhook gets a check only if who registered it may send to the transaction's queue: a group name
belongs to nobody, so it opens nothing. The keeper of the transaction's shard asks; an answer that
does not come, or decides nothing, leaves the transaction open until its next check.
"""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from engine.catalog.catalog import Catalog
from engine.errors import EngineError, InvalidValue, NotAuthorised, ProducerGroupNotFound
from engine.outgoing.post import OutgoingError, post, signed, target_of
from engine.rules.limits import check_name
from engine.settings import EngineSettings
from engine.shapes import Check, Principal, TransactionInfo, Webhook
from engine.transactions.book import Transaction
from engine.transactions.checks import Checks, TakenCheck
from engine.transactions.transactions import Transactions
from runtime.background import Background
from runtime.clock import now_ms
from runtime.counters import Counters
from schemas.records import Message, ProducerGroupRecord
from schemas.vocabulary import TransactionStatus

logger = logging.getLogger(__name__)

# Requests under way; a check beyond that is left to the next one.
MOST_UNDER_WAY = 64
_DECISIONS = {"commit": TransactionStatus.COMMITTED, "rollback": TransactionStatus.ROLLED_BACK}


class _Decision(msgspec.Struct):
    decision: str = "unknown"


class Webhooks:
    """Webhooks of the service. `may_send(principal, transaction)`; `shown` makes a check of what
    was taken, None = its half is gone.
    """

    def __init__(
        self,
        settings: EngineSettings,
        catalog: Catalog,
        checks: Checks,
        transactions: Transactions,
        shown: Callable[[Sequence[TakenCheck]], Awaitable[list[Check]]],
        may_send: Callable[[str, Transaction], bool],
        counters: Counters,
    ) -> None:
        self._private = settings.webhook_addresses == "all"
        self._catalog = catalog
        self._checks = checks
        self._transactions = transactions
        self._shown = shown
        self._may_send = may_send
        self._counters = counters
        self._background = Background()
        self._under_way = 0

    async def can_be_asked(self, group: str) -> bool:
        """Returns whether a producer of a group waits for checks, or has named a webhook."""
        return group in self._catalog.producer_groups or await self._checks.has_producer(group)

    async def stop(self) -> None:
        """Ends the requests under way: their transactions are asked about again."""
        await self._background.stop()

    async def register(self, by: Principal, producer_group: str, url: str, secret: str | None) -> tuple[Webhook, str]:
        """Sets the webhook of a group, with its secret (made when none is given). Raises
        InvalidValue, NotAuthorised (somebody else registered it).
        """
        check_name("producer_group", producer_group)
        target_of(url, "url")
        if secret is not None and not (16 <= len(secret) <= 200 and secret.isascii() and secret.isprintable()):
            raise InvalidValue("secret must be 16 to 200 printable ASCII characters", field="secret", limit=[16, 200])
        secret = secret or secrets.token_urlsafe(30)
        async with self._catalog.change(f"producers/{producer_group}") as change:
            self._check_owner(by, producer_group)
            record = ProducerGroupRecord(producer_group, by.id, url, secret, now_ms())
            await change.write(f"producers/{producer_group}", record)
        return _webhook(record), secret

    async def get(self, by: Principal, producer_group: str) -> Webhook:
        """The webhook of a group, for who registered it. Raises ProducerGroupNotFound,
        NotAuthorised.
        """
        if producer_group not in self._catalog.producer_groups:
            await self._catalog.sync()
        self._check_owner(by, producer_group)
        return _webhook(self._known(producer_group))

    async def remove(self, by: Principal, producer_group: str) -> None:
        """Raises ProducerGroupNotFound, NotAuthorised."""
        async with self._catalog.change(f"producers/{producer_group}") as change:
            self._check_owner(by, producer_group)
            self._known(producer_group)
            await change.write(f"producers/{producer_group}", None)

    def _known(self, producer_group: str) -> ProducerGroupRecord:
        record = self._catalog.producer_groups.get(producer_group)
        if record is None:
            raise ProducerGroupNotFound(
                f"producer group {producer_group!r} has no webhook", field="producer_group", given=producer_group
            )
        return record

    def _check_owner(self, by: Principal, producer_group: str) -> None:
        record = self._catalog.producer_groups.get(producer_group)
        if record is not None and record.owner != by.id and not by.admin:
            raise NotAuthorised(
                f"the webhook of producer group {producer_group!r} was registered by somebody else",
                field="principal",
                given=by.id,
            )

    def ask(self, one: Transaction) -> None:
        """Asks the webhook of a transaction's group, if there is one. Returns at once."""
        record = self._catalog.producer_groups.get(one.producer_group)
        if record is None or self._under_way >= MOST_UNDER_WAY or not self._may_send(record.owner, one):
            return
        self._under_way += 1
        task = self._background.start(self._ask(record, one), "webhook")
        task.add_done_callback(lambda _: self._done())

    def _done(self) -> None:
        self._under_way -= 1

    async def _ask(self, record: ProducerGroupRecord, one: Transaction) -> None:
        taken = await self._checks.take_one(one)
        if taken is None:
            return  # a producer that waited has it
        try:
            for check in await self._shown([taken]):
                decision = await self._post(record, check)
                if decision in _DECISIONS:
                    await self._transactions.decide(one.id, _DECISIONS[decision], record.owner)
        except (EngineError, OutgoingError) as error:
            self._counters.count("webhooks_failed_total")
            logger.warning("action=webhook group=%s transaction=%s error=%s", record.name, one.id, error)

    async def _post(self, record: ProducerGroupRecord, check: Check) -> str:
        """What the webhook answers. Raises OutgoingError."""
        body = msgspec.json.encode(_body(check))
        status, answer = await post(
            record.url, body, signed(record.secret, now_ms() // 1000, body), private=self._private
        )
        if status == 204:
            return "unknown"
        if status != 200:
            raise OutgoingError(f"it answered {status}")
        try:
            return msgspec.json.decode(answer, type=_Decision).decision
        except msgspec.DecodeError as error:
            raise OutgoingError(f"its answer can't be read: {error}") from error


def _webhook(record: ProducerGroupRecord) -> Webhook:
    return Webhook(record.name, record.owner, record.url, record.modified_at_ms)


def _body(check: Check) -> dict[str, object]:
    about: TransactionInfo = check.transaction
    return {
        "check": check.id,
        "number": check.number,
        "transaction": about.id,
        "queue": about.queue,
        "producer_group": about.producer_group,
        "prepared_at_ms": about.prepared_at_ms,
        "messages": [_message(message) for message in check.messages],
    }


def _message(message: Message) -> dict[str, object]:
    attributes = {
        name: {"type": attribute.type, "value_base64": base64.b64encode(attribute.value).decode()}
        for name, attribute in message.attributes.items()
    }
    body = (
        {"body": message.body.decode()}
        if message.body_is_text
        else {"body_base64": base64.b64encode(message.body).decode()}
    )
    return {**body, "attributes": attributes}
