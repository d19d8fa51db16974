"""What policies mean as grants, and what filters of tags mean; the refusals are in the conformance
suite.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from random import Random
from typing import Any

import pytest

from engine.rules.grants import ACTIONS
from facade.dialects.sqs.queues import policies
from facade.dialects.sqs.queues.filters import filter_of
from facade.dialects.sqs.queues.names import Place, fits
from facade.dialects.sqs.wire.errors import SqsError
from schemas.filters import Condition, Filter
from schemas.records.settings import Grant

EVERY_VERB = sorted({str(verb) for verbs in ACTIONS.values() for verb in verbs})
CONDITION = {"Bool": {"aws:SecureTransport": "false"}}


PLACE = Place("http://here", "000000000000", "us-east-1")


def grants_of(text: str, place: Place = PLACE, queue: str = "orders") -> list[Grant]:
    return policies.grants_of(text, place, queue)


def policy(**statement: Any) -> str:
    return json.dumps({"Statement": {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", **statement}})


@pytest.mark.parametrize(
    ("action", "verbs"),
    [
        ("*", EVERY_VERB),
        ("SQS:*", EVERY_VERB),
        ("sqs:sendmessage", ["send"]),
        (["sqs:SendMessage", "SQS:ReceiveMessage"], ["receive", "send"]),
        ("sqs:Get*", ["get_queue"]),
        ("sqs:ChangeMessageVisibilit?", ["extend", "release"]),
    ],
)
def test_actions_are_verbs(action: Any, verbs: list[str]) -> None:
    assert grants_of(policy(Action=action)) == [Grant(True, ["*"], verbs)]


@pytest.mark.parametrize("action", ["sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:AddPermission", "sqs:Delete"])
def test_what_only_an_owner_may_do_can_not_be_granted(action: str) -> None:
    assert grants_of(policy(Action=action)) == []


@pytest.mark.parametrize(
    ("principal", "names"),
    [
        ("*", ["*"]),
        ({"AWS": "billing"}, ["billing"]),
        ({"AWS": ["arn:aws:iam::billing:root", "arn:aws-cn:iam::1:role/x/y"]}, ["billing", "y"]),
        ({"AWS": "arn:aws:iam::1:user/eve", "Service": "sns.amazonaws.com"}, ["eve"]),
    ],
)
def test_principals_are_names(principal: Any, names: list[str]) -> None:
    assert grants_of(policy(Principal=principal))[0].principals == names


@pytest.mark.parametrize("element", ["NotAction", "NotPrincipal", "NotResource", "Nonsense"])
@pytest.mark.parametrize("effect", ["Allow", "Deny"])
def test_an_element_that_is_not_understood_is_refused_beside_those_that_are(element: str, effect: str) -> None:
    with pytest.raises(SqsError, match=element):
        grants_of(policy(Effect=effect, **{element: "arn:aws:sqs:us-east-1:1:orders"}))


@pytest.mark.parametrize("principal", ["arn:aws:sts::1:assumed-role/role/alice", "arn:aws:sts::1:federated-user/alice"])
def test_the_name_of_a_session_names_nobody(principal: str) -> None:
    with pytest.raises(SqsError, match="is no principal"):
        grants_of(policy(Principal={"AWS": principal}))


@pytest.mark.parametrize(
    ("resource", "holds"),
    [
        ("*", True),
        ("arn:aws:sqs:us-east-1:000000000000:orders", True),
        ("arn:aws:sqs:eu-west-1:123456789012:orders", True),
        ("arn:aws:sqs:*:*:ord*", True),
        (["arn:aws:sqs:us-east-1:000000000000:other", "arn:aws:sqs:us-east-1:000000000000:orders"], True),
        ("arn:aws:sqs:us-east-1:000000000000:other", False),
        ("arn:aws:sqs:us-east-1:000000000000:order", False),
        ("arn:aws:sqs:us-east-1:000000000000:[o]rders", False),
        ("arn:aws:sns:us-east-1:000000000000:orders", False),
        ("orders", False),
    ],
)
def test_a_statement_about_other_queues_says_nothing_of_this_one(resource: Any, holds: bool) -> None:
    assert bool(grants_of(policy(Resource=resource))) == holds
    assert bool(grants_of(policy(Effect="Deny", Resource=resource))) == holds


def test_account_and_region_of_a_resource_count_where_they_tell_queues_apart() -> None:
    place = Place("http://here", "000000000000", "us-east-1", by_account=True, by_region=True)
    queue = place.queue("orders")
    for resource, holds in (
        ("arn:aws:sqs:us-east-1:000000000000:orders", True),
        ("arn:aws:sqs:*:000000000000:orders", True),
        ("arn:aws:sqs:us-east-1:123456789012:orders", False),
        ("arn:aws:sqs:eu-west-1:000000000000:orders", False),
    ):
        assert bool(grants_of(policy(Resource=resource), place, queue)) == holds, resource


def test_a_condition_opens_nothing_and_does_not_weaken_a_denial() -> None:
    assert grants_of(policy(Condition=CONDITION)) == []
    assert grants_of(policy(Effect="Deny", Condition=CONDITION)) == [Grant(False, ["*"], EVERY_VERB)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ('{"a": ["x"]}', Filter([Condition("a", "String", b"x")], "OR")),
        ('{"a": ["x", 5]}', Filter([Condition("a", "String", b"x"), Condition("a", "Number", b"5")], "OR")),
        ('{"a": ["x"], "b": [{"exists": true}]}', Filter([Condition("a", "String", b"x"), Condition("b")], "AND")),
    ],
)
def test_a_filter_policy_is_a_filter(text: str, expected: Filter | None) -> None:
    assert filter_of(text) == expected


def test_a_statement_about_a_tag_grants_on_that_tag() -> None:
    arn = "arn:aws:sqs:us-east-1:000000000000:orders"
    assert grants_of(policy(Resource=f"{arn}@billing"))[0].tags == ["billing"]
    assert grants_of(policy(Resource=[f"{arn}@billing", f"{arn}@other"]))[0].tags == ["billing", "other"]
    assert grants_of(policy(Resource=[f"{arn}@billing", arn]))[0].tags == []
    assert grants_of(policy(Resource="arn:aws:sqs:us-east-1:000000000000:others@billing")) == []


def test_a_pattern_fits_as_the_library_says() -> None:
    """Which turns it into a regular expression; both mean the same but for sets."""
    random = Random(1)
    for _ in range(20_000):
        name = "".join(random.choices("abc", k=random.randrange(8)))
        pattern = "".join(random.choices("abc*?", k=random.randrange(8)))
        assert fits(name, pattern) == fnmatchcase(name, pattern), (name, pattern)
