"""Operations on transactions: prepare, commit, rollback, unknown; the checks of a producer group,
and its webhook.

Each reads its parameters, asks the engine, and renders.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from facade.dialect import Carried
from facade.dialects.native.reference import examples
from facade.dialects.native.wire.render import checks_reply, transaction_reply, webhook_reply
from facade.dialects.native.wire.shapes import ChecksBody, ListTransactionsQuery, PrepareBody, WebhookBody
from facade.dialects.native.wire.transaction_replies import (
    ChecksReply,
    TransactionReply,
    TransactionsReply,
    WebhookReply,
)
from facade.dialects.native.wire.translate import entries_of
from facade.dialects.native.wire.units import GROUP_RULE, QUEUE_RULE, TRANSACTION_RULE, to_ms
from facade.http.operation import Answer, Call, Operation

if TYPE_CHECKING:
    from engine.engine import Engine

_TRANSACTION: Final = "/v1/transactions/{transaction}"
_GROUP: Final = "/v1/producer-groups/{producer_group}"
_OF_GROUP: Final = {"producer_group": GROUP_RULE}


async def prepare(engine: Engine, call: Call) -> Answer:
    """Store messages that nobody sees until they are committed."""
    body: PrepareBody = call.body
    immunity_ms = to_ms(body.check_immunity_seconds)
    half = await engine.transactions.prepare(
        call.by, call.path["queue"], body.producer_group, entries_of(body.messages), immunity_ms
    )
    return Answer(transaction_reply(half), 201, (("location", f"/v1/transactions/{half.id}"),))


async def commit(engine: Engine, call: Call) -> Answer:
    """Send the messages of a transaction; may be repeated."""
    return Answer(transaction_reply(await engine.transactions.commit(call.by, call.path["transaction"])))


async def rollback(engine: Engine, call: Call) -> Answer:
    """Drop the messages of a transaction; may be repeated."""
    return Answer(transaction_reply(await engine.transactions.rollback(call.by, call.path["transaction"])))


async def unknown(engine: Engine, call: Call) -> Answer:
    """Say that the outcome is not known yet: the group is asked again."""
    return Answer(transaction_reply(await engine.transactions.unknown(call.by, call.path["transaction"])))


async def get_transaction(engine: Engine, call: Call) -> Answer:
    """Where a transaction stands."""
    return Answer(transaction_reply(await engine.transactions.get_transaction(call.by, call.path["transaction"])))


async def list_transactions(engine: Engine, call: Call) -> Answer:
    """Transactions of a queue, those prepared last first."""
    asked: ListTransactionsQuery = call.query
    status = None if asked.status is UNSET else asked.status
    found = await engine.transactions.list_transactions(call.by, call.path["queue"], status, asked.limit)
    return Answer(TransactionsReply(transactions=[transaction_reply(one) for one in found]))


async def check(engine: Engine, call: Call) -> Answer | Carried:
    """Take questions about transactions of a producer group, waiting for them if asked to."""
    body: ChecksBody = call.body
    checks = await engine.transactions.check(
        call.by, call.path["producer_group"], body.max, to_ms(body.wait_seconds) or 0
    )
    if not checks:
        return Answer(ChecksReply(checks=[]))
    return Carried(Answer(checks_reply(checks)), partial(engine.transactions.unchecked, checks))


async def set_webhook(engine: Engine, call: Call) -> Answer:
    """Register where a producer group is asked, in place of the one before."""
    body: WebhookBody = call.body
    webhook, secret = await engine.transactions.set_webhook(call.by, call.path["producer_group"], body.url, body.secret)
    return Answer(webhook_reply(webhook, secret))


async def get_webhook(engine: Engine, call: Call) -> Answer:
    """Where a producer group is asked."""
    return Answer(webhook_reply(await engine.transactions.get_webhook(call.by, call.path["producer_group"])))


async def delete_webhook(engine: Engine, call: Call) -> Answer:
    """Ask a producer group by HTTP no more."""
    await engine.transactions.delete_webhook(call.by, call.path["producer_group"])
    return Answer(status=204)


def _on_transaction(
    name: str, method: str, path: str, summary: str, run: Any, codes: tuple[str, ...] = ()
) -> Operation:
    return Operation(
        name=name,
        method=method,
        path=_TRANSACTION + path,
        group="Transactions",
        summary=summary,
        run=run,
        replies={200: TransactionReply},
        example=examples.TRANSACTIONS[name],
        rules={"transaction": TRANSACTION_RULE},
        codes=("transaction_not_found", *codes),
    )


def _on_webhook(name: str, method: str, summary: str, run: Any, reply: Any, *codes: str, body: Any = None) -> Operation:
    return Operation(
        name=name,
        method=method,
        path=_GROUP + "/webhook",
        group="Transactions",
        summary=summary,
        run=run,
        replies={204: None} if reply is None else {200: reply},
        example=examples.TRANSACTIONS[name],
        rules=_OF_GROUP,
        body=body,
        codes=codes,
    )


OPERATIONS = (
    Operation(
        name="prepare",
        method="POST",
        path="/v1/queues/{queue}/transactions",
        group="Transactions",
        summary="Store messages that nobody sees until they are committed",
        run=prepare,
        replies={201: TransactionReply},
        example=examples.TRANSACTIONS["prepare"],
        rules={"queue": QUEUE_RULE},
        body=PrepareBody,
        bulky=True,
        codes=("queue_not_found", "not_allowed_on_queue", "message_too_large", "too_many_transactions"),
    ),
    Operation(
        name="list_transactions",
        method="GET",
        path="/v1/queues/{queue}/transactions",
        group="Transactions",
        summary="Transactions of a queue, those prepared last first",
        run=list_transactions,
        replies={200: TransactionsReply},
        example=examples.TRANSACTIONS["list_transactions"],
        rules={"queue": QUEUE_RULE},
        query=ListTransactionsQuery,
        codes=("queue_not_found",),
    ),
    _on_transaction("get_transaction", "GET", "", "Where a transaction stands", get_transaction),
    _on_transaction(
        "commit",
        "POST",
        "/commit",
        "Send the messages of a transaction, once however often it is repeated",
        commit,
        ("transaction_decided", "transaction_gone"),
    ),
    _on_transaction(
        "rollback", "POST", "/rollback", "Drop the messages of a transaction", rollback, ("transaction_decided",)
    ),
    _on_transaction("unknown", "POST", "/unknown", "Say that the outcome is not known yet", unknown),
    Operation(
        name="check",
        method="POST",
        path=_GROUP + "/checks",
        group="Transactions",
        summary="Take questions about transactions of a producer group; waits if asked to",
        run=check,
        replies={200: ChecksReply},
        example=examples.TRANSACTIONS["check"],
        rules=_OF_GROUP,
        body=ChecksBody,
        body_optional=True,
        long_poll=True,
    ),
    _on_webhook(
        "set_webhook",
        "PUT",
        "Register where a producer group is asked",
        set_webhook,
        WebhookReply,
        "queue_in_use",
        body=WebhookBody,
    ),
    _on_webhook(
        "get_webhook", "GET", "Where a producer group is asked", get_webhook, WebhookReply, "producer_group_not_found"
    ),
    _on_webhook(
        "delete_webhook",
        "DELETE",
        "Ask a producer group by HTTP no more",
        delete_webhook,
        None,
        "producer_group_not_found",
        "queue_in_use",
    ),
)
