"""Names in an account: tenants that share the service and know nothing of each other.

A key belongs to the account that its principal's name begins with: `123456789012.alice` is alice of
account 123456789012, and a name without that is of the default account. Queues, principals and
producer groups of an account are named so everywhere in the engine; its callers leave the account
away, and are shown names without it. A name with an account in it means that account, whoever says
it; 000000000000 stands for the default one, whose callers see every name as it is. A name is
translated once: a second time, what was said of the default account would mean the caller's.

Pure.
"""

from __future__ import annotations

import re
from typing import Final

EVERYBODY: Final = "*"
DEFAULT_ACCOUNT: Final = "000000000000"
_OF_DEFAULT: Final = f"{DEFAULT_ACCOUNT}."
_QUALIFIED: Final = re.compile(r"([0-9]{12})\..")
_ACCOUNT: Final = re.compile(r"[0-9]{12}")


def account_of(name: str) -> str:
    """The account that a name in the engine is of, "" = the default one."""
    found = _QUALIFIED.match(name)
    return "" if found is None else found[1]


def is_account(name: str) -> bool:
    """Whether a name is that of an account itself."""
    return _ACCOUNT.fullmatch(name) is not None


def full(account: str, name: str) -> str:
    """What the engine calls what a caller of `account` calls `name`."""
    if not account:
        return name
    if name.startswith(_OF_DEFAULT):
        return name.removeprefix(_OF_DEFAULT)
    return name if _QUALIFIED.match(name) else f"{account}.{name}"


def short(account: str, name: str) -> str:
    """What a caller of `account` is shown of a name in the engine; `full` is its inverse."""
    if not account:
        return name
    of = account_of(name)
    if not of:
        return _OF_DEFAULT + name
    return name.removeprefix(f"{account}.") if of == account else name


def full_principal(account: str, principal: str) -> str:
    """As `full`; an account is a principal too, and so is everybody."""
    return principal if principal == EVERYBODY or is_account(principal) else full(account, principal)


def short_principal(account: str, principal: str) -> str:
    """The inverse of `full_principal`."""
    return principal if principal == EVERYBODY or is_account(principal) else short(account, principal)
