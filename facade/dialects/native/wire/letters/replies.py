"""Replies about dead letters: previews, outcomes, copies."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from engine.move.shapes import Copied, Letter, Letters, Preview
from engine.shapes import Life
from facade.dialects.native.wire.replies import Count, Cut, Reply, SentReply, TaskReply, about
from facade.dialects.native.wire.units import Moment, one_of
from schemas.records.moves import LetterOutcome
from schemas.vocabulary import EventKind, Reason


class LetterReply(Reply, frozen=True, kw_only=True):
    """What came, or would come, of a dead letter."""

    id: Annotated[str, about("Its id in the dead-letter queue.")]
    outcome: Annotated[
        str,
        one_of(LetterOutcome, "moved; gone or skipped, if it was chosen by its id; else why it could not be moved."),
    ]
    queue: Annotated[str, about("The queue that it went to, or would go to.")] | UnsetType = UNSET
    moved_id: Annotated[str, about("Its id there.")] | UnsetType = UNSET


class OutcomesReply(Reply, frozen=True, kw_only=True):
    """A page of outcomes; `next` continues it, null = there are no more so far."""

    letters: Annotated[list[LetterReply], about("Letters, in the order in which the task came to them.")]
    next: Annotated[str | None, about("The `next` of the next page; null at the end.")]
    complete: Annotated[bool, about("false = the task came to more letters than the 10,000 whose outcome it keeps.")]


class PreviewReply(Reply, frozen=True, kw_only=True):
    """What a redrive of a queue would do."""

    source: Annotated[str, about("The dead-letter queue.")]
    moved: Annotated[Count, about("Letters that would be moved.")]
    failed: Annotated[dict[str, int], about("Letters that would not, by why.")]
    letters: Annotated[list[LetterReply], about("The first 100 of both.")]
    scanned: Annotated[Count, about("Records that were read.")]
    cut: Annotated[Cut | None, about("The bound at which the look ended; null = it saw all.")]


class PreviewsReply(Reply, frozen=True, kw_only=True):
    """What a redrive of several queues would do."""

    previews: Annotated[list[PreviewReply], about("By queue.")]


class TasksReply(Reply, frozen=True, kw_only=True):
    """A page of tasks; `next` continues it, null = the end."""

    tasks: Annotated[list[TaskReply], about("Tasks.")]
    next: Annotated[str | None, about("The `next` of the next page; null at the end.")]


_BodyMd5 = Annotated[str, about("The MD5 of the body's bytes, in hex.")]


class CopyReply(SentReply, frozen=True, kw_only=True):
    """A copy of a message that Kafka has. `body_md5` is left out if the message is masked."""

    body_md5: _BodyMd5 | UnsetType = UNSET  # type: ignore[assignment]
    queue: Annotated[str, about("The queue that has it.")]
    copied_from: Annotated[str, about("The id of the message that it is a copy of.")]
    removed: Annotated[
        bool | None,
        about(
            "Whether that message was deleted; false also when it was leased, or settled meanwhile; null = not known."
        ),
    ]


class EventReply(Reply, frozen=True, kw_only=True):
    """Something that happened to a message. Who has received or settled it is not kept."""

    kind: Annotated[str, one_of(("sent", *EventKind), "What happened.")]
    at_ms: Annotated[Moment, about("When (epoch ms).")]
    tag: Annotated[str, about("Under which tag; of `sent` the one under which it was moved.")] | UnsetType = UNSET
    receive_count: Annotated[Count, about("How often it was received by then.")] | UnsetType = UNSET
    until_ms: (
        Annotated[Moment, about("Until when it was leased or held, or when it was receivable again (epoch ms).")]
        | UnsetType
    ) = UNSET
    reason: Annotated[str, one_of((*Reason, ""), "Why.")] | UnsetType = UNSET
    by: Annotated[str, about("Who sent it.")] | UnsetType = UNSET
    task: Annotated[str, about("The redrive task that has moved it.")] | UnsetType = UNSET
    queue: Annotated[str, about("The queue that it went to; of `sent` the one that it came from.")] | UnsetType = UNSET
    id: Annotated[str, about("Its id there.")] | UnsetType = UNSET


class EventsReply(Reply, frozen=True, kw_only=True):
    """What happened to a message, oldest first; `next` continues it, null = there is no more."""

    events: Annotated[list[EventReply], about("What happened.")]
    complete: Annotated[bool, about("Whether that, with the pages before, is all.")]
    since_ms: Annotated[Moment, about("What happened before that time is not known (epoch ms).")]
    next: Annotated[str | None, about("The `next` of the next page; null at the end.")]
    scanned: Annotated[Count, about("Records of the journal that were read.")]
    cut: Annotated[Cut | None, about("The bound that has ended the page; null = none.")]


def events_reply(life: Life) -> EventsReply:
    """What happened to a message."""
    events = [
        EventReply(
            kind=event.kind,
            at_ms=event.at_ms,
            tag=event.tag or UNSET,
            receive_count=UNSET if event.kind == "sent" else event.receive_count,
            until_ms=UNSET if event.until_ms is None else event.until_ms,
            reason=event.reason or UNSET,
            by=event.by or UNSET,
            task=event.task or UNSET,
            queue=event.queue or UNSET,
            id=event.id or UNSET,
        )
        for event in life.events
    ]
    return EventsReply(
        events=events,
        complete=life.complete,
        since_ms=life.since_ms,
        next=life.next,
        scanned=life.scanned,
        cut=life.cut or None,
    )


def letter_reply(letter: Letter) -> LetterReply:
    """What came of a dead letter."""
    return LetterReply(id=letter.id, outcome=letter.outcome, queue=letter.queue or UNSET, moved_id=letter.copy or UNSET)


def outcomes_reply(page: Letters) -> OutcomesReply:
    """A page of outcomes."""
    return OutcomesReply(
        letters=[letter_reply(letter) for letter in page.letters], next=page.next, complete=page.complete
    )


def preview_reply(preview: Preview) -> PreviewReply:
    """What a redrive would do."""
    return PreviewReply(
        source=preview.source,
        moved=preview.moved,
        failed=preview.failed,
        letters=[letter_reply(letter) for letter in preview.letters],
        scanned=preview.scanned,
        cut=preview.cut or None,
    )


def copy_reply(id: str, copied: Copied) -> CopyReply:
    """A copy of a message."""
    sent = copied.sent
    return CopyReply(
        id=sent.id,
        body_md5=sent.body_md5 or UNSET,
        sent_at_ms=sent.sent_at_ms,
        sequence_number=sent.sequence_number or UNSET,
        queue=copied.queue,
        copied_from=id,
        removed=copied.removed,
    )
