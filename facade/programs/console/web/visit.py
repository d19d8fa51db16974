"""One request of a browser, and who makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from facade.programs.connect.client import Client, path_to
from facade.programs.connect.failures import Failure, Refused, Unreachable
from facade.programs.console.order import Order
from facade.programs.console.web.calls import Calls
from facade.programs.console.web.pages import DONE, Pages, address
from facade.programs.console.web.reports import Reports
from facade.programs.console.web.sessions import Session, Sessions
from schemas.vocabulary import Verb

Form = Mapping[str, list[str]]
AT_ONCE_S: Final = 0.5


def status_of(failure: Failure) -> int:
    """The status of a page that tells a failure."""
    if isinstance(failure, Refused):
        return failure.status
    return 503 if isinstance(failure, Unreachable) else 422


@dataclass(frozen=True, slots=True)
class Site:
    """What all requests share."""

    order: Order
    calls: Calls
    sessions: Sessions
    pages: Pages
    reports: Reports


class Visit:
    """A request in hand. `form`: what a form has sent, by name. `problem`: why the act of this form
    was refused, when its page is shown once more.
    """

    def __init__(
        self, site: Site, request: Request, session: Session, client: Client, form: Form, problem: Failure | None = None
    ) -> None:
        self.site = site
        self.request = request
        self.session = session
        self.client = client
        self.problem = problem
        self._form = form

    def refused(self, problem: Failure) -> Visit:
        """The same, of which that became."""
        return Visit(self.site, self.request, self.session, self.client, self._form, problem)

    @property
    def queue(self) -> str:
        """The queue that the path names."""
        return str(self.request.path_params["queue"])

    def part(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def asked(self, name: str, default: str = "") -> str:
        """A parameter of the address."""
        return self.request.query_params.get(name, default).strip()

    def given(self, name: str) -> str:
        """A field of the form; "" = it is empty or not there."""
        return self._form.get(name, [""])[0].strip()

    def has(self, name: str) -> bool:
        """Whether the form has such a field, be it empty."""
        return name in self._form

    def text(self, name: str) -> str:
        """A field of the form as it was typed; lines end in LF."""
        return self._form.get(name, [""])[0].replace("\r\n", "\n")

    def each(self, name: str) -> list[str]:
        """The fields of that name."""
        return self._form.get(name, [])

    def get(self, path: str, **query: Any) -> Any:
        """What the API answers to a GET, which is repeated when it fails at once: a connection that
        was kept may be one to a service of before. Raises Failure.
        """
        began = monotonic()
        try:
            return self.client.get(path, **query)
        except Unreachable:
            if monotonic() - began > AT_ONCE_S:
                raise
            return self.client.get(path, **query)

    def of_queue(self, *parts: str, **query: Any) -> Any:
        """As `get`, of the queue that the path names."""
        return self.get(path_to("queues", self.queue, *parts), **query)

    @cached_property
    def me(self) -> dict[str, Any]:
        """Who asks, and what they may do that is about no queue."""
        found: dict[str, Any] = self.get("/v1/rights")
        return found

    @cached_property
    def may(self) -> frozenset[str]:
        """The verbs that they may do with the queue of the path."""
        return frozenset(self.of_queue("rights")["may"])

    @cached_property
    def seen(self) -> dict[str, Any]:
        """The queue of the path; its name and no tag of it for who may not look at it."""
        found: dict[str, Any] = self.of_queue() if Verb.GET_QUEUE in self.may else {"name": self.queue, "tags": []}
        return found

    @property
    def now_ms(self) -> int:
        """The time of the service, by its last answer, to a second."""
        return self.client.clock_ms

    def page(self, template: str, status: int = 200, **given: Any) -> Response:
        """A whole page."""
        refused = status if self.problem is None else status_of(self.problem)
        return self._rendered(
            template, refused, me=self.me, problem=self.problem, done=DONE.get(self.asked("done"), ""), **given
        )

    def fragment(self, template: str, **given: Any) -> Response:
        """A part of a page that is asked for again and again."""
        return self._rendered(template, 200, **given)

    def to(self, path: str, **query: str) -> Response:
        """After an act: where to look."""
        return RedirectResponse(address(path, **query), 303)

    def _rendered(self, template: str, status: int, **given: Any) -> Response:
        text = self.site.pages.render(
            template,
            visit=self,
            here=self.request.url.path,
            now_ms=self.now_ms,
            csrf=self.site.sessions.token(self.session),
            **given,
        )
        return Response(text, status, media_type="text/html", headers={"cache-control": "no-store"})
