"""Bodies of replies about transactions, as structs; as `replies.py` has the others."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from facade.dialects.native.wire.replies import Attributes, BodyBytes, BodyText, Changed, Count, Reply, about
from facade.dialects.native.wire.units import Moment, one_of
from schemas.vocabulary import DecisionReason, TransactionStatus


class TransactionReply(Reply, frozen=True, kw_only=True):
    """A transaction. `message_ids` are there when it is committed and carried out."""

    id: Annotated[str, about("The transaction's id.")]
    status: Annotated[str, one_of(TransactionStatus, "Where it stands.")]
    queue: Annotated[str, about("The queue that its messages are for.")]
    producer_group: Annotated[str, about("Whom the service asks about it.")]
    principal: Annotated[str, about("Who prepared it.")]
    messages: Annotated[Count, about("How many messages it has.")]
    prepared_at_ms: Annotated[Moment, about("When it was prepared (epoch ms).")]
    checks: Annotated[Count, about("How often its producers could be asked.")]
    checks_left: Annotated[Count, about("How often they will be asked at most.")]
    next_check_at_ms: Annotated[Moment | None, about("When they are asked next (epoch ms); null = no more.")]
    decided_at_ms: Annotated[Moment | None, about("When it was decided (epoch ms); null = it is open.")]
    decided_by: Annotated[str, about("Who decided; empty = nobody yet, or the service.")]
    reason: Annotated[str, one_of((*DecisionReason, ""), "Why it was decided so; empty = it is open.")]
    message_ids: Annotated[list[str], about("The ids of its messages, in the order given.")]


class TransactionsReply(Reply, frozen=True, kw_only=True):
    """Transactions, those prepared last first."""

    transactions: Annotated[list[TransactionReply], about("The transactions that are known.")]


class HalfMessageReply(Reply, frozen=True, kw_only=True):
    """A message that is not committed: `body` (text) or `body_base64`."""

    body: BodyText | UnsetType = UNSET
    body_base64: BodyBytes | UnsetType = UNSET
    attributes: Attributes


class CheckReply(Reply, frozen=True, kw_only=True):
    """A question: what became of this transaction? Answer with commit, rollback or unknown."""

    id: Annotated[str, about("The id of the question.")]
    number: Annotated[Count, about("How often it was asked, this time included.")]
    transaction: TransactionReply
    messages: Annotated[list[HalfMessageReply], about("What would be sent.")]


class ChecksReply(Reply, frozen=True, kw_only=True):
    """Questions for this producer alone; none if there were none within the wait."""

    checks: Annotated[list[CheckReply], about("What is asked.")]


class WebhookReply(Reply, frozen=True, kw_only=True):
    """Where a producer group is asked."""

    producer_group: Annotated[str, about("The group.")]
    owner: Annotated[str, about("Who registered it.")]
    url: Annotated[str, about("Where the questions go.")]
    modified_at_ms: Changed
    secret: Annotated[str, about("What signs the requests; only in the answer to its registration.")] | UnsetType = (
        UNSET
    )
