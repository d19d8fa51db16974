"""A queue as the engine works with it: what follows from its record."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.errors import TagNotFound
from engine.rules.queue import NEVER_COUNT, Ids, Queue
from schemas.filters import Condition, Filter
from schemas.identity import MessageId
from schemas.records import QueueRecord, TagRecord
from schemas.records.settings import RedrivePolicy
from schemas.topics import group_name, queue_topic
from tests.unit.records import queue_record

DEFAULT = TagRecord(0, "default", 1, 0, [0, 0])
RED = TagRecord(3, "red", 1, 0, [0, 0], Filter([Condition("color", "string", b"red")]))
RECORD = queue_record(partitions=2, tags=[DEFAULT, RED], next_tag_id=4)


def test_tags_are_found_by_name_and_none_is_the_default() -> None:
    queue = Queue(RECORD, "lw")
    assert (queue.tag(None), queue.tag("default"), queue.tag("red"), queue.tag_ids) == (DEFAULT, DEFAULT, RED, [0, 3])
    with pytest.raises(TagNotFound, match="'blue'"):
        queue.tag("blue")


def test_every_message_has_one_mask_unless_a_tag_has_a_filter() -> None:
    assert Queue(RECORD, "lw").tag_mask is None
    assert Queue(replace(RECORD, tags=[DEFAULT, replace(RED, filter=None)]), "lw").tag_mask == "11"


def test_retention_counts_from_when_a_message_was_due_unless_the_record_says_otherwise() -> None:
    assert not Queue(RECORD, "lw").expires_from_send
    assert Queue(replace(RECORD, retention_from="send"), "lw").expires_from_send


def test_topics_and_groups_are_named_after_the_queue() -> None:
    assert Queue(RECORD, "lw").topic == queue_topic("lw", "orders") == "lw.q.orders"
    assert group_name("lw", "orders", "red") == "lw.orders.red"


def test_an_id_is_read_with_the_secret_it_was_made_with() -> None:
    queue = Queue(RECORD, "lw")
    text = Ids("secret").message_id(queue, 1, 7)
    assert MessageId.parse(text, b"secret") == MessageId("0123456789ab", 1, 7)
    assert Ids("other").message_id(queue, 1, 7) != text


FIFO = replace(RECORD, fifo=True, tags=[DEFAULT, replace(RED, redrive_policy=RedrivePolicy("red-dead", 3))])


@pytest.mark.parametrize(
    ("record", "default", "red"),
    [
        (RECORD, (0, 0), (0, 0)),
        (replace(RECORD, redrive_policy=RedrivePolicy("dead", 5)), (5, 0), (5, 0)),
        (FIFO, (0, 0), (3, 0)),
        (replace(FIFO, on_exhausted="dead_letter", redrive_policy=RedrivePolicy("dead", 5)), (5, 0), (3, 0)),
        (
            replace(FIFO, on_exhausted="block", redrive_policy=RedrivePolicy("dead", 5)),
            (NEVER_COUNT, 0),
            (NEVER_COUNT, 0),
        ),
        (replace(FIFO, on_exhausted="block"), (0, 0), (NEVER_COUNT, 0)),
        (replace(FIFO, on_exhausted="park", max_receive_count=7), (0, 7), (NEVER_COUNT, 3)),
        (
            replace(FIFO, on_exhausted="park", redrive_policy=RedrivePolicy("dead", 5)),
            (NEVER_COUNT, 5),
            (NEVER_COUNT, 3),
        ),
    ],
)
def test_a_message_dies_or_parks_by_the_policy_of_its_tag(
    record: QueueRecord, default: tuple[int, int], red: tuple[int, int]
) -> None:
    assert Queue(record, "lw").bounds == {0: default, 3: red}
