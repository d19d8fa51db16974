"""docs/reference/cli.md: each subcommand and its options, from the parsers themselves."""

from __future__ import annotations

import argparse
from collections import Counter

from facade.programs.cli.cli import COMMANDS, Command
from tests.docs.markdown import item, wrapped

HEAD = """# Command line

Written by `make docs` from the parsers of the subcommands; a test keeps it fresh. `leaseway COMMAND
--help` prints the same. Exit status: 0 = done, 2 = refused, with one line that says why. `leaseway
verify` exits with 1 when it found differences, and `leaseway seal` when something is not sealed."""
Options = dict[str, str]


def page() -> str:
    """The page. An option that several commands have is described once, at the end."""
    commands = [(command, _options(command)) for command in COMMANDS if command.about]
    uses = Counter(option for _, options in commands for option in options.items())
    shared = {name: about for (name, about), count in uses.items() if count > 1}
    text = HEAD.partition("\n\n")
    parts = [f"{text[0]}\n\n", wrapped(text[2])]
    for command, options in commands:
        own = {name: about for name, about in options.items() if shared.get(name) != about}
        parts += [
            f"## leaseway {command.name}\n\n",
            wrapped(f"{_sentence(command.about or '')}{_also([n for n in options if n not in own])}"),
        ]
        parts += [_listed(own)]
    return "".join(parts) + "## Options of several commands\n\n" + _listed(shared).rstrip("\n") + "\n"


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
    flags = ", ".join(f"`{name.split()[0]}`" for name in names)
    return f" It also has {flags}." if names else ""


def _listed(options: Options) -> str:
    return "".join(item(f"`{name}`: {about}") for name, about in options.items()) + ("\n" if options else "")
