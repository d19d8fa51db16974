"""The settings of a queue as fields of a form, made of the table of settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.console.web.visit import Visit
from schemas.records.native_settings import SETTINGS, description, in_seconds, wire_name
from schemas.records.settings import Setting

_POLICY: Final = "redrive_policy"
_NOTES: Final = "user_attributes"
_LONG: Final = ("notes", "lines")


class Field(NamedTuple):
    """`kind` is text, number, choice, switch, notes or lines. `value` is as a form has it. `least`
    and `most` None = no bound. Bounds of seconds are in seconds.
    """

    name: str
    about: str
    kind: str
    value: str
    choices: tuple[str, ...]
    least: float | None
    most: float | None


def fields(current: Mapping[str, Any] | None = None) -> list[Field]:
    """A field for each setting, but for the redrive policy; of a queue that is there, for those
    that may be changed, with what they are.
    """
    shown = [setting for setting in SETTINGS if setting.name != _POLICY]
    if current is not None:
        shown = [setting for setting in shown if setting.may_change and (current["fifo"] or not setting.fifo)]
    return [_field(setting, None if current is None else current[wire_name(setting)]) for setting in shown]


def typed(visit: Visit, shown: list[Field]) -> list[Field]:
    """Fields as their form had them, when it was refused. A switch that is off is in no form, so it
    is the form that says whose fields came.
    """
    if not any(visit.has(field.name) for field in shown):
        return shown
    return [
        field._replace(value=visit.text(field.name) if field.kind in _LONG else visit.given(field.name))
        for field in shown
    ]


def settings_of(visit: Visit, current: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The settings that a form names; of a queue that is there, those that differ. Raises Failure
    for what is no number.
    """
    named: dict[str, Any] = {}
    for field in fields(current):
        text = visit.given(field.name)
        if field.kind == "switch":
            value: Any = bool(text)
            if value == (field.value == "yes"):
                continue
        elif text == field.value.strip() or (not text and field.kind not in ("text", *_LONG)):
            continue
        else:
            value = _value(field, text)
        named[field.name] = value
    return named


def _value(field: Field, text: str) -> Any:
    if field.kind == "notes":
        return notes_of(text)
    if field.kind == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if field.kind != "number":
        return text
    try:
        number = float(text)
    except ValueError:
        raise Failure(f"{field.name} is a number, given {text[:100]!r}", WRONG_USE) from None
    return int(number) if number.is_integer() else number


def notes_of(text: str) -> dict[str, str]:
    """Lines of NAME=TEXT. Raises Failure."""
    notes: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise Failure(f"a line is NAME=TEXT, given {line[:100]!r}", WRONG_USE)
        notes[name.strip()] = value.strip()
    return notes


def _field(setting: Setting, value: Any) -> Field:
    name, about = wire_name(setting), description(setting)
    if setting.name == _NOTES:
        shown = "\n".join(f"{key}={text}" for key, text in (value or {}).items())
        return Field(name, f"{about} A line for each: NAME=TEXT.", "notes", shown, (), None, None)
    if isinstance(setting.default, list):
        return Field(name, f"{about} A line for each.", "lines", "\n".join(value or []), (), None, None)
    if isinstance(setting.default, bool):
        return Field(name, about, "switch", "yes" if value else "", (), None, None)
    if setting.choices:
        return Field(name, about, "choice", value or "", setting.choices, None, None)
    if isinstance(setting.default, str):
        return Field(name, about, "text", value or "", (), None, None)
    scale = 1000 if in_seconds(setting) else 1
    shown = "" if value is None else str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    least, most = (setting.low / scale, setting.high / scale) if setting.high else (None, None)
    return Field(name, about, "number", shown, (), least, most)
