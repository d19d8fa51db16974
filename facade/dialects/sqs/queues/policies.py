"""Policies of a queue: IAM's JSON <-> the engine's grants, and the statements that AddPermission
writes.

The engine decides by grants; the text is kept for who asks for it. What can't be decided here never
opens a door: an Allow with a Condition grants nothing, a Deny with one denies always.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from engine.rules.grants import ACTIONS
from facade.dialects.sqs.queues.names import Place, fits
from facade.dialects.sqs.queues.redrive import json_object
from facade.dialects.sqs.wire.errors import INVALID_ATTRIBUTE_VALUE, OVER_LIMIT, SqsError, invalid
from facade.dialects.sqs.wire.limits import (
    PERMISSION_ACTIONS,
    POLICY_BYTES,
    POLICY_CONDITIONS,
    POLICY_PRINCIPALS,
    POLICY_STATEMENTS,
)
from schemas.records.settings import ANY, Grant

_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
# The name of a session (sts, assumed-role) is chosen by who assumes the role: it names nobody.
_PRINCIPAL: Final = re.compile(r"arn:[a-z0-9-]+:iam::([^:/]+):(?:root|(?:user|role)/(?:[^:]*/)?([^:/]+))")
_ELEMENTS: Final = frozenset(("Sid", "Effect", "Principal", "Action", "Resource", "Condition"))


def _bad(reason: str) -> SqsError:
    return SqsError(INVALID_ATTRIBUTE_VALUE, f"Invalid value for the parameter Policy. Reason: {reason}")


def _strings(value: Any) -> list[str]:
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(one, str) for one in found):
        raise _bad("a string or a list of strings was expected.")
    return found


def grants_of(text: str, place: Place, queue: str) -> list[Grant]:
    """What a policy means; an empty text grants nothing. Raises SqsError for what is no policy, or
    too much of one.

    The policy is set for `queue`, as the caller at `place` calls it: a statement about others only
    says nothing, and one about tags of it is about their messages.
    """
    if not text:
        return []
    if len(text.encode("utf-8", "replace")) > POLICY_BYTES:
        raise _bad(f"a policy may have {POLICY_BYTES} bytes.")
    statements = _statements(_parsed(text))
    if len(statements) > POLICY_STATEMENTS:
        raise SqsError(OVER_LIMIT, f"A policy may have {POLICY_STATEMENTS} statements.")
    found = [_grant(statement, place) for statement in statements]
    if sum(len(grant.principals) for grant in found) > POLICY_PRINCIPALS:
        raise SqsError(OVER_LIMIT, f"A policy may have {POLICY_PRINCIPALS} principals.")
    if sum(_conditions(statement) for statement in statements) > POLICY_CONDITIONS:
        raise SqsError(OVER_LIMIT, f"A policy may have {POLICY_CONDITIONS} conditions.")
    grants = []
    for grant, statement in zip(found, statements, strict=True):
        resources = _strings(statement.get("Resource", ANY))
        whole = any(place.concerns(queue, one) for one in resources)
        tags = [] if whole else [tag for one in resources if (tag := place.tag_of(queue, one))]
        if (whole or tags) and grant.principals and grant.verbs:
            grants.append(structs.replace(grant, tags=tags))
    return grants


def _parsed(text: str) -> dict[str, Any]:
    found = json_object(text)
    if found is None:
        raise _bad("it is no JSON object.")
    return found


def _statements(policy: dict[str, Any]) -> list[dict[str, Any]]:
    found = policy.get("Statement")
    found = [found] if isinstance(found, dict) else found
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise _bad("Statement must be an object or a list of objects.")
    return found


def _conditions(statement: dict[str, Any]) -> int:
    found = statement.get("Condition") or {}
    if not isinstance(found, dict) or not all(isinstance(keys, dict) for keys in found.values()):
        raise _bad("Condition must be an object of objects.")
    return sum(len(keys) for keys in found.values())


def _grant(statement: dict[str, Any], place: Place) -> Grant:
    effect = statement.get("Effect")
    if effect not in ("Allow", "Deny"):
        raise _bad("Effect must be Allow or Deny.")
    if others := statement.keys() - _ELEMENTS:
        raise _bad(
            f"a statement may have {', '.join(sorted(_ELEMENTS))}; {', '.join(sorted(others))[:100]} is not supported."
        )
    if "Principal" not in statement or "Action" not in statement:
        raise _bad("a statement needs Principal and Action.")
    principals, verbs = _principals(statement["Principal"], place), _verbs(_strings(statement["Action"]))
    if effect == "Allow" and _conditions(statement):
        return Grant(True, principals, [])
    return Grant(effect == "Allow", principals, verbs)


def _principals(given: Any, place: Place) -> list[str]:
    """Whom a statement concerns, as principals of ours: an account's root is the account, a user or
    role its name; services are nobody.
    """
    if given == ANY:
        return [ANY]
    if not isinstance(given, dict) or not given:
        raise _bad("Principal must be * or an object.")
    found = []
    for text in _strings(given["AWS"]) if "AWS" in given else ():
        named = _PRINCIPAL.fullmatch(text)
        if named is None and text != ANY and not _ACCOUNT.fullmatch(text):
            raise _bad(f"{text[:100]} is no principal.")
        found.append(text if named is None else place.principal(named[1], named[2]) if named[2] else named[1])
    return found


def _verbs(actions: Iterable[str]) -> list[str]:
    """The verbs that actions stand for; `sqs:Send*` and `*` are patterns, and case does not
    matter.
    """
    patterns: set[str] = set()
    for action in actions:
        service, colon, pattern = action.lower().partition(":")
        if action != ANY and (not colon or service != "sqs"):
            raise _bad(f"{action[:100]} is no action of SQS.")
        patterns.add(pattern if colon else ANY)
    return sorted({str(verb) for name, verbs in ACTIONS.items() if _fits_one(name.lower(), patterns) for verb in verbs})


def _fits_one(name: str, patterns: set[str]) -> bool:
    return name in patterns or any(fits(name, pattern) for pattern in patterns if ANY in pattern or "?" in pattern)


def with_permission(text: str, arn: str, label: str, accounts: Sequence[str], actions: Sequence[str]) -> str:
    """The policy `text` with one more statement. Raises SqsError for a label that is taken or bad,
    and what SQS refuses.
    """
    if not _LABEL.fullmatch(label):
        raise invalid("Label", label, "It may have 1 to 80 letters, digits, hyphens and underscores.")
    if len(actions) > PERMISSION_ACTIONS:
        raise SqsError(OVER_LIMIT, f"{len(actions)} Actions were found, maximum allowed is {PERMISSION_ACTIONS}.")
    for account in accounts:
        if not _ACCOUNT.fullmatch(account):
            raise invalid("PrincipalId", account, "Unable to verify.")
    for action in actions:
        if action != ANY and action not in ACTIONS:
            raise invalid("ActionName", f"SQS:{action}", "Only the queue owner is allowed to invoke this action.")
    policy = _parsed(text) if text else {"Version": "2008-10-17", "Id": f"{arn}/SQSDefaultPolicy", "Statement": []}
    kept = _statements(policy) if policy["Statement"] else []
    if any(statement.get("Sid") == label for statement in kept):
        raise invalid("Label", label, "Already exists.")
    statement = {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": _one_or_all([f"arn:aws:iam::{account}:root" for account in accounts])},
        "Action": _one_or_all([f"SQS:{action}" for action in actions]),
        "Resource": arn,
    }
    return msgspec.json.encode({**policy, "Statement": [*kept, statement]}).decode()


def _one_or_all(values: Sequence[str]) -> str | Sequence[str]:
    return values[0] if len(values) == 1 else values


def without_permission(text: str, label: str) -> str:
    """The policy `text` without a statement; empty when it was the last. Raises SqsError for a
    label that is not there.
    """
    policy = _parsed(text) if text else {}
    kept = _statements(policy) if text else []
    left = [statement for statement in kept if statement.get("Sid") != label]
    if len(left) == len(kept):
        raise invalid("Label", label, "can't find label.")
    return msgspec.json.encode({**policy, "Statement": left}).decode() if left else ""
