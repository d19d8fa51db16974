"""The parts of transactions, built and joined."""

from __future__ import annotations

from dataclasses import dataclass

from engine.catalog.ground import Ground
from engine.transactions.book import HALF_BYTES, Book, Transaction
from engine.transactions.checks import Checks
from engine.transactions.finisher import Finisher
from engine.transactions.half_log import HalfLog
from engine.transactions.keeper import DueChecks, Endings, Keeper, Leftovers
from engine.transactions.transactions import Transactions
from engine.transactions.webhooks import Webhooks
from engine.window.parts import WindowParts
from schemas.vocabulary import Verb
from state.redis.lock import Locks


@dataclass(frozen=True)
class Transacted:
    """What the verbs of transactions are made of."""

    book: Book
    half_log: HalfLog
    finisher: Finisher
    transactions: Transactions
    checks: Checks
    webhooks: Webhooks
    keeper: Keeper


def wire_transactions(*, ground: Ground, window: WindowParts) -> Transacted:
    """Builds them; nothing is started."""
    settings, log, connection, catalog, counters = (
        ground.settings,
        ground.log,
        ground.connection,
        ground.catalog,
        ground.counters,
    )
    write_through, rights, secret = window.write_through, ground.access, window.ids.secret
    checks = Checks(settings, connection)
    book = Book(HALF_BYTES, checks.offer)
    half_log = HalfLog(settings, log, book)
    finisher = Finisher(log, catalog, half_log, write_through, counters)
    transactions = Transactions(settings, secret, catalog, book, half_log, finisher, counters)

    def may_send(principal: str, one: Transaction) -> bool:
        queue = catalog.by_incarnation.get(one.incarnation)
        return queue is not None and rights.still_may(principal, Verb.SEND, queue)

    webhooks = Webhooks(settings, catalog, checks, transactions, transactions.shown, may_send, counters)
    endings = Endings(settings, catalog, book, half_log, transactions, counters)
    due_checks = DueChecks(settings, book, half_log, webhooks, endings, counters)
    locks = Locks(connection, settings.topic_prefix)
    keeper = Keeper(locks, half_log, checks, endings, due_checks, Leftovers(book, half_log, finisher))
    return Transacted(book, half_log, finisher, transactions, checks, webhooks, keeper)
