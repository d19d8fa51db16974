"""docs/reference/cli.md: each command and its options, from the commands and parsers themselves."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

import click

from facade.programs.cli.local import COMMANDS, Command
from facade.programs.cli.program.command import COMMON, Noun, common_options
from facade.programs.cli.program.program import root
from facade.programs.cli.program.settings import SettingsCommand
from facade.programs.cli.words import REMOTE
from facade.programs.connect.failures import ABOUT
from tests.docs.markdown import item, wrapped

HEAD = """# Command line

Written by `make docs` from the commands of `leaseway`, whose `--help` has examples too. [Use the command
line](../how-to/use-the-command-line.md) shows how they are used. Those of the first kind use the
API of a service, here or elsewhere; those of the second kind run a service, or read its Kafka.

## Exit status

"""
SETTINGS = "[Settings](queue-settings.md) are options."
NAMED = """Settings are options: `lease_seconds` is `--lease-seconds`, `fifo` is `--fifo` or `--no-fifo`. A
redrive policy is `--dead-letter-queue QUEUE` with `--dead-letter-after N`, and `--user-attribute
NAME=TEXT` may be repeated."""
LOCAL_HEAD = """## Commands that run a service, and read its Kafka

Exit status: 0 = done, 2 = refused, with one line that says why. `leaseway verify` exits with 1 when
it found differences, and `leaseway seal` when something is not sealed.
"""
Options = dict[str, str]
ASKS = "--yes, -y"  # Of the commands that ask before they delete; described once for all of them.


def page() -> str:
    """The page."""
    return HEAD + _exits() + _remote() + _machine()


def _exits() -> str:
    return "".join(item(f"{code}: {about}") for code, about in ABOUT.items()) + "\n"


def _remote() -> str:
    """The commands of the API. An option that several have is described once, at the end."""
    verbs = list(_verbs())
    uses = Counter(line for _, verb in verbs for line in _own(verb).items())
    shared: Options = {}
    for (name, about), count in uses.most_common():
        if count > 1:
            shared.setdefault(name, about)
    parts = ["## Options of all commands of the API\n\n"]
    parts += [item(f"`{_flags(option)}`: {option.help}") for option in common_options()]
    parts += ["".join(_described(path, verb, shared)) for path, verb in verbs]
    shared[ASKS] = "Do not ask: of apply, seek, purge and all rm."
    parts += ["\n## Options of several commands of the API\n\n", wrapped(NAMED), _listed(shared)]
    return "".join(parts)


def _verbs() -> Iterator[tuple[str, click.Command]]:
    for name in REMOTE:
        command = root().get_command(click.Context(root()), name)
        assert command is not None
        if isinstance(command, Noun):
            yield from ((f"{name} {verb.name}", verb) for verb in command.commands.values())
        else:
            yield name, command


def _own(verb: click.Command) -> Options:
    """The options and choices that not all commands have, without settings of queues."""
    options = [param for param in verb.params if isinstance(param, click.Option) and param.name not in COMMON]
    choices = [param for param in _arguments(verb) if isinstance(param.type, click.Choice)]
    return {
        **{_flags(option): f"{option.help}{_default(option)}" for option in options},
        **{_word(argument): f"{', '.join(argument.type.choices)}." for argument in choices},  # type: ignore[attr-defined]
    }


def _described(path: str, verb: click.Command, shared: Options) -> Iterator[str]:
    options = {name: about for name, about in _own(verb).items() if name != ASKS}
    own = {name: about for name, about in options.items() if shared.get(name) != about}
    words = " ".join(_word(argument) for argument in _arguments(verb))
    settings = f" {SETTINGS}" if isinstance(verb, SettingsCommand) else ""
    yield f"\n## {path}{f' `{words}`' if words else ''}\n\n"
    yield wrapped(f"{verb.help}{settings}{_also([name for name in options if name not in own])}").rstrip("\n") + "\n"
    yield f"\n{_listed(own)}".rstrip("\n") + "\n" if own else ""


def _arguments(verb: click.Command) -> list[click.Argument]:
    return [param for param in verb.params if isinstance(param, click.Argument)]


def _word(argument: click.Argument) -> str:
    """How an argument is written; choices are listed below."""
    if isinstance(argument.type, click.Choice):
        return (argument.name or "").upper()
    return argument.make_metavar(click.Context(click.Command(None)))


def _default(option: click.Option) -> str:
    return f" Default: {option.default}." if option.show_default else ""


def _flags(option: click.Option) -> str:
    flags = " / ".join([", ".join(option.opts), *([", ".join(option.secondary_opts)] if option.secondary_opts else [])])
    if option.is_flag:
        return flags
    kinds = option.type.choices if isinstance(option.type, click.Choice) else ()
    return f"{flags} {'|'.join(map(str, kinds)) or option.metavar or option.type.name.upper()}"


def _machine() -> str:
    """The commands of this machine. An option that several have is described once, at the end."""
    commands = [(command, _options(command)) for command in COMMANDS if command.about]
    uses = Counter(option for _, options in commands for option in options.items())
    shared = {name: about for (name, about), count in uses.items() if count > 1}
    parts = [LOCAL_HEAD, "\n"]
    for command, options in commands:
        own = {name: about for name, about in options.items() if shared.get(name) != about}
        parts += [
            f"## {command.name}\n\n",
            wrapped(f"{_sentence(command.about or '')}{_also([n for n in options if n not in own])}"),
        ]
        parts += [_listed(own)]
    return "".join(parts) + "## Options of several commands of this kind\n\n" + _listed(shared).rstrip("\n") + "\n"


def _options(command: Command) -> Options:
    """The options and arguments of a subcommand, each with its help."""
    parser = argparse.ArgumentParser(add_help=False)
    command.arguments(parser)
    return {_name(action): (action.help or "").replace("%%", "%") for action in parser._actions}


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    values = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.metavar or action.dest.upper()
    return action.option_strings[0] if action.nargs == 0 else f"{action.option_strings[0]} {values}"


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _also(names: list[str]) -> str:
    flags = ", ".join(f"`{name.split()[0].rstrip(',')}`" for name in names)
    return f" It also has {flags}." if names else ""


def _listed(options: Options) -> str:
    return "".join(item(f"`{name}`: {about}") for name, about in options.items()) + ("\n" if options else "")
