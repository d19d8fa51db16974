"""The settings of a queue as options, made of the table of settings; it is read when a command that
has them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import click

from facade.programs.cli.program.command import ApiCommand
from facade.programs.cli.program.values import pairs, redrive_policy, seconds

if TYPE_CHECKING:
    from schemas.records.settings import Setting

_POLICY = ("dead_letter_queue", "dead_letter_after")


class SettingsCommand(ApiCommand):
    """A command with an option for each setting. Its callback is given `settings`: those that were
    named, as the API has them.
    """

    def __init__(self, *args: Any, changes: bool, **more: Any) -> None:
        super().__init__(*args, **more)
        self._changes = changes
        self._options: list[click.Option] | None = None

    @classmethod
    def to_create(cls, *args: Any, **more: Any) -> Self:
        """Of a new queue: with all settings."""
        return cls(*args, changes=False, **more)

    @classmethod
    def to_change(cls, *args: Any, **more: Any) -> Self:
        """Of a queue that is there: with those that may be changed."""
        return cls(*args, changes=True, **more)

    def settings_options(self) -> list[click.Option]:
        """The options of the settings."""
        if self._options is None:
            self._options = options(changes=self._changes)
        return self._options

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self.settings_options(), *super().get_params(ctx)]

    def invoke(self, ctx: click.Context) -> Any:
        given = {option.name or "": ctx.params.pop(option.name or "") for option in self.settings_options()}
        ctx.params["settings"] = named(given)
        return super().invoke(ctx)


def options(*, changes: bool) -> list[click.Option]:
    """An option for each setting; if `changes`, only for those that may be changed."""
    from schemas.records.native_settings import SETTINGS

    found: list[click.Option] = []
    for setting in SETTINGS:
        if changes and not setting.may_change:
            continue
        if setting.name == "redrive_policy":
            found.append(click.Option(["--dead-letter-queue"], metavar="QUEUE", help="Where messages go that die."))
            found.append(click.Option(["--dead-letter-after"], type=int, metavar="N", help="Deliveries before that."))
        elif setting.name == "user_attributes":
            found.append(
                click.Option(
                    ["--user-attribute"],
                    multiple=True,
                    type=pairs,
                    metavar="NAME=TEXT",
                    help=f"{setting.words} May be repeated.",
                )
            )
        else:
            found.append(_option(setting))
    return found


def named(given: dict[str, Any]) -> dict[str, Any]:
    """The settings that options name, as the API has them."""
    policy = redrive_policy(*(given.get(name) for name in _POLICY))
    notes = dict(given.get("user_attribute") or ())
    rest = {name: value for name, value in given.items() if name not in (*_POLICY, "user_attribute")}
    found = {**rest, "redrive_policy": policy, "user_attributes": notes or None}
    listed = {
        name: [one for one in value if one] if value else None
        for name, value in found.items()
        if isinstance(value, tuple)
    }
    return {name: value for name, value in {**found, **listed}.items() if value is not None}


def _option(setting: Setting) -> click.Option:
    from schemas.records.native_settings import description, in_seconds, wire_name

    flag = "--" + wire_name(setting).replace("_", "-")
    about = description(setting)
    if isinstance(setting.default, bool):
        return click.Option([f"{flag}/--no-{flag[2:]}"], default=None, help=about)
    if setting.choices:
        return click.Option([flag], type=click.Choice(setting.choices), help=about)
    if isinstance(setting.default, list):
        return click.Option(
            [flag], multiple=True, metavar="TEXT", help=f"{about} May be repeated; one that is empty takes all away."
        )
    if isinstance(setting.default, str):
        return click.Option([flag], metavar="TEXT", help=about)
    kind = seconds if in_seconds(setting) else click.INT
    return click.Option([flag], type=kind, metavar="SECONDS" if in_seconds(setting) else "N", help=about)
