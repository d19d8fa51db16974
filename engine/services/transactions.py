"""The verbs of transactions: messages that are sent when their producer says so, or never.

Who may send to a queue may prepare and decide its transactions and answer for its producers; who
has prepared one and lost that right may roll it back. Each method passes the authoriser before
anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import structs

from engine.catalog.catalog import Catalog
from engine.errors import LogUnavailable, NotAuthorised
from engine.gate import Gate, bounded
from engine.queues.callers.access import Access
from engine.queues.callers.quotas import FREE
from engine.rules.limits import check_asked, check_name
from engine.rules.queue import Queue
from engine.services.accounts import transaction_for, webhook_for
from engine.shapes import Check, Principal, SendEntry, TransactionInfo, Webhook
from engine.transactions.book import Transaction
from engine.transactions.parts import Transacted
from engine.transactions.transactions import no_transaction
from runtime.asked import look, note
from runtime.background import Background
from runtime.cancel import before
from runtime.deadline import CHANGE_S, MESSAGES_S
from schemas.accounts import full
from schemas.vocabulary import Role, TransactionStatus, Verb


class TransactionService:
    """Transactions, and what asks their producers for an outcome."""

    def __init__(self, gate: Gate, catalog: Catalog, access: Access, transacted: Transacted) -> None:
        self._gate = gate
        self._catalog = catalog
        self._access = access
        self._transactions = transacted.transactions
        self._checks = transacted.checks
        self._webhooks = transacted.webhooks
        self._returning = Background()

    @bounded(MESSAGES_S)
    async def prepare(
        self,
        by: Principal,
        queue: str,
        producer_group: str,
        entries: list[SendEntry],
        check_immunity_ms: int | None = None,
    ) -> TransactionInfo:
        """Stores 1-100 messages that nobody sees until `commit`. Nobody of `producer_group` is
        asked about them within `check_immunity_ms`, None = the service's setting.
        """
        found = await self._gate.queue(by, Verb.SEND, queue)
        charge = await self._gate.charge_send(found, entries) if self._gate.is_bound(found) else FREE
        group = full(by.account, producer_group)
        with charge:
            return transaction_for(
                by.account, await self._transactions.prepare(found, by.id, group, entries, check_immunity_ms)
            )

    @bounded(MESSAGES_S)
    async def commit(self, by: Principal, transaction: str) -> TransactionInfo:
        """Sends the messages of a transaction, once however often it is repeated; all that wait
        for messages see them. Raises TransactionDecided, TransactionGone, Unavailable.
        """
        await self._known_transaction(by, transaction)
        return transaction_for(
            by.account, await self._transactions.decide(transaction, TransactionStatus.COMMITTED, by.id)
        )

    @bounded(MESSAGES_S)
    async def rollback(self, by: Principal, transaction: str) -> TransactionInfo:
        """Drops the messages of a transaction. Raises TransactionDecided, Unavailable."""
        await self._known_transaction(by, transaction, own=True)
        return transaction_for(
            by.account, await self._transactions.decide(transaction, TransactionStatus.ROLLED_BACK, by.id)
        )

    @bounded(MESSAGES_S)
    async def unknown(self, by: Principal, transaction: str) -> TransactionInfo:
        """Says that the outcome is not known yet: nothing changes, and the producers are asked
        again.
        """
        return transaction_for(
            by.account, self._transactions.info(await self._known_transaction(by, transaction, own=True))
        )

    @bounded(MESSAGES_S)
    async def get_transaction(self, by: Principal, transaction: str) -> TransactionInfo:
        one = await self._known_transaction(by, transaction, own=True)
        return transaction_for(by.account, self._transactions.info(await self._transactions.find(one.id, newest=True)))

    async def list_transactions(
        self, by: Principal, queue: str, status: str | None, limit: int
    ) -> list[TransactionInfo]:
        """Transactions of a queue that are known, those prepared last first; workers hear of each
        other's within a second.
        """
        found = self._transactions.of_queue(await self._gate.queue(by, Verb.SEND, queue), status, limit)
        return [transaction_for(by.account, one) for one in found]

    async def check(self, by: Principal, producer_group: str, max: int, wait_ms: int) -> list[Check]:
        """Up to `max` transactions of a producer group whose outcome somebody has to say; waits up
        to `wait_ms` for the first. Only of queues that `by` may send to.
        """
        producer_group = full(by.account, producer_group)
        check_name("producer_group", producer_group)
        check_asked("max", max)
        check_asked("wait_ms", wait_ms)
        taken = await self._checks.take(producer_group, lambda one: self._may_send(by, one), max, wait_ms)
        try:
            until = asyncio.get_running_loop().time() + MESSAGES_S
            shown = await before(
                until, self._transactions.shown(taken), lambda: LogUnavailable("Kafka does not give the messages")
            )
            return [self._check_for(by, check) for check in shown]
        except BaseException:
            self._returning.start(self._checks.put_back(taken), "put back checks")
            raise

    def unchecked(self, checks: Sequence[Check]) -> None:
        """No answer carried these checks: others may have them. Returns at once."""
        self._returning.start(self._checks.put_back_ids([check.id for check in checks]), "put back checks")

    @bounded(CHANGE_S)
    async def set_webhook(
        self, by: Principal, producer_group: str, url: str, secret: str | None
    ) -> tuple[Webhook, str]:
        """Registers where a producer group is asked; returns the secret that signs the requests.
        Raises InvalidValue, NotAuthorised (it is somebody else's).
        """
        group = self._producer_group(by, producer_group)
        webhook, signing = await self._webhooks.register(by, group, url, secret)
        return webhook_for(by.account, webhook), signing

    @bounded(MESSAGES_S)
    @look
    async def get_webhook(self, by: Principal, producer_group: str) -> Webhook:
        """Raises ProducerGroupNotFound, NotAuthorised."""
        self._access.authorise(by, Verb.SET_PRODUCER_GROUP)
        return webhook_for(by.account, await self._webhooks.get(by, full(by.account, producer_group)))

    @bounded(CHANGE_S)
    async def delete_webhook(self, by: Principal, producer_group: str) -> None:
        """Raises ProducerGroupNotFound, NotAuthorised."""
        await self._webhooks.remove(by, self._producer_group(by, producer_group))

    def _producer_group(self, by: Principal, name: str) -> str:
        """The full name of a producer group that `by` would change. Raises NotAuthorised."""
        name = full(by.account, name)
        note(by.id, by.key_id, Verb.SET_PRODUCER_GROUP, subject=name)
        self._access.authorise(by, Verb.SET_PRODUCER_GROUP)
        self._access.check_account(by, name)
        return name

    def _check_for(self, by: Principal, check: Check) -> Check:
        return (
            structs.replace(check, transaction=transaction_for(by.account, check.transaction)) if by.account else check
        )

    async def _known_transaction(self, by: Principal, transaction: str, *, own: bool = False) -> Transaction:
        """`own`: who has prepared it may do that in any case. Raises TransactionNotFound,
        NotAuthorised.
        """
        one = await self._transactions.find(transaction)
        if not (own and one.principal == by.id and by.role is not Role.READER):
            queue = self._queue_of(one)
            if queue is None and not by.admin and one.principal != by.id:
                raise NotAuthorised(
                    f"principal {by.id!r} may not send to the queue of transaction {transaction}",
                    field="principal",
                    given=by.id,
                )
            if queue is not None:
                if not self._access.knows(by, queue):
                    raise no_transaction(transaction)
                self._access.authorise(by, Verb.SEND, queue)
        return one

    def _queue_of(self, one: Transaction) -> Queue | None:
        return self._catalog.by_incarnation.get(one.incarnation)

    def _may_send(self, by: Principal, one: Transaction) -> bool:
        queue = self._queue_of(one)
        # They may have waited: a key that is withdrawn meanwhile asks for nothing any more.
        return queue is not None and self._access.may(by, Verb.SEND, queue) and self._access.counts_still(by)
