"""A queue as the engine works with it: what follows from its record."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.errors import TagNotFound
from engine.rules.ids import Ids
from engine.rules.queue import Queue
from schemas.filters import Condition, Filter
from schemas.identity import MessageId
from schemas.records import QueueRecord, TagRecord
from schemas.topics import group_name, queue_topic

DEFAULT = TagRecord(0, "default", 1, 0, [0, 0])
RED = TagRecord(3, "red", 1, 0, [0, 0], Filter([Condition("color", "string", b"red")]))
RECORD = QueueRecord("orders", "0123456789ab", "alice", 1, 2, 2, 0, 30_000, 7, 8, 9, 10, [DEFAULT, RED], 4)


def test_tags_are_found_by_name_and_none_is_the_default() -> None:
    queue = Queue(RECORD, "lw")
    assert (queue.tag(None), queue.tag("default"), queue.tag("red"), queue.tag_ids) == (DEFAULT, DEFAULT, RED, [0, 3])
    with pytest.raises(TagNotFound, match="'blue'"):
        queue.tag("blue")


def test_every_message_has_one_mask_unless_a_tag_has_a_filter() -> None:
    assert Queue(RECORD, "lw").mask is None
    assert Queue(replace(RECORD, tags=[DEFAULT, replace(RED, filter=None)]), "lw").mask == "11"


def test_topics_and_groups_are_named_after_the_queue() -> None:
    assert Queue(RECORD, "lw").topic == queue_topic("lw", "orders") == "lw.q.orders"
    assert group_name("lw", "orders", "red") == "lw.orders.red"


def test_an_id_is_read_with_the_secret_it_was_made_with() -> None:
    queue = Queue(RECORD, "lw")
    text = Ids("secret").message_id(queue, 1, 7)
    assert MessageId.parse(text, b"secret") == MessageId("0123456789ab", 1, 7)
    assert Ids("other").message_id(queue, 1, 7) != text
