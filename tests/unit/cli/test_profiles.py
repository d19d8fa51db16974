"""Where a connection comes from: options, environment, file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.settings import OF_CLIENTS
from facade.config import Settings
from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.connect.profiles import (
    ENDPOINT,
    KEY_ID,
    KEY_SECRET,
    PROFILE,
    checked_endpoint,
    connection,
    names,
    path_of,
)

FILE = """
default = "home"

[profiles.home]
endpoint = "http://home:9400"
key_id = "anna"
key_secret = "a"

[profiles.prod]
endpoint = "https://prod.example.org"
key_id = "paul"
key_secret = "p"
timeout = 5
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return written(tmp_path, FILE)


def written(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    environment = {"XDG_CONFIG_HOME": str(folder)}
    path = path_of(environment)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return environment


def test_without_anything_it_is_the_service_of_this_machine_without_a_key(tmp_path: Path) -> None:
    at = connection({}, {"HOME": str(tmp_path)})

    assert (at.endpoint, at.key_id, at.timeout_s, at.profile) == ("http://127.0.0.1:9400", "", 30.0, "")


@pytest.mark.parametrize(
    ("given", "variables", "endpoint", "key_id", "timeout"),
    [
        ({}, {}, "http://home:9400", "anna", 30),
        ({}, {PROFILE: "prod"}, "https://prod.example.org", "paul", 5),
        ({"profile": "home"}, {PROFILE: "prod"}, "http://home:9400", "anna", 30),
        ({}, {PROFILE: "prod", KEY_ID: "eva", KEY_SECRET: "e"}, "https://prod.example.org", "eva", 5),
        ({"key": "otto:o:o"}, {KEY_ID: "eva", KEY_SECRET: "e"}, "http://home:9400", "otto", 30),
        (
            {"profile": "prod"},
            {ENDPOINT: "http://x:1", KEY_ID: "eva", KEY_SECRET: "e"},
            "https://prod.example.org",
            "paul",
            5,
        ),
        ({"endpoint": "http://y:2", "key": "otto:o"}, {ENDPOINT: "http://x:1"}, "http://y:2", "otto", 30),
        ({"profile": "prod", "timeout": 2.0}, {}, "https://prod.example.org", "paul", 2),
    ],
)
def test_an_option_beats_the_environment_which_beats_the_file(
    environment: dict[str, str],
    given: dict[str, Any],
    variables: dict[str, str],
    endpoint: str,
    key_id: str,
    timeout: float,
) -> None:
    at = connection(given, {**environment, **variables})

    assert (at.endpoint, at.key_id, at.timeout_s) == (endpoint, key_id, timeout)


def test_a_secret_may_have_a_colon_and_is_in_no_text(environment: dict[str, str]) -> None:
    at = connection({"key": "otto:hunter2:x"}, environment)

    assert at.key_secret == "hunter2:x"
    assert "hunter2" not in f"{at} {at!r}"


@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_key_of_a_profile_goes_to_no_other_endpoint(environment: dict[str, str], by: str) -> None:
    other = "http://elsewhere:9400"
    at = (
        connection({"endpoint": other}, environment)
        if by == "option"
        else connection({}, {**environment, ENDPOINT: other})
    )

    assert (at.endpoint, at.key_id, at.key_secret) == (other, "", "")
    assert at.notes == ("the key of profile 'home' is for its own endpoint, and was not sent to http://elsewhere:9400",)


def test_the_same_endpoint_named_again_keeps_the_key(environment: dict[str, str]) -> None:
    assert connection({"endpoint": "http://HOME:9400/"}, environment).key_id == "anna"


def test_a_file_with_a_secret_that_others_may_read_is_noted(tmp_path: Path) -> None:
    (note,) = connection({}, written(tmp_path, FILE, 0o644)).notes

    assert note.startswith(f"{tmp_path}/leaseway/profiles.toml has a secret, and others may read it")


def test_names_are_those_of_the_file(environment: dict[str, str], tmp_path: Path) -> None:
    assert names(environment) == ["home", "prod"]
    assert names({"XDG_CONFIG_HOME": str(tmp_path / "none")}) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default = 3", "'default' is not known there"),
        ("[profile.x]\nendpoint = 'http://x:1'", "'profile' is not known there"),
        (
            "default = 'x'\n[profiles.x]\nendpont = 'http://x:1'",
            "profile 'x' has 'endpont', and a profile has endpoint, key_id",
        ),
        ("default = 'x'\n[profiles.x]\nendpoint = 5", "endpoint of profile 'x' must be a text"),
        ("default = 'x'\n[profiles.x]\ntimeout = true", "timeout of profile 'x' must be a number"),
        ("default = 'x'\n[profiles]\nx = 1", "the profile 'x' is no table"),
        ("default = 'x'\n[profiles.y]\nkey_id = 'k'", "no profile is named 'x' in"),
        ("default = ", "are not TOML"),
        ("default = 'x'\n[profiles.x]\ntimeout = -5", "a timeout is more than 0 and at most 86400 seconds, given -5"),
        ("default = 'x'\n[profiles.x]\ntimeout = 0", "a timeout is more than 0"),
        ("default = 'x'\n[profiles.x]\ntimeout = nan", "a timeout is more than 0"),
    ],
)
def test_a_file_that_is_not_right_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(Failure) as refused:
        connection({}, written(tmp_path, text))

    assert said in str(refused.value)
    assert refused.value.code == WRONG_USE


def test_a_file_that_is_not_right_stops_nobody_who_names_endpoint_and_key(tmp_path: Path) -> None:
    environment = written(tmp_path, "default = ")
    given = {"endpoint": "http://x:1", "key": "anna:a"}

    for options, variables in ((given, {}), ({}, {ENDPOINT: "http://x:1", KEY_ID: "anna", KEY_SECRET: "a"})):
        at = connection(options, {**environment, **variables})
        assert (at.endpoint, at.key_id) == ("http://x:1", "anna")
        assert at.notes[0].endswith("; it was not used")
    for options in ({**given, "profile": "home"}, {"endpoint": "http://x:1"}):
        with pytest.raises(Failure, match="are not TOML"):
            connection(options, environment)


def test_the_secret_of_an_endpoint_is_in_no_text() -> None:
    for text in ("http://id:hunter2@host", "id:hunter2@host:1", "http://id:hunter2@[::1"):
        with pytest.raises(Failure) as refused:
            checked_endpoint(text)
        assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "variables", "said"),
    [
        ({"endpoint": "localhost:9400"}, {}, "http://HOST:PORT or https://HOST:PORT, given 'localhost:9400'"),
        ({"endpoint": "http://a:b@host"}, {}, "given '...@host'"),
        ({"endpoint": "http://a..b"}, {}, "given 'http://a..b'"),
        ({"endpoint": "http://[::1"}, {}, "given 'http://[::1'"),
        ({"endpoint": "http://:80"}, {}, "given 'http://:80'"),
        ({"timeout": float("nan")}, {}, "more than 0 and at most 86400 seconds, given nan"),
        ({"endpoint": "http://host/v1"}, {}, "given 'http://host/v1'"),
        ({"key": "justid"}, {}, "--key is ID:SECRET"),
        ({}, {KEY_ID: "eva"}, f"{KEY_ID} is set and {KEY_SECRET} is not"),
        ({}, {KEY_SECRET: "e"}, f"{KEY_SECRET} is set and {KEY_ID} is not"),
    ],
)
def test_a_value_that_is_not_right_is_refused(
    given: dict[str, Any], variables: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(Failure) as refused:
        connection(given, {"HOME": str(tmp_path), **variables})

    assert said in str(refused.value)
    assert refused.value.code == WRONG_USE


def test_a_service_starts_where_the_variables_of_the_command_line_are_set() -> None:
    assert {ENDPOINT, KEY_ID, KEY_SECRET, PROFILE} == OF_CLIENTS
    assert Settings.read(dict.fromkeys(OF_CLIENTS, "x")) == Settings()
