"""Levels of permission: what each lets a principal do, written down here a second time, by hand,
from reference/emq.md 3.9.
"""

from __future__ import annotations

import pytest

from engine.rules.grants import (
    ACTIONS,
    RIGHTS,
    ROLES,
    any_granted,
    granted,
    level_of,
    levels_of,
    with_level,
    with_policy,
    without_tag,
)
from schemas.records.settings import Grant
from schemas.vocabulary import Level, Role, Verb

SEND, RECEIVE, HANDLE, INFO = "send", "receive", "ack extend release kill", "get_queue get_redrive_policy"
PEEK, DELETE_PEEK = "peek query", "delete_message cancel reschedule unpark"
REST = (
    "set_queue delete_queue purge pause resume copy_queue set_redrive_policy create_tag list_tags delete_tag seek "
    "redrive list_grants"
)
WATCH = "add_alert delete_alert list_alerts set_daily_statistics get_statistics"
# The verbs of each level, as the document words them.
TABLE = {
    "none": "",
    "send": SEND,
    "receive": RECEIVE,
    "send_receive": f"{SEND} {RECEIVE}",
    "handle": f"{RECEIVE} {HANDLE}",
    "send_handle": f"{SEND} {RECEIVE} {HANDLE}",
    "get_info": INFO,
    "use": f"{SEND} {RECEIVE} {HANDLE} {INFO}",
    "admin": f"{SEND} {RECEIVE} {HANDLE} {INFO} {PEEK} unmask {DELETE_PEEK} {REST} {WATCH}",
    "peek": PEEK,
    "unmask": f"{PEEK} unmask",
    "delete_peek": DELETE_PEEK,
    "full_control": f"{SEND} {RECEIVE} {HANDLE} {INFO} {PEEK} unmask {DELETE_PEEK} {REST} {WATCH} grant query_metric",
}
OF_NO_QUEUE = {"create_queue", "list_queues", "manage_keys", "manage_users", "set_producer_group", "list_audit"}


def test_every_verb_on_a_queue_has_a_level_that_allows_it() -> None:
    assert set(TABLE["full_control"].split()) == set(map(str, Verb)) - OF_NO_QUEUE


@pytest.mark.parametrize("level", list(Level))
def test_a_level_allows_its_verbs_and_no_other(level: Level) -> None:
    grants = [Grant(True, ["bob"], [], level)] if level != Level.NONE else []
    assert {str(verb) for verb in Verb if granted(grants, "bob", verb)} == set(TABLE[level].split())
    assert not [verb for verb in Verb if granted(grants, "carol", verb)]
    assert RIGHTS[level] == set(map(Verb, TABLE[level].split()))


LOOK = "list_tags list_alerts get_statistics query_metric list_queues"
ROLE_TABLE = {
    "member": "",
    "reader": f"{INFO} {LOOK}",
    "operator": f"{TABLE['admin'].replace(' unmask', '')} query_metric create_queue list_queues",
    "admin": " ".join(Verb),
}


@pytest.mark.parametrize("role", list(Role))
def test_a_role_allows_its_verbs_and_no_other(role: Role) -> None:
    assert ROLES[role] == set(map(Verb, ROLE_TABLE[role].split()))


def test_a_policy_of_sqs_grants_nothing_that_no_level_has() -> None:
    assert frozenset[Verb]().union(*ACTIONS.values()) <= RIGHTS[Level.FULL_CONTROL]


def test_a_principal_has_one_level_and_the_last_one_counts() -> None:
    grants = with_level(with_level([], "bob", Level.SEND), "carol", Level.PEEK)
    grants = with_level(grants, "bob", Level.RECEIVE)
    assert levels_of(grants) == {"carol": "peek", "bob": "receive"}
    assert (level_of(grants, "bob"), level_of(grants, "dan")) == ("receive", "none")
    assert levels_of(with_level(grants, "bob", Level.NONE)) == {"carol": "peek"}


def test_a_policy_replaces_grants_of_verbs_and_leaves_levels() -> None:
    level, verbs, others = (
        Grant(True, ["bob"], [], "use"),
        Grant(True, ["*"], ["send"]),
        Grant(False, ["bob"], ["send"]),
    )
    grants = with_policy([level, verbs], [others])
    assert grants == [level, others]
    assert not granted(grants, "bob", Verb.SEND) and granted(grants, "bob", Verb.RECEIVE)
    assert with_level(grants, "bob", Level.NONE) == [others]


def test_a_level_on_a_tag_is_about_its_messages_alone() -> None:
    grants = with_level([], "bob", Level.HANDLE, "billing")
    for verb in (Verb.RECEIVE, Verb.ACK, Verb.EXTEND, Verb.RELEASE, Verb.KILL):
        assert granted(grants, "bob", verb, "billing")
    for tag in ("", "default", "other"):
        assert not granted(grants, "bob", Verb.RECEIVE, tag)
    all_of_it = with_level([], "bob", Level.FULL_CONTROL, "billing")
    assert {str(verb) for verb in Verb if granted(all_of_it, "bob", verb)} == set(HANDLE.split())
    assert any_granted(grants, "bob") and not any_granted(grants, "carol")
    assert granted(with_level([], "bob", Level.RECEIVE, "default"), "bob", Verb.RECEIVE)
    assert (levels_of(grants), levels_of(grants, "billing")) == ({}, {"bob": "handle"})
    both = with_level(grants, "bob", Level.SEND)
    assert (level_of(both, "bob"), level_of(both, "bob", "billing")) == ("send", "handle")
    assert with_level(both, "bob", Level.NONE, "billing") == with_level([], "bob", Level.SEND)
    assert without_tag(both, "billing") == with_level([], "bob", Level.SEND)
    two = [Grant(True, ["bob"], ["receive"], tags=["billing", "other"])]
    assert without_tag(two, "billing") == [Grant(True, ["bob"], ["receive"], tags=["other"])]
    denied = [Grant(True, ["bob"], ["*"]), Grant(False, ["bob"], ["receive"], tags=["billing"])]
    assert granted(denied, "bob", Verb.RECEIVE) and not granted(denied, "bob", Verb.RECEIVE, "billing")


def test_what_an_account_may_everybody_in_it_may() -> None:
    grants = with_level([], "111122223333", Level.SEND)
    assert granted(grants, "111122223333.alice", Verb.SEND)
    assert not granted(grants, "444455556666.alice", Verb.SEND) and not granted(grants, "alice", Verb.SEND)
