"""Settings as text: `leaseway config`, docs/reference/config.md, .env.example."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping
from typing import Any

from engine.settings import file_variable_of, variable_of
from engine.window.topic_retention import LEAST_DELAY_MS, MARGIN_MS, keep_ms
from facade.config import Settings
from facade.programs.stack.processes.errors import StackError
from facade.programs.stack.processes.settings import BROKER_PROPERTIES, REDIS_OPTIONS, replication
from facade.programs.stack.safety import choice_of
from schemas.records.settings import DAY_MS, TABLE
from state.redis.address import without_password

MASK = "********"

STACK_VARIABLES = {
    "LW_JARS": (
        "Folder of the jars (`broker/`, `spark/`). Default: `.cache/jars` of the checkout, "
        "else the user's cache folder."
    ),
    "LW_IVY_SETTINGS": "Settings file for Ivy, when the jars come from a mirror; Ivy is PySpark's where that is "
    "installed. Default: Ivy's public resolver.",
    "JAVA_HOME": "Java 17 or newer for the embedded broker. Default: `java` in PATH.",
}

HEAD = """# Configuration

Written by `leaseway config --markdown`; a test keeps it fresh. `leaseway config` prints the values
in force and where they came from. A worker reads the variables when it starts. An unknown
`LEASEWAY_` variable, or a value out of range, stops the start. Options of `leaseway up` and
`leaseway serve` win over variables.

{files}
"""


def current(settings: Settings, environment: Mapping[str, str]) -> str:
    """One line per setting: variable, value (secrets masked), where it came from."""
    rows = []
    for field in dataclasses.fields(Settings):
        variable, value = _variable(field), getattr(settings, field.name)
        origin = (
            "environment"
            if variable in environment
            else "file"
            if environment.get(file_variable_of(field))
            else "default"
        )
        rows.append((variable, _shown(field, value), origin))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}\n" for name, value, origin in rows)


def native(settings: Settings) -> str:
    """Returns whether the native library would serve HTTP here, and why."""
    try:
        is_on, why, _ = choice_of(settings)
    except StackError as error:
        return f"native: a worker does not start ({error})"
    return f"native: {'on' if is_on else 'off'} ({why})"


def markdown() -> str:
    """The page docs/reference/config.md."""
    settings = {f"`{_variable(f)}` {_code(_default(f))}": f.metadata["about"] for f in dataclasses.fields(Settings)}
    stack = {f"`{name}`": about for name, about in STACK_VARIABLES.items()}
    sections = [
        HEAD.format(files=_files()),
        "## The facade\n\n" + _items(settings),
        "## The embedded stack\n\n" + _items(stack),
        _keeping(),
        "## Properties of the embedded broker\n\n```properties\n"
        + _properties({**BROKER_PROPERTIES, **replication(1)})
        + "```\n",
        "## Options of the embedded redis-server\n\n```properties\n" + _properties(REDIS_OPTIONS) + "```\n",
    ]
    return "\n".join(sections)


def example() -> str:
    """The file .env.example: every variable, commented out."""
    lines = ["# Written by `leaseway config --example`; copy it to .env. docker compose reads it."]
    for field in dataclasses.fields(Settings):
        lines += ["", f"# {field.metadata['about']}", f"#{_variable(field)}={_default(field)}"]
    return "\n".join(lines) + "\n"


def _properties(values: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _files() -> str:
    names = ", ".join(f"`{_variable(field)}`" for field in dataclasses.fields(Settings) if file_variable_of(field))
    text = (
        "With `_FILE` behind its name, a variable names a file with the value of a secret; the end of the last line "
        f"does not count: {names}."
    )
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False)


def _keeping() -> str:
    hour_ms = 3_600_000
    margin, least = MARGIN_MS // hour_ms, LEAST_DELAY_MS // hour_ms
    days = f"{keep_ms(TABLE['retention_ms'].default, 0) / DAY_MS:.1f}"
    return (
        "## How long Kafka keeps the messages of a queue\n\n"
        "`retention.ms` of a queue's topic is the sum of the queue's retention, its longest delay, and\n"
        f"{margin} hours (the longest lease, and an hour for clocks). The delay is that of the queue, at least\n"
        f"{least} hour, so the default retention of 4 days gives {days} days. Before a message with a longer delay is\n"
        "stored (a native producer's: loaded), the delay is doubled until it fits, up to\n"
        "`max_delay_seconds`, and the log has a line with `action=keep`. It never falls again.\n\n"
        "The topic of a queue with `keep_unacked` has `retention.ms` -1. Every 30 s the service deletes from\n"
        "its beginning what is as old as that sum and settled under every tag (`action=trim` in the log).\n"
    )


def _variable(field: dataclasses.Field[Any]) -> str:
    return variable_of(field.name)


def _default(field: dataclasses.Field[Any]) -> str:
    return str(field.default)


def _shown(field: dataclasses.Field[Any], value: object) -> str:
    if field.metadata["secret"] and value:
        return MASK
    return without_password(str(value), MASK) or "(empty)"


def _code(text: str) -> str:
    return f"(`{text}`)" if text else "(empty)"


def _items(rows: Mapping[str, str]) -> str:
    """Returns a list of 100 columns: each name, and the text behind it."""
    return "".join(_item(f"{name}: {text}") for name, text in rows.items())


def _item(text: str) -> str:
    return (
        textwrap.fill(
            text, 100, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        + "\n"
    )
