"""The settings: one class for the engine, one for the server, one for each dialect; each bound
stands once, in its field.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from engine.settings import BadSetting, EngineSettings, Section, file_variable_of, variable_of
from facade.config import EmqSettings, MnsSettings, RocketmqSettings, ServerSettings, Settings, SqsSettings

FIELDS = dataclasses.fields(Settings)


def test_every_setting_is_of_one_part() -> None:
    parts: tuple[type[Section], ...] = (
        EngineSettings,
        ServerSettings,
        SqsSettings,
        EmqSettings,
        MnsSettings,
        RocketmqSettings,
    )
    names = [field.name for part in parts for field in dataclasses.fields(part)]

    assert sorted(names) == sorted(field.name for field in FIELDS)
    for dialect, prefix in (
        (SqsSettings, "sqs_"),
        (EmqSettings, "emq_"),
        (MnsSettings, "mns_"),
        (RocketmqSettings, "rocketmq_"),
    ):
        assert all(field.name.startswith(prefix) for field in dataclasses.fields(dialect))
        assert not any(
            field.name.startswith(prefix) for part in parts if part is not dialect for field in dataclasses.fields(part)
        )


NUMBERS = [
    (field.name, edge, bad)
    for field in FIELDS
    if field.type == "int"
    for edge, bad in zip(field.metadata["within"], (-1, 1), strict=True)
]


@pytest.mark.parametrize(("name", "edge", "step"), NUMBERS)
def test_a_number_is_within_its_bounds(name: str, edge: int, step: int) -> None:
    assert getattr(Settings.read({variable_of(name): str(edge)}), name) == edge
    with pytest.raises(BadSetting, match=rf"{variable_of(name)} must be \d+ to \d+, given {edge + step}"):
        Settings.read({variable_of(name): str(edge + step)})


@pytest.mark.parametrize("field", [field for field in FIELDS if field.metadata["words"]], ids=lambda field: field.name)
def test_the_text_of_a_setting_has_its_words(field: dataclasses.Field[Any]) -> None:
    words = [word for word in field.metadata["words"] if word not in ("", "no")]

    assert all(word in field.metadata["about"] for word in words)
    with pytest.raises(BadSetting, match=f"{variable_of(field.name)} must be .* given 'neither'"):
        Settings.read({}, **{field.name: "neither"})


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LEASEWAY_PROT": "1"}, "LEASEWAY_PROT is not a setting"),
        ({"LEASEWAY_PORT": "x"}, "LEASEWAY_PORT must be a whole number, given 'x'"),
        ({"LEASEWAY_SQS_ACCOUNT": "12"}, "LEASEWAY_SQS_ACCOUNT must be 12 digits, given '12'"),
        (
            {"LEASEWAY_SQS_REGION": "EU"},
            "LEASEWAY_SQS_REGION must be up to 40 small letters, digits and hyphens, given 'EU'",
        ),
        ({"LEASEWAY_FAILPOINTS": "nowhere=stop"}, "LEASEWAY_FAILPOINTS: "),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variables: dict[str, str], said: str) -> None:
    with pytest.raises(BadSetting) as refused:
        Settings.read(variables)
    assert str(refused.value).startswith(said)


def test_an_option_wins_over_a_variable() -> None:
    assert Settings.read({"LEASEWAY_PORT": "1", "OTHER": "x"}, port=2, host=None) == Settings(port=2)


SECRETS = ["secret", "secret_old", "admin_key_secret", "admin_key_secret_old", "smtp_password", "redis_url"]


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_may_come_from_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "value"
    path.write_text("redis://:p@ssword@h:1/0\n")

    settings = Settings.read({f"LEASEWAY_{name.upper()}_FILE": str(path)})

    assert getattr(settings, name) == "redis://:p@ssword@h:1/0"


def test_no_other_setting_has_a_file_and_no_secret_lacks_one() -> None:
    assert sorted(f.name for f in dataclasses.fields(Settings) if file_variable_of(f)) == sorted(SECRETS)
    with pytest.raises(BadSetting, match="LEASEWAY_PORT_FILE is not a setting"):
        Settings.read({"LEASEWAY_PORT_FILE": "/etc/hostname"})


def test_a_file_that_can_not_be_used_stops_the_start_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name, why in (
        ("missing", "No such file"),
        ("empty", "is empty"),
        ("binary", "not UTF-8"),
        ("", "Is a directory"),
    ):
        with pytest.raises(BadSetting, match=why) as caught:
            Settings.read({"LEASEWAY_SECRET_FILE": str(tmp_path / name)})
        assert "LEASEWAY_SECRET_FILE" in str(caught.value)


def test_a_secret_is_given_once(tmp_path: Path) -> None:
    (tmp_path / "value").write_text("one")
    with pytest.raises(BadSetting, match="both set"):
        Settings.read({"LEASEWAY_SECRET_FILE": str(tmp_path / "value"), "LEASEWAY_SECRET": "two"})
