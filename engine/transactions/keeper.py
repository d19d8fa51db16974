"""Looks after the transactions of shards: checks when they are due, ends what nobody decides,
finishes what a dead worker began, forgets what is over.

Each shard has one keeper, by a lock in Redis. A keeper that was stopped and goes on after its
successor does no harm: a check has a number that counts once, a decision counts only if it is the
first in the log, what follows from one is idempotent (`finisher.py`), and nothing is forgotten that
is not done.
"""

from __future__ import annotations

import asyncio
import logging

from engine.catalog.catalog import Catalog
from engine.errors import EngineError
from engine.settings import EngineSettings
from engine.transactions.book import Book, Transaction
from engine.transactions.checks import Checks
from engine.transactions.finisher import Finisher
from engine.transactions.half_log import HalfLog, key_of
from engine.transactions.transactions import Transactions
from engine.transactions.webhooks import Webhooks
from runtime.background import Background
from runtime.cancel import cancel_all
from runtime.clock import now_ms
from runtime.counters import Counters
from runtime.failpoints import reached
from runtime.service import Periodic
from schemas.records import TransactionRecord
from schemas.vocabulary import DecisionReason, TransactionStatus, TransactionStep
from state.errors import StateError
from state.redis.lock import Hold, Locks

logger = logging.getLogger(__name__)

# What was decided is remembered so long, for answers that are repeated; what the service decided
# longer, for people. More than MOST_DECIDED (of all shards) are forgotten earlier, the oldest
# first.
REMEMBER_MS = 3_600_000
REMEMBER_OURS_MS = 3 * 86_400_000
MOST_DECIDED = 50_000
# In one round of a shard.
AT_ONCE = 50
MOST_CHECKS = 2_000
MOST_TAKEN_UP = 200
MOST_FORGOTTEN = 2_000


class Endings:
    """Ends transactions that nobody decides."""

    def __init__(
        self,
        settings: EngineSettings,
        catalog: Catalog,
        book: Book,
        half_log: HalfLog,
        transactions: Transactions,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._book = book
        self._half_log = half_log
        self._transactions = transactions
        self._counters = counters

    async def end_gone(self, shard: int) -> None:
        """Transactions whose queue is gone, or that are too old, are rolled back."""
        opened = self._book.open.get(shard, {})
        if not opened:
            return
        known = self._catalog.by_incarnation
        if any(one.incarnation not in known for one in opened.values()):
            await self._catalog.sync()  # a queue that was made a moment ago is not gone
        before_ms = self._half_log.now_ms() - self._settings.transaction_age_ms
        over = [(one, DecisionReason.QUEUE_GONE) for one in opened.values() if one.incarnation not in known]
        over += [
            (one, DecisionReason.TOO_OLD)
            for one in opened.values()
            if one.incarnation in known and one.prepared_at_ms < before_ms
        ]
        await self.decide([(one, TransactionStatus.ROLLED_BACK, reason) for one, reason in over[:MOST_CHECKS]])

    async def decide(self, ended: list[tuple[Transaction, TransactionStatus, DecisionReason]]) -> None:
        """Decides transactions, each for a reason; a producer may have come first."""
        for at in range(0, len(ended), AT_ONCE):
            some = ended[at : at + AT_ONCE]
            outcomes = await asyncio.gather(
                *[self._transactions.decide(one.id, status, reason=reason) for one, status, reason in some],
                return_exceptions=True,
            )
            for (one, status, reason), outcome in zip(some, outcomes, strict=True):
                if isinstance(outcome, EngineError):  # decided by a producer meanwhile, or not now
                    logger.info("action=end_transaction id=%s outcome=%s", one.id, outcome)
                elif isinstance(outcome, BaseException):
                    raise outcome
                else:
                    self._counters.count("transactions_ended_total")
                    logger.warning(
                        "action=end_transaction id=%s queue=%s status=%s reason=%s", one.id, one.queue, status, reason
                    )


class DueChecks:
    """Checks transactions when they are due."""

    def __init__(
        self,
        settings: EngineSettings,
        book: Book,
        half_log: HalfLog,
        webhooks: Webhooks,
        endings: Endings,
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._book = book
        self._half_log = half_log
        self._webhooks = webhooks
        self._endings = endings
        self._counters = counters

    async def check_due(self, shard: int) -> None:
        """Writes the checks that are due, of groups that somebody can be asked of: others use none
        up. An interval after the last one the transaction is decided.
        """
        settings, now = self._settings, self._half_log.now_ms()
        most, interval_ms = settings.transaction_checks, settings.transaction_interval_ms
        due = [one for one in self._book.open.get(shard, {}).values() if one.next_check_ms(interval_ms) <= now]
        groups = {one.producer_group for one in due if one.checks < most}
        there = {group for group in groups if await self._webhooks.can_be_asked(group)}
        asked = [one for one in due if one.checks < most and one.producer_group in there][:MOST_CHECKS]
        ended = [one for one in due if one.checks >= most][:MOST_CHECKS]  # before more are asked
        for at in range(0, len(asked), AT_ONCE):
            await asyncio.gather(*[self._check(one) for one in asked[at : at + AT_ONCE]])
        if settings.transaction_exhausted != "keep":
            status = (
                TransactionStatus.COMMITTED
                if settings.transaction_exhausted == "commit"
                else TransactionStatus.ROLLED_BACK
            )
            await self._endings.decide([(one, status, DecisionReason.CHECKS_EXHAUSTED) for one in ended])

    async def _check(self, one: Transaction) -> None:
        number = one.checks + 1
        reached("transaction.before_check")
        if not one.is_open:
            return
        appended = await self._half_log.append(
            TransactionRecord(one.id, TransactionStep.CHECK, now_ms(), check=number), "check"
        )
        await self._half_log.reach(self._half_log.shard_of(one.id), appended.offset + 1)
        self._counters.count("transaction_checks_total")
        if one.is_open and one.checks == number:
            self._webhooks.ask(one)


class Leftovers:
    """Finishes what a dead worker began, and forgets what is over."""

    def __init__(self, book: Book, half_log: HalfLog, finisher: Finisher) -> None:
        self._book = book
        self._half_log = half_log
        self._finisher = finisher

    async def take_up(self, shard: int) -> None:
        """Finishes transactions that were decided and that nobody carries out."""
        now = asyncio.get_running_loop().time()
        left = [one for one in self._book.unfinished.get(shard, {}).values() if self._finisher.is_left(one, now)][
            :MOST_TAKEN_UP
        ]
        if left:
            logger.info("action=take_up_transactions shard=%d transactions=%d", shard, len(left))
            await self._finisher.take_up(left)

    async def forget(self, shard: int) -> None:
        """Drops the records of transactions that are over; the decision that counts goes last."""
        now, decided = self._half_log.now_ms(), self._book.decided.get(shard, {})
        surplus = max(0, len(decided) - MOST_DECIDED // self._half_log.shards)
        over: list[Transaction] = []
        for place, one in enumerate(decided.values()):
            if len(over) >= MOST_FORGOTTEN or place >= surplus + MOST_FORGOTTEN:
                break
            kept_ms = REMEMBER_MS if one.reason == DecisionReason.ANSWERED else REMEMBER_OURS_MS
            if one.is_finished and (place < surplus or now - one.decided_at_ms > kept_ms):
                over.append(one)
        over += [
            one
            for one in self._book.orphans()
            if self._half_log.shard_of(one.id) == shard and now - one.decided_at_ms > REMEMBER_MS
        ]
        for at in range(0, len(over), AT_ONCE):
            await asyncio.gather(*[self._half_log.drop(one.id, _keys(one)) for one in over[at : at + AT_ONCE]])


def _keys(one: Transaction) -> list[bytes]:
    return list(one.keys) if one.half_dropped else [*one.keys, key_of(one.id)]


ROUND_S = 1.0
HOLD_MS = 6_000


class _Shard:
    def __init__(self, hold: Hold, renewal: asyncio.Task[None]) -> None:
        self.hold = hold
        self.renewal = renewal

    async def stop(self) -> None:
        await cancel_all(self.renewal)
        await self.hold.give_up()


class Keeper:
    """Keeps the shards that no other worker keeps."""

    def __init__(
        self,
        locks: Locks,
        half_log: HalfLog,
        checks: Checks,
        endings: Endings,
        due_checks: DueChecks,
        leftovers: Leftovers,
    ) -> None:
        self._locks = locks
        self._half_log = half_log
        self._checks = checks
        self._works = (endings.end_gone, due_checks.check_due, leftovers.take_up, leftovers.forget)
        self._held: dict[int, _Shard] = {}
        self._background = Background()
        self._service = Periodic("keep_transactions", self.run_once, ROUND_S, quiet=(EngineError, StateError))

    async def start(self) -> None:
        await self._service.start()

    async def stop(self) -> None:
        """Ends the rounds, and lets other workers go on at once."""
        await self._service.stop()
        held, self._held = self._held, {}
        await asyncio.gather(*(each.stop() for each in held.values()))

    async def run_once(self) -> None:
        """One round over the shards that this worker keeps. Raises LogUnavailable,
        StateUnavailable.
        """
        self._checks.forget_decided()
        await self._half_log.sync_all()
        await asyncio.gather(*[self._keep(shard) for shard in range(self._half_log.shards)])

    async def _keep(self, shard: int) -> None:
        held = self._held.get(shard)
        if held is not None and not held.hold.is_valid:
            await self._held.pop(shard).stop()
            held = None
        if held is None:
            hold = self._locks.hold(f"half:{shard}", HOLD_MS)
            if not await hold.take():
                return
            held = self._held[shard] = _Shard(hold, self._background.start(hold.keep(), "keep half"))
        for work in self._works:
            if not held.hold.is_valid:
                return
            await work(shard)
