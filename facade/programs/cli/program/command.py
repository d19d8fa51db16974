"""A command of the API: its options and those that all commands have, its examples, and its
session.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import click

from facade.programs.cli.output.forms import FORMS
from facade.programs.cli.program.session import Session
from facade.programs.connect.failures import Failure

SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
Callback = Callable[..., Any]


def common_options() -> list[click.Option]:
    """The options of all commands."""
    return [
        click.Option(["-o", "--output"], type=click.Choice(FORMS), help="Form of the output (default table)."),
        click.Option(["--columns"], metavar="A,B", help="Columns of a table: names of fields."),
        click.Option(
            ["--endpoint"], metavar="URL", help="The service (default: of the profile, else http://127.0.0.1:9400)."
        ),
        click.Option(
            ["--key"],
            metavar="ID:SECRET",
            help="Access key; other users of the machine may see it.",
        ),
        click.Option(["--profile"], metavar="NAME", help="Profile of profiles.toml."),
        click.Option(["--ca-file"], metavar="FILE", help="CA of the service's certificate, in PEM."),
        click.Option(
            ["--timeout"],
            type=click.FloatRange(0, 86_400, min_open=True),
            metavar="SECONDS",
            help="For an answer (default 30); with --wait, for all of it.",
        ),
    ]


COMMON: Final = tuple(option.name or "" for option in common_options())


class ApiCommand(click.Command):
    """A command whose callback is given a Session first."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.params += common_options()
        self.examples = tuple(examples)

    def invoke(self, ctx: click.Context) -> Any:
        given = {name: ctx.params.pop(name) for name in COMMON}
        first = ctx.find_root().params
        assert self.callback is not None
        session = Session({name: first.get(name) if value is None else value for name, value in given.items()})
        try:
            return ctx.invoke(self.callback, session, **ctx.params)
        except Failure as failure:
            failure.add_note(ctx.command_path)
            raise
        finally:
            session.close()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and record[1]:
                (common if param.name in COMMON else own).append(record)
        for title, records in (("Options", own), ("Options of all commands", common)):
            with formatter.section(title):
                formatter.write_dl(records)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class Noun(click.Group):
    """The verbs of a noun."""

    def verb(
        self, name: str, *examples: str, about: str = "", cls: Callable[..., ApiCommand] = ApiCommand
    ) -> Callable[[Callback], click.Command]:
        """A decorator: the function is the verb `name`; without `about` its docstring is the
        help.
        """

        def made(callback: Callback) -> click.Command:
            words = about or inspect.cleandoc(callback.__doc__ or "")
            params = getattr(callback, "__click_params__", [])[::-1]
            built = cls(
                name, callback=callback, params=params, help=words, examples=examples, context_settings=SETTINGS
            )
            self.add_command(built)
            return built

        return made

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            raise click.UsageError(unknown(self, ctx, args[0], known), ctx)
        return super().resolve_command(ctx, args)


def unknown(group: click.Group, ctx: click.Context, given: str, known: Sequence[str]) -> str:
    """What to say of a word that is no command: the nearest ones, or all."""
    import difflib

    near = difflib.get_close_matches(given, known, 3, 0.6)
    shown = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(known)}"
    return f"{ctx.command_path} has no command {given!r}; {shown}"


def noun(name: str, about: str) -> Noun:
    """A noun without verbs yet."""
    return Noun(name, help=f"{about[0].upper()}{about[1:]}.", context_settings=SETTINGS)


def yes_option(callback: Callback) -> Callback:
    """Adds --yes."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(callback)


def reason_option(callback: Callback) -> Callback:
    """Adds --reason."""
    return click.option("--reason", metavar="TEXT", help="Why, for whoever looks.")(callback)
