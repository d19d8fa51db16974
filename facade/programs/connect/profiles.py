"""Which service a command speaks to, and with which key: from its options, the environment, and
profiles in a TOML file. An option beats the environment, and that beats the file; a profile that
`--profile` names is an option.

A profile's key goes to no other endpoint than that of the profile.
"""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from facade.programs.connect.failures import WRONG_USE, Failure

LOCAL_ENDPOINT: Final = "http://127.0.0.1:9400"
TIMEOUT_S: Final = 30.0
MOST_TIMEOUT_S: Final = 86_400
ENDPOINT, KEY_ID, KEY_SECRET, PROFILE = (
    "LEASEWAY_ENDPOINT",
    "LEASEWAY_KEY_ID",
    "LEASEWAY_KEY_SECRET",
    "LEASEWAY_PROFILE",
)
_FIELDS: Final[dict[str, type | tuple[type, ...]]] = {
    "endpoint": str,
    "key_id": str,
    "key_secret": str,
    "ca_file": str,
    "timeout": (int, float),
}


@dataclass(frozen=True, slots=True)
class Connection:
    """A service and a key. `key_id` "" = no key. `profile` "" = none is used. `notes` are for
    people: what of the profile was not used, and why.
    """

    endpoint: str = LOCAL_ENDPOINT
    key_id: str = ""
    key_secret: str = ""
    ca_file: str = ""
    timeout_s: float = TIMEOUT_S
    profile: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Connection({self.endpoint}, key {self.key_id or 'none'})"


def path_of(environment: Mapping[str, str]) -> Path:
    """The file of the profiles."""
    folder = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".config")
    return Path(folder) / "leaseway" / "profiles.toml"


def connection(given: Mapping[str, Any], environment: Mapping[str, str]) -> Connection:
    """The connection that options (`endpoint`, `key`, `profile`, `ca_file`, `timeout`; None = not
    given), the environment and the file ask for. Raises Failure: a file, a profile or a value that
    is not right.
    """
    named = given.get("profile")
    name, profile, notes = _needed(given, environment)
    if named:
        environment = {}
    other = given.get("endpoint") or environment.get(ENDPOINT)
    endpoint = checked_endpoint(other or profile.get("endpoint") or LOCAL_ENDPOINT)
    key_id, key_secret = _key(given.get("key"), environment)
    if not key_id and profile.get("key_id"):
        if other and endpoint != checked_endpoint(profile.get("endpoint") or LOCAL_ENDPOINT):
            notes.append(f"the key of profile {name!r} is for its own endpoint, and was not sent to {endpoint}")
        else:
            key_id, key_secret = profile["key_id"], profile.get("key_secret", "")
    timeout = given.get("timeout")
    return Connection(
        endpoint=endpoint,
        key_id=key_id,
        key_secret=key_secret,
        ca_file=given.get("ca_file") or profile.get("ca_file") or "",
        timeout_s=_seconds(profile.get("timeout", TIMEOUT_S) if timeout is None else timeout),
        profile=name,
        notes=tuple(notes),
    )


def names(environment: Mapping[str, str]) -> list[str]:
    """The names of the profiles. Raises Failure: the file is not right."""
    return sorted(_read(path_of(environment)).get("profiles", {}))


def checked_endpoint(text: str) -> str:
    """An endpoint as it is compared. Raises Failure: it is none."""
    scheme, _, rest = text.rstrip("/").partition("://")
    if scheme not in ("http", "https") or not rest or any(mark in rest for mark in "/@?# ") or not rest.isprintable():
        raise _no_endpoint(text)
    try:
        host = urlsplit(text).hostname
        if not host or not host.encode("idna"):
            raise _no_endpoint(text)
    except ValueError:
        raise _no_endpoint(text) from None
    return f"{scheme}://{rest.lower()}"


def _no_endpoint(text: str) -> Failure:
    """What is before an `@` may be a secret."""
    shown = f"...@{text.rpartition('@')[2]}" if "@" in text else text
    return Failure(f"an endpoint is http://HOST:PORT or https://HOST:PORT, given {shown!r}", WRONG_USE)


def _seconds(timeout: float) -> float:
    if not 0 < timeout <= MOST_TIMEOUT_S:
        raise Failure(f"a timeout is more than 0 and at most {MOST_TIMEOUT_S} seconds, given {timeout:g}", WRONG_USE)
    return float(timeout)


def _key(given: str | None, environment: Mapping[str, str]) -> tuple[str, str]:
    if given:
        key_id, colon, secret = given.partition(":")
        if not colon or not key_id:
            raise Failure("--key is ID:SECRET, given a text without a colon", WRONG_USE)
        return key_id, secret
    key_id, secret = environment.get(KEY_ID, ""), environment.get(KEY_SECRET, "")
    if bool(key_id) != bool(secret):
        there, missing = (KEY_ID, KEY_SECRET) if key_id else (KEY_SECRET, KEY_ID)
        raise Failure(f"{there} is set and {missing} is not: a key needs both", WRONG_USE)
    return key_id, secret


def _needed(given: Mapping[str, Any], environment: Mapping[str, str]) -> tuple[str, dict[str, Any], list[str]]:
    """As `_chosen`. A file that is not right stops nobody who names an endpoint and a key."""
    path, named = path_of(environment), given.get("profile") or environment.get(PROFILE) or ""
    endpoint = given.get("endpoint") or environment.get(ENDPOINT)
    try:
        return _chosen(path, named)
    except Failure as failure:
        if named or not endpoint or not (given.get("key") or environment.get(KEY_ID)):
            raise
        return "", {}, [f"{failure}; it was not used"]


def _chosen(path: Path, named: str) -> tuple[str, dict[str, Any], list[str]]:
    """The profile that counts: its name, its fields, and what to say about it."""
    read = _read(path)
    profiles = read.get("profiles", {})
    name = named or read.get("default", "")
    if not name:
        return "", {}, []
    if name not in profiles:
        there = ", ".join(sorted(profiles)) or "none"
        raise Failure(f"no profile is named {name!r} in {path}; there are: {there}", WRONG_USE)
    profile = profiles[name]
    _check(path, name, profile)
    return name, profile, [open_to_others] if "key_secret" in profile and (open_to_others := _readable(path)) else []


def _read(path: Path) -> dict[str, Any]:
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Failure(f"the profiles in {path} can't be read: {error.strerror}", WRONG_USE) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Failure(f"the profiles in {path} are not TOML: {error}", WRONG_USE) from None
    for field, value in read.items():
        kind = {"default": str, "profiles": dict}.get(field)
        if kind is None or not isinstance(value, kind):
            raise Failure(f"{path}: {field!r} is not known there; it has `default` and [profiles.NAME]", WRONG_USE)
    return read


def _check(path: Path, name: str, profile: Any) -> None:
    if not isinstance(profile, dict):
        raise Failure(f"{path}: the profile {name!r} is no table: write [profiles.{name}]", WRONG_USE)
    for field, value in profile.items():
        if field not in _FIELDS:
            raise Failure(f"{path}: profile {name!r} has {field!r}, and a profile has {', '.join(_FIELDS)}", WRONG_USE)
        if not isinstance(value, _FIELDS[field]) or isinstance(value, bool):
            kind = "a number" if field == "timeout" else "a text"
            raise Failure(f"{path}: {field} of profile {name!r} must be {kind}", WRONG_USE)


def _readable(path: Path) -> str:
    """What to say when others may read the file; "" = they may not."""
    others = path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
    return f"{path} has a secret, and others may read it: chmod 600 {path}" if others else ""
