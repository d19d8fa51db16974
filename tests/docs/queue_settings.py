"""docs/reference/queue-settings.md, made of the table of settings and of each dialect's rows."""

from __future__ import annotations

from facade.dialects.emq.queues.settings import ATTRIBUTES as EMQ
from facade.dialects.mns.queues.settings import ATTRIBUTES as MNS
from facade.dialects.native.wire.settings import CreateQueueBody
from facade.dialects.native.wire.units import to_seconds
from facade.dialects.sqs.queues import fifo
from facade.dialects.sqs.wire.limits import LIMITS
from schemas.records.native_settings import in_seconds, wire_name
from schemas.records.settings import TABLE, Setting
from tests.docs.markdown import item, wrapped

_HEAD = """# Queue settings

"""
_ABOUT = """Settings by their names in the native API, and in the dialects that have them; a dialect may
be narrower than the range here ([SQS](sqs.md), [EMQ](emq.md), [MNS](mns.md)). Written by `make docs`."""


def _range(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{word}`" for word in setting.choices)
    if isinstance(setting.default, bool):
        return ""
    if not setting.high or isinstance(setting.default, list):
        return ""
    if in_seconds(setting):
        return f"{to_seconds(setting.low)} to {to_seconds(setting.high)} s"
    return f"{setting.low} to {setting.high}"


def _default(setting: Setting) -> str:
    if setting.default is None or setting.default in ("", {}, [], ["*"]) or setting.none:
        return ""
    if isinstance(setting.default, bool):
        return "true" if setting.default else "false"
    return f"{to_seconds(setting.default)} s" if in_seconds(setting) else str(setting.default)


def _names() -> dict[str, list[str]]:
    """What dialects call each setting."""
    rows = [*((row, "SQS") for row in LIMITS["wide"].attributes.values()), *((row, "EMQ") for row in EMQ.values())]
    found: dict[str, list[str]] = {}
    for row, dialect in [*rows, *((row, "MNS") for row in MNS)]:
        found.setdefault(row.setting, []).append(f"{dialect} `{row.name}`")
    for name, setting in fifo.SETTINGS.items():
        found.setdefault(setting, []).append(f"SQS `{name}`")
    return found


def page() -> str:
    """The whole page, in Markdown."""
    native, names = set(CreateQueueBody.__struct_fields__), _names()
    return (
        _HEAD
        + wrapped(_ABOUT)
        + "".join(_item(setting, native, names.get(setting.name, [])) for setting in TABLE.values())
    )


def _item(setting: Setting, native: set[str], names: list[str]) -> str:
    name, default = wire_name(setting), _default(setting)
    shown = f"`{name}`" if name in native else f"{setting.name} (not in the native API)"
    words = setting.words if setting.may_change else f"{setting.words} Can't be changed later."
    value = ", ".join(text for text in (_range(setting), default and f"default {default}") if text)
    facts = "; ".join(text for text in (value, ", ".join(names)) if text)
    return item(f"{shown}: {words}" + (f" {facts[0].upper()}{facts[1:]}." if facts else ""))
