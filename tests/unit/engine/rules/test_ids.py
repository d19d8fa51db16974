"""Message ids are made with the service's secret."""

from __future__ import annotations

import pytest

from engine.rules.queue import Ids, Queue
from schemas.identity import BadIdentity, Handle, MessageId
from tests.unit.records import queue_record

RECORD = queue_record(partitions=4)


def test_an_id_names_its_place_and_only_who_has_the_secret_can_make_it() -> None:
    queue, ids = Queue(RECORD, "lw"), Ids("secret")
    made = ids.message_id(queue, 3, 17)
    found = MessageId.parse(made, ids.secret)
    assert (found.incarnation, found.partition, found.offset) == ("0123456789ab", 3, 17)
    assert made != Ids("another").message_id(queue, 3, 17)


def test_what_the_old_secret_made_is_read_while_it_is_set() -> None:
    queue, old = Queue(RECORD, "lw"), Ids("old")
    made, handle = old.message_id(queue, 3, 17), Handle("0123456789ab", 1, 0, 5, 7, 8)
    for ids in (old, Ids("new", "old"), Ids("old", "new")):
        assert ids.read_id(made).offset == 17
        assert ids.read_handle(handle.text(old.secret)) == handle
    for ids in (Ids("new"), Ids("new", "another")):
        with pytest.raises(BadIdentity):
            ids.read_id(made)
        with pytest.raises(BadIdentity):
            ids.read_handle(handle.text(old.secret))
