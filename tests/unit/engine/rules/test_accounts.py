"""What names are in an account: translated once or twice, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rules.accounts import (
    DEFAULT_ACCOUNT,
    account_of,
    edit_of,
    full,
    full_principal,
    policy_for,
    policy_of,
    record_for,
    settings_of,
    short,
    short_principal,
)
from engine.shapes import ANY, Principal, QueueSettings
from schemas.records import Grant, QueueRecord, RedrivePolicy, TagRecord

A, B = "111122223333", "444455556666"
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}", fullmatch=True)
accounts = st.sampled_from(["", A, B])


@given(accounts, names)
def test_what_is_shown_means_the_same_to_who_is_shown_it(account: str, name: str) -> None:
    assert full(account, short(account, name)) == name or name.startswith(f"{DEFAULT_ACCOUNT}.")


@given(accounts, names)
def test_a_name_that_was_translated_stays_as_it_is(account: str, name: str) -> None:
    once = full(account, name)
    assert full(account, once) == once or name.startswith(f"{DEFAULT_ACCOUNT}.")


@given(names, names)
def test_no_name_of_one_account_is_one_of_another(one: str, other: str) -> None:
    if not account_of(one) and not account_of(other):
        assert len({full("", one), full(A, other), full(B, other)}) == 3


@pytest.mark.parametrize(
    ("account", "name", "called"),
    [
        ("", "orders", "orders"),
        ("", f"{A}.orders", f"{A}.orders"),
        (A, "orders", f"{A}.orders"),
        (A, f"{A}.orders", f"{A}.orders"),
        (A, f"{B}.orders", f"{B}.orders"),
        (A, f"{DEFAULT_ACCOUNT}.orders", "orders"),
        (A, "1.orders", f"{A}.1.orders"),
    ],
)
def test_names(account: str, name: str, called: str) -> None:
    assert full(account, name) == called


def test_everybody_and_accounts_are_principals_of_no_account() -> None:
    for who in (ANY, A, B):
        assert full_principal(A, who) == who == short_principal(A, who)
    assert full_principal(A, "alice") == f"{A}.alice"
    assert short_principal(A, f"{A}.alice") == "alice"
    assert short_principal(B, f"{A}.alice") == f"{A}.alice"
    assert short_principal(A, "root") == f"{DEFAULT_ACCOUNT}.root"


def test_settings_get_full_names_and_records_short_ones() -> None:
    by = Principal(f"{A}.alice", account=A)
    asked = QueueSettings(
        redrive_policy=RedrivePolicy("dead", 3), allowed_sources=[ANY, "a"], grants=[Grant(True, ["bob", B, ANY], ["send"])]
    )
    found = settings_of(by, asked)
    assert found.redrive_policy == RedrivePolicy(f"{A}.dead", 3)
    assert found.allowed_sources == [ANY, f"{A}.a"]
    assert found.grants == [Grant(True, [f"{A}.bob", B, ANY], ["send"])]
    assert settings_of(by, found) == found
    assert settings_of(Principal("alice"), asked) is asked
    assert policy_of(by, None) is None
    tag = TagRecord(0, "default", 0, 0, [0], redrive_policy=RedrivePolicy(f"{B}.dead", 2))
    record = QueueRecord(
        f"{A}.orders", "0" * 12, f"{A}.alice", 0, 0, 1, 0, 0, 0, 0, 0, 0, [tag], 1,
        redrive_policy=found.redrive_policy, grants=found.grants or [], allowed_sources=found.allowed_sources or [],
    )  # fmt: skip
    shown = record_for(A, record)
    assert (shown.name, shown.owner, shown.redrive_policy) == ("orders", "alice", asked.redrive_policy)
    assert (shown.grants, shown.allowed_sources) == (asked.grants, asked.allowed_sources)
    assert shown.tags[0].redrive_policy == RedrivePolicy(f"{B}.dead", 2)
    assert record_for("", record) is record
    assert policy_for(B, RedrivePolicy(f"{B}.dead", 2)) == RedrivePolicy("dead", 2)
    edit = edit_of(by, lambda seen: QueueSettings(allowed_sources=[seen.name]))
    assert edit is not None
    assert edit(record).allowed_sources == [f"{A}.orders"]
