"""The settings: one class for the engine, one for the server, one for each dialect; each bound
stands once, in its field.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from engine.settings import BadSetting, EngineSettings, Section, variable_of
from facade.config import EmqSettings, MnsSettings, RocketmqSettings, ServerSettings, Settings, SqsSettings

FIELDS = dataclasses.fields(Settings)


def test_every_setting_is_of_one_part() -> None:
    parts: tuple[type[Section], ...] = (EngineSettings, ServerSettings, SqsSettings, EmqSettings, MnsSettings, RocketmqSettings)
    names = [field.name for part in parts for field in dataclasses.fields(part)]

    assert sorted(names) == sorted(field.name for field in FIELDS)
    for dialect, prefix in ((SqsSettings, "sqs_"), (EmqSettings, "emq_"), (MnsSettings, "mns_"), (RocketmqSettings, "rocketmq_")):
        assert all(field.name.startswith(prefix) for field in dataclasses.fields(dialect))
        assert not any(field.name.startswith(prefix) for part in parts if part is not dialect for field in dataclasses.fields(part))


NUMBERS = [
    (field.name, edge, bad) for field in FIELDS if field.type == "int" for edge, bad in zip(field.metadata["within"], (-1, 1), strict=True)
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
        ({"LEASEWAY_SQS_REGION": "EU"}, "LEASEWAY_SQS_REGION must be up to 40 small letters, digits and hyphens, given 'EU'"),
        ({"LEASEWAY_FAILPOINTS": "nowhere=stop"}, "LEASEWAY_FAILPOINTS: "),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(variables: dict[str, str], said: str) -> None:
    with pytest.raises(BadSetting) as refused:
        Settings.read(variables)
    assert str(refused.value).startswith(said)


def test_an_option_wins_over_a_variable() -> None:
    assert Settings.read({"LEASEWAY_PORT": "1", "OTHER": "x"}, port=2, host=None) == Settings(port=2)
