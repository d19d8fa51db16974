"""`leaseway completion`: what bash, zsh or fish needs to complete commands and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from facade.programs.cli.program.command import SETTINGS
from facade.programs.cli.words import REMOTE

VARIABLE = "_LEASEWAY_COMPLETE"


@click.command(
    "completion",
    help=f"{REMOTE['completion'][1].capitalize()}: `source <(leaseway completion bash)`.",
    context_settings=SETTINGS,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Prints the script."""
    from facade.programs.cli.program.program import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root(), {}, "leaseway", VARIABLE).source())
