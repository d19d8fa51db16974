"""What names are in an account: translated, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.accounts import DEFAULT_ACCOUNT, EVERYBODY, account_of, full, full_principal, short, short_principal

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
    for who in (EVERYBODY, A, B):
        assert full_principal(A, who) == who == short_principal(A, who)
    assert full_principal(A, "alice") == f"{A}.alice"
    assert short_principal(A, f"{A}.alice") == "alice"
    assert short_principal(B, f"{A}.alice") == f"{A}.alice"
    assert short_principal(A, "root") == f"{DEFAULT_ACCOUNT}.root"
