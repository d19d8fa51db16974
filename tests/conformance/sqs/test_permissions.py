"""AddPermission, RemovePermission, Policy: what they write, and what they let others do where
credentials are required.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conformance.sqs.conftest import ABSENT, INVALID, Refused

DENIED = ("AccessDenied", "AccessDeniedException", 403)
BAD_VALUE = ("InvalidAttributeValue", "InvalidAttributeValue", 400)
OVER = ("OverLimit", "OverLimit", 403)


def policy_of(sqs: Any, queue: str) -> Any:
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["Policy"]).get("Attributes")
    return None if found is None else json.loads(found["Policy"])


def statement(effect: str, principal: Any, action: Any, **more: Any) -> str:
    return json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": effect, "Principal": principal, "Action": action, **more}]}
    )


def test_a_permission_is_a_statement_of_the_policy(sqs: Any, name: str, queue: str) -> None:
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    sqs.add_permission(QueueUrl=queue, Label="one", AWSAccountIds=["111111111111"], Actions=["SendMessage"])
    sqs.add_permission(
        QueueUrl=queue, Label="two", AWSAccountIds=["222222222222", "333333333333"], Actions=["*", "GetQueueUrl"]
    )
    found = policy_of(sqs, queue)

    assert (found["Version"], found["Id"]) == ("2008-10-17", f"{arn}/SQSDefaultPolicy")
    assert found["Statement"][0] == {
        "Sid": "one",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::111111111111:root"},
        "Action": "SQS:SendMessage",
        "Resource": arn,
    }
    assert found["Statement"][1]["Principal"]["AWS"] == [
        "arn:aws:iam::222222222222:root",
        "arn:aws:iam::333333333333:root",
    ]
    assert found["Statement"][1]["Action"] == ["SQS:*", "SQS:GetQueueUrl"]


def test_the_last_permission_removed_takes_the_policy_with_it(sqs: Any, queue: str, refused: Refused) -> None:
    for label in ("one", "two"):
        sqs.add_permission(QueueUrl=queue, Label=label, AWSAccountIds=["111111111111"], Actions=["SendMessage"])
    sqs.remove_permission(QueueUrl=queue, Label="one")

    assert [one["Sid"] for one in policy_of(sqs, queue)["Statement"]] == ["two"]
    assert refused(sqs.remove_permission, QueueUrl=queue, Label="one") == INVALID
    sqs.remove_permission(QueueUrl=queue, Label="two")
    assert policy_of(sqs, queue) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"Label": "a b"}, INVALID),
        ({"Label": "x" * 81}, INVALID),
        ({"Label": "taken"}, INVALID),
        ({"Actions": ["CreateQueue"]}, INVALID),
        ({"Actions": ["Dance"]}, INVALID),
        ({"AWSAccountIds": ["a b"]}, INVALID),
        ({"Actions": ["SendMessage"] * 8}, OVER),
        ({"QueueUrl": "http://127.0.0.1/0/nowhere"}, ABSENT),
    ],
)
def test_a_bad_permission_is_refused(
    sqs: Any, queue: str, refused: Refused, change: dict[str, Any], expected: tuple[str, str, int]
) -> None:
    good = {"QueueUrl": queue, "Label": "taken", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"]}
    sqs.add_permission(**good)

    assert refused(sqs.add_permission, **{**good, "Label": "new", **change}) == expected


def test_a_policy_is_shown_as_it_was_set_until_it_is_removed(sqs: Any, queue: str) -> None:
    text = statement(
        "Allow",
        "*",
        "sqs:SendMessage",
        Resource="*",
        Condition={"ArnEquals": {"aws:SourceArn": "arn:aws:sns:x:1:topic"}},
    )
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": text})
    assert sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]["Policy"] == text

    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": ""})
    assert policy_of(sqs, queue) is None


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("{", BAD_VALUE),
        ("[]", BAD_VALUE),
        ("{}", BAD_VALUE),
        (statement("Maybe", "*", "*"), BAD_VALUE),
        (statement("Allow", 5, "*"), BAD_VALUE),
        (statement("Allow", "*", "s3:GetObject"), BAD_VALUE),
        (statement("Allow", {"AWS": "arn:aws:iam::1:group/x"}, "*"), BAD_VALUE),
        ('{"Statement": [{"Effect": "Deny", "NotPrincipal": "*", "Action": "*"}]}', BAD_VALUE),
        (statement("Allow", "*", "*", Note="x" * 8192), BAD_VALUE),
        (json.dumps({"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "*"}] * 21}), OVER),
        (statement("Allow", {"AWS": [str(n) for n in range(51)]}, "*"), OVER),
    ],
)
def test_a_bad_policy_is_refused(
    sqs: Any, name: str, queue: str, refused: Refused, policy: str, expected: tuple[str, str, int]
) -> None:
    assert refused(sqs.set_queue_attributes, QueueUrl=queue, Attributes={"Policy": policy}) == expected
    assert refused(sqs.create_queue, QueueName=f"{name}-b", Attributes={"Policy": policy}) == expected
    assert policy_of(sqs, queue) is None


# Where credentials are required


@pytest.fixture
def shops(shop: Any, name: str) -> str:
    """The URL of a queue that belongs to `shop`."""
    return str(shop.create_queue(QueueName=name)["QueueUrl"])


def test_who_has_no_right_is_told_that_there_is_no_queue(partner: Any, name: str, shops: str, refused: Refused) -> None:
    """Word for word as of a queue that there is not."""
    for queue, url in ((name, shops), (f"{name}-none", f"{shops}-none")):
        assert refused(partner.send_message, QueueUrl=url, MessageBody="x") == ABSENT
        assert refused(partner.get_queue_url, QueueName=queue) == ABSENT
        assert refused(partner.delete_queue, QueueUrl=url) == ABSENT
        assert (
            refused(partner.add_permission, QueueUrl=url, Label="a", AWSAccountIds=["partner"], Actions=["*"]) == ABSENT
        )
        assert refused(partner.receive_message, QueueUrl=url) == ABSENT


def test_who_has_another_right_is_denied(shop: Any, partner: Any, name: str, shops: str, refused: Refused) -> None:
    shop.add_permission(QueueUrl=shops, Label="purge", AWSAccountIds=["partner"], Actions=["PurgeQueue"])
    assert refused(partner.send_message, QueueUrl=shops, MessageBody="x") == DENIED
    assert refused(partner.get_queue_url, QueueName=name) == DENIED
    assert refused(partner.delete_queue, QueueUrl=shops) == DENIED
    assert (
        refused(partner.add_permission, QueueUrl=shops, Label="a", AWSAccountIds=["partner"], Actions=["*"]) == DENIED
    )


def test_a_permission_lets_its_account_do_what_it_names(shop: Any, partner: Any, shops: str, refused: Refused) -> None:
    shop.add_permission(QueueUrl=shops, Label="send", AWSAccountIds=["partner"], Actions=["SendMessage", "GetQueueUrl"])
    partner.send_message_batch(QueueUrl=shops, Entries=[{"Id": "a", "MessageBody": "x"}])
    partner.send_message(QueueUrl=shops, MessageBody="x")

    assert refused(partner.receive_message, QueueUrl=shops) == DENIED
    assert len(shop.receive_message(QueueUrl=shops, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]) >= 1
    shop.remove_permission(QueueUrl=shops, Label="send")
    assert refused(partner.send_message, QueueUrl=shops, MessageBody="x") == ABSENT


@pytest.mark.parametrize(
    "principal",
    ["*", {"AWS": "*"}, {"AWS": "arn:aws:iam::partner:root"}, {"AWS": ["x", "arn:aws:iam::1:user/a/partner"]}],
)
def test_a_policy_names_principals_in_several_ways(shop: Any, partner: Any, shops: str, principal: Any) -> None:
    shop.set_queue_attributes(QueueUrl=shops, Attributes={"Policy": statement("Allow", principal, "sqs:Send*")})

    assert partner.send_message(QueueUrl=shops, MessageBody="x")["MessageId"]


@pytest.mark.parametrize("principal", [{"AWS": "1"}, {"Service": "sns.amazonaws.com"}])
def test_who_is_not_named_is_not_let_in(shop: Any, partner: Any, shops: str, refused: Refused, principal: Any) -> None:
    shop.set_queue_attributes(QueueUrl=shops, Attributes={"Policy": statement("Allow", principal, "*")})

    assert refused(partner.send_message, QueueUrl=shops, MessageBody="x") == ABSENT


def test_a_denial_wins_and_a_condition_opens_nothing(shop: Any, partner: Any, shops: str, refused: Refused) -> None:
    both = {
        "Statement": [
            json.loads(statement(effect, "*", "SQS:SendMessage"))["Statement"][0] for effect in ("Allow", "Deny")
        ]
    }
    condition = statement("Allow", "*", "sqs:SendMessage", Condition={"Bool": {"aws:SecureTransport": "true"}})
    for policy in (json.dumps(both), condition):
        shop.set_queue_attributes(QueueUrl=shops, Attributes={"Policy": policy})
        assert refused(partner.send_message, QueueUrl=shops, MessageBody="x") == ABSENT
        shop.send_message(QueueUrl=shops, MessageBody="the owner may")
