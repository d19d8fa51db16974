"""docs/reference/cli.md: what each subcommand's `--help` prints."""

from __future__ import annotations

import contextlib
import io
import os
from unittest.mock import patch

from facade.cli.cli import COMMANDS, main

HEAD = """# Command line

Written by `make docs` from `leaseway --help` and the help of each subcommand; a test keeps it
fresh. Exit status: 0 = done, 2 = refused, with one line that says why. `leaseway verify` exits with
1 when it found differences, and `leaseway seal` when something is not sealed.

"""


def help_of(*arguments: str) -> str:
    """What `leaseway ARGUMENTS --help` prints on a terminal of 98 columns."""
    printed = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "100"}), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*arguments, "--help"])
    return printed.getvalue()


def page() -> str:
    """The page."""
    sections = [f"```text\n{help_of()}```\n"]
    sections += [f"\n## leaseway {command.name}\n\n```text\n{help_of(command.name)}```\n" for command in COMMANDS if command.about]
    return HEAD + "".join(sections)
