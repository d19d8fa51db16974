"""The account: what went where under each tag, by the consumers' own counts and by the service's,
and whether it adds up.

It must not ask the service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from facade.programs.demo.airports import Row
from facade.programs.demo.client import Json
from facade.programs.demo.flow import Duty, Sent, Tally

MOST_RECEIVES = 3


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of the demo's queue: which rows it gets, by its filter's own words."""

    name: str
    about: str
    states: tuple[str, ...] | None  # None = every row

    def wants(self, row: Row) -> bool:
        """Whether a row's message belongs to the tag."""
        return self.states is None or row["state"] in self.states


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that is known at the end. `dead_letters` are the messages of `dead_letter_queue`,
    `backlogs` the service's own counts.
    """

    dead_letter_queue: str
    tags: Sequence[Tag]
    sent: Sent
    tallies: Mapping[Duty, Tally]
    dead_letters: Sequence[Json]
    backlogs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Column:
    """The figures of one tag, in messages; `first` + `again` = deliveries."""

    tag: Tag
    matching: int
    first: int
    again: int
    acked: int
    dead: int
    acked_twice: int
    backlog: int


@dataclass(frozen=True, slots=True)
class Check:
    """A sum and whether it holds."""

    holds: bool
    text: str


def columns(outcome: Outcome) -> list[Column]:
    """A column per tag."""
    return [_column(outcome, tag) for tag in outcome.tags]


def dead_letters_of(outcome: Outcome, tag: Tag) -> list[Json]:
    """The dead letters that died under a tag."""
    return [dead_letter for dead_letter in outcome.dead_letters if dead_letter["origin"]["from_tag"] == tag.name]


def checks(outcome: Outcome) -> list[Check]:
    """Every sum that must hold, in the order in which a reader would ask."""
    sent, dead_letters = outcome.sent, outcome.dead_letters
    found = [Check(sent.read == len(sent.rows), f"{sent.read:,} rows read = {len(sent.rows):,} sent")]
    for column in columns(outcome):
        found += _checks_of(outcome, column)
    dead = sum(column.dead for column in columns(outcome))
    found.append(
        Check(
            len(dead_letters) == dead,
            f"{len(dead_letters):,} dead letters in {outcome.dead_letter_queue} = {dead:,} dead under the tags",
        )
    )
    whole = sum(1 for dead_letter in dead_letters if dead_letter["origin"]["receive_count"] == MOST_RECEIVES)
    found.append(
        Check(
            whole == len(dead_letters),
            f"{whole:,} of {len(dead_letters):,} dead letters died after {MOST_RECEIVES} deliveries",
        )
    )
    return found


def _column(outcome: Outcome, tag: Tag) -> Column:
    deliveries = _sum(outcome, tag, lambda tally: tally.deliveries)
    acked = _sum(outcome, tag, lambda tally: tally.acked)
    return Column(
        tag=tag,
        matching=sum(1 for row in outcome.sent.rows.values() if tag.wants(row)),
        first=len(deliveries),
        again=deliveries.total() - len(deliveries),
        acked=len(acked),
        dead=len({dead_letter["origin"]["original_id"] for dead_letter in dead_letters_of(outcome, tag)}),
        acked_twice=acked.total() - len(acked),
        backlog=outcome.backlogs[tag.name],
    )


def _checks_of(outcome: Outcome, column: Column) -> list[Check]:
    tag = column.tag
    wanted = {sent_id for sent_id, row in outcome.sent.rows.items() if tag.wants(row)}
    acked = set(_sum(outcome, tag, lambda tally: tally.acked))
    dead = {dead_letter["origin"]["original_id"] for dead_letter in dead_letters_of(outcome, tag)}
    failed = {
        failed_id for duty, tally in outcome.tallies.items() if duty.tag == tag.name for failed_id in tally.failures
    }
    adds_up = column.matching == column.acked + column.dead
    each_once = acked | dead == wanted and not acked & dead and not column.acked_twice
    return [
        Check(adds_up, f"{tag.name}: {column.matching:,} sent = {column.acked:,} acked + {column.dead:,} dead"),
        Check(each_once, f"{tag.name}: each message ended once, as one of the two, and none is another tag's"),
        Check(dead == failed, f"{tag.name}: {len(dead):,} dead = {len(failed):,} that its consumers could not use"),
        Check(column.backlog == 0, f"{tag.name}: {column.backlog:,} left in the queue by the service's own count"),
    ]


def _sum(outcome: Outcome, tag: Tag, part: Callable[[Tally], Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for duty, tally in outcome.tallies.items():
        if duty.tag == tag.name:
            total += part(tally)
    return total
