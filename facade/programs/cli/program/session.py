"""What a command has at hand: the client, the form of its output, and the person at the terminal,
if there is one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import click

from facade.programs.cli.output.cells import visible
from facade.programs.cli.output.forms import Printer, Row
from facade.programs.connect.client import Client
from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.connect.profiles import connection


class Session:
    """One run of a command. `given` are the common options; those not given are None."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._began = time.monotonic()
        self._output = self.printer("table")

    @cached_property
    def client(self) -> Client:
        """The client of the service. Raises Failure: a profile or an option is not right."""
        at = connection(self._given, os.environ)
        for note in at.notes:
            self.say(f"note: {note}")
        return Client(at)

    @property
    def timeout_s(self) -> float | None:
        """What --timeout says; None = it was not given."""
        return self._given.get("timeout")

    @property
    def end(self) -> float | None:
        """When --timeout is over, by time.monotonic(): it began with the command. None = it was not
        given.
        """
        return None if self.timeout_s is None else self._began + self.timeout_s

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if "client" in self.__dict__:
            self.client.close()

    def printer(self, default: str) -> Printer:
        """What prints in the form that was named, or in `default`."""
        columns = self._given.get("columns")
        return Printer(self._given.get("output") or default, sys.stdout, columns.split(",") if columns else None)

    @property
    def shows_all(self) -> bool:
        """Whether all fields of an object are printed."""
        form = self._given.get("output") or "table"
        return form != "name" and not (form == "table" and self._given.get("columns"))

    def rows(self, rows: Iterable[Row], columns: Sequence[str], *, name: str = "name", whole: bool = False) -> None:
        """Prints a list; if `whole`, no cell of a table is cut."""
        self._output.rows(list(rows), columns, name, whole=whole)

    def one(self, row: Row, *, name: str = "name") -> None:
        """Prints an object."""
        self._output.one(row, name)

    def stream(self, rows: Iterable[Row], columns: Sequence[str], *, name: str = "id") -> None:
        """Prints rows as they come."""
        self._output.stream(rows, columns, name)

    @property
    def can_ask(self) -> bool:
        """Whether somebody is at a terminal."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def say(self, text: str) -> None:
        """A line for people, on stderr."""
        click.echo(visible(text), err=True)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Goes on if `yes`, or if the person at the terminal agrees. Raises Failure."""
        if yes:
            return
        if not self.can_ask:
            raise Failure(f"{visible(question)}? There is no terminal to ask at: --yes agrees", WRONG_USE)
        if not click.confirm(f"{visible(question)}?", err=True):
            raise Failure("nothing was done")
