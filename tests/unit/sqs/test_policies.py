"""What policies mean as grants, and what filters of tags mean; the refusals are in the conformance
suite.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from facade.sqs.queues.filters import filter_of
from facade.sqs.queues.policies import GRANTABLE, grants_of
from schemas.filters import Condition, Filter
from schemas.records import Grant

EVERY_VERB = sorted({str(verb) for verbs in GRANTABLE.values() for verb in verbs})
CONDITION = {"Bool": {"aws:SecureTransport": "false"}}


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
