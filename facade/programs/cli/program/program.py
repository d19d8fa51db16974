"""The program as a whole: `leaseway` with all of its commands, of which it imports the one that is
used, and the exit status for each way to end.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from facade.programs.cli.output.cells import visible
from facade.programs.cli.program.command import COMMON, SETTINGS, common_options, unknown
from facade.programs.cli.words import LOCAL, REMOTE
from facade.programs.connect.failures import FAILED, INTERRUPTED, Failure


class Program(click.Group):
    """The root. A command is imported when it is used; the help is made of the table of words."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*REMOTE, *(name for name, about in LOCAL.items() if about)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in REMOTE:
            command: click.Command = import_module(REMOTE[cmd_name][0]).command
            return command
        return _local(cmd_name) if cmd_name in LOCAL else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in REMOTE and args[0] not in LOCAL:
            raise click.UsageError(unknown(self, ctx, args[0], self.list_commands(ctx)), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        remote = [(name, about) for name, (_, about) in REMOTE.items()]
        local = [(name, about) for name, about in LOCAL.items() if about]
        for title, records in (("Use a service", remote), ("Run a service, and read its Kafka", local)):
            with formatter.section(title):
                formatter.write_dl(records)


def _local(name: str) -> click.Command:
    """A command of this machine, which reads its arguments by itself."""

    @click.command(
        name,
        help=LOCAL[name],
        hidden=LOCAL[name] is None,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def passed(ctx: click.Context, arguments: tuple[str, ...]) -> None:
        _nothing_before(ctx, name)
        from facade.programs.cli.local import main as local

        ctx.exit(local([name, *arguments]))

    return passed


def _nothing_before(ctx: click.Context, name: str) -> None:
    """Refuses options of the root: a command of this machine has others, and would not see them."""
    first = ctx.find_root()
    for option in first.command.params:
        if option.name in COMMON and first.params.get(option.name) is not None:
            raise click.UsageError(
                f"{option.opts[-1]} before `{name}` has no effect; `leaseway {name} --help` has its options", ctx
            )


def root() -> Program:
    """The program."""
    about = "A queue service over Kafka. `leaseway COMMAND --help` has the options and examples of a command."
    version = click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
    )
    return Program(
        "leaseway", help=about, params=[*common_options(), version], context_settings=SETTINGS, no_args_is_help=True
    )


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"leaseway {version('leaseway')}")
        ctx.exit()


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit status (connect/failures.py). What went wrong is on
    stderr.
    """
    with contextlib.ExitStack() as opened:
        if not _has_streams(opened):
            click.echo("leaseway: stdout is closed, so nothing was done", err=True)
            return FAILED
        return _run(arguments)


def _has_streams(opened: contextlib.ExitStack) -> bool:
    """Whether there is a stdout. A stdin or stderr that is closed is nothing from here on."""
    nowhere = Path(os.devnull)
    if sys.stdin is None:
        sys.stdin = opened.enter_context(nowhere.open(encoding="utf-8"))
    if sys.stderr is None:
        sys.stderr = opened.enter_context(nowhere.open("w", encoding="utf-8"))
    return sys.stdout is not None


def _run(arguments: Sequence[str]) -> int:
    try:
        done = root().main(list(arguments), prog_name="leaseway", standalone_mode=False)
        sys.stdout.flush()
        return done if isinstance(done, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Failure as failure:
        click.echo(f"{_path(failure)}: {visible(str(failure))}", err=True)
        return failure.code
    except (KeyboardInterrupt, click.Abort):
        click.echo("leaseway: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads what is printed; Python would say so once more at its end.
        with contextlib.suppress(OSError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        click.echo(f"leaseway: {visible(str(error))}", err=True)
        return FAILED


def _path(failure: Failure) -> str:
    notes: list[str] = getattr(failure, "__notes__", [])
    return notes[-1] if notes else "leaseway"
