"""Templates made into pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader

from facade.programs.console.web import words
from facade.programs.console.web.static import Static

FOLDER: Final = Path(__file__).resolve().parent.parent / "templates"
# What a page says after an act, by the word that is in its address.
DONE: Final = {
    "created": "The queue was created.",
    "there": "An equal one was there already; nothing was changed.",
    "changed": "Changed.",
    "deleted": "Deleted.",
    "purged": "The queue was purged.",
    "paused": "Paused: nobody receives, and what is sent waits.",
    "resumed": "Receives go on.",
    "sought": "The tag begins anew there.",
    "sent": "Sent.",
    "added": "Added.",
    "cancelled": "Cancelled.",
    "committed": "Committed.",
    "rolled_back": "Rolled back.",
    "unparked": "The group goes on.",
    "not_parked": "The group was not parked; nothing was changed.",
    "nothing": "Nothing was given that differs, so nothing was changed.",
    "out": "You have signed out.",
}


class Pages:
    """All templates; they escape what they are given. What an answer leaves out is empty."""

    def __init__(self, static: Static) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(words.FILTERS)
        self._templates.globals.update(static=static.link, path=path, address=address, age=words.age)

    def render(self, template: str, **given: Any) -> str:
        """A page, or a part of one."""
        text: str = self._templates.get_template(template).render(given)
        return text


def path(*parts: str) -> str:
    """A path of the console, of parts that may have any character."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


def address(to: str, /, **query: Any) -> str:
    """A path with a query; what is None or empty is left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{to}?{urlencode(given)}" if given else to
