"""The settings of a queue by the names and units of the native API, which the command line takes as
options too: a setting in milliseconds is one in seconds there.
"""

from __future__ import annotations

from typing import Final

from schemas.records.settings import TABLE, Setting

# Who has been granted what is shown and set by other requests; the others are words of SQS.
_NOT_NATIVE: Final = ("labels", "policy", "grants", "allowed_sources")
SETTINGS: Final = tuple(setting for name, setting in TABLE.items() if name not in _NOT_NATIVE)


def in_seconds(setting: Setting) -> bool:
    """Whether a setting in milliseconds is one in seconds there."""
    return setting.name.endswith("_ms")


def wire_name(setting: Setting) -> str:
    """Returns what the API calls a setting."""
    return f"{setting.name.removesuffix('_ms')}_seconds" if in_seconds(setting) else setting.name


def words(setting: Setting) -> str:
    """Returns what a document says of a setting."""
    return f"{setting.words} In seconds." if in_seconds(setting) else setting.words


def description(setting: Setting) -> str:
    """Returns what a document says of a setting that may be given: its default too, and whether it
    may be changed.
    """
    said = ""
    # Each default is whole seconds, which the unit test looks at.
    if isinstance(setting.default, bool):
        said = " Default: false."
    elif in_seconds(setting):
        said = f" Default: {setting.default // 1000} s."
    elif setting.default and not setting.none and isinstance(setting.default, int | str):
        said = f" Default: {setting.default}."
    return words(setting) + (said if setting.may_change else f"{said} Can't be changed later.")
