"""Routes of three kinds: pages, parts of pages that ask again by themselves, and acts of forms.

All speak to the service in a thread. What the service refuses is shown as it says it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from facade.programs.connect.failures import Failure, Refused, Unreachable
from facade.programs.console.web.guard import SITE, is_own
from facade.programs.console.web.pages import address
from facade.programs.console.web.sessions import Session
from facade.programs.console.web.visit import Form, Site, Visit, status_of

MOST_FORM: Final = 6 * 1024 * 1024
MOST_FIELDS: Final = 11_000
Handler = Callable[[Visit], Response]
SIGN_IN: Final = "/sign-in"


def page(path: str, handler: Handler) -> Route:
    """A page; without a session that is good, the sign-in."""

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_served, request, handler, {}, _page_failed)

    return Route(path, endpoint, methods=["GET"])


def live(path: str, handler: Handler) -> Route:
    """A part of a page, for htmx; a failure goes to the notice of the page, which keeps what it
    shows.
    """

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_served, request, handler, {}, _live_failed)

    return Route(path, endpoint, methods=["GET"])


def act(path: str, handler: Handler, again: Handler) -> Route:
    """What a form asks for. When it is refused, `again` shows the page of the form once more."""

    async def endpoint(request: Request) -> Response:
        form = await form_of(request)
        return (
            form
            if isinstance(form, Response)
            else await run_in_threadpool(_served, request, handler, form, _acted(again))
        )

    return Route(path, endpoint, methods=["POST"])


def site_of(request: Request) -> Site:
    """What all requests share."""
    site: Site = request.scope[SITE]
    return site


def cookie_name(site: Site) -> str:
    """Cookies know no port, so the name has it."""
    return f"{'__Host-' if site.order.is_secure else ''}leaseway_console_{site.order.port}"


def session_of(request: Request) -> Session | None:
    """The session of a browser, if it has one."""
    site = site_of(request)
    return site.sessions.read(request.cookies.get(cookie_name(site), ""))


def with_session(site: Site, response: Response, session: Session) -> Response:
    """The answer with the cookie of a session. It ends with the browser."""
    response.set_cookie(
        cookie_name(site),
        site.sessions.sealed(session),
        path="/",
        secure=site.order.is_secure,
        httponly=True,
        samesite="strict",
    )
    return response


Failed = Callable[[Visit, Failure], Response]


def _served(request: Request, handler: Handler, form: Form, failed: Failed) -> Response:
    site, session = site_of(request), session_of(request)
    is_new = session is None
    # What others can reach asks nothing of the service for who has not signed in: it may be open.
    if not site.order.is_local and (session is None or not session.key_id):
        return _signing_in(request, is_part=failed is _live_failed)
    if session is None:
        session = site.sessions.begin()
    with site.calls.client(session.key_id, session.key_secret) as client:
        visit = Visit(site, request, session, client, form)
        try:
            response = handler(visit)
        except Failure as failure:
            if isinstance(failure, Refused) and failure.status == 401:
                return _signing_in(request, is_part=failed is _live_failed)
            response = failed(visit, failure)
    # What asks again by itself is no use: a page that nobody looks at ends with its session.
    if is_new or (failed is not _live_failed and site.sessions.should_touch(session)):
        with_session(site, response, session)
    return response


def _signing_in(request: Request, *, is_part: bool) -> Response:
    if is_part:
        return Response(status_code=200, headers={"hx-refresh": "true", "cache-control": "no-store"})
    next_ = request.url.path if request.method == "GET" else ""
    query = request.url.query
    return RedirectResponse(address(SIGN_IN, next=f"{next_}?{query}" if next_ and query else next_), 303)


def _page_failed(visit: Visit, failure: Failure) -> Response:
    status = status_of(failure)
    is_passing = isinstance(failure, Unreachable) or status >= 500
    text = visit.site.pages.render(
        "failed.html",
        me=None if is_passing else _who(visit),
        visit=visit,
        here=visit.request.url.path,
        csrf=visit.site.sessions.token(visit.session),
        problem=failure,
        done="",
        now_ms=0,
        passing=is_passing,
    )
    return Response(text, status, media_type="text/html", headers={"cache-control": "no-store"})


def _who(visit: Visit) -> Mapping[str, object] | None:
    """Who asks, for the navigation of a page of a refusal; None = the service does not say that
    either.
    """
    try:
        return visit.me
    except Failure:
        return None


def _live_failed(visit: Visit, failure: Failure) -> Response:
    text = visit.site.pages.render("parts/notice.html", failure=failure)
    headers = {"hx-retarget": "#notice", "hx-reswap": "innerHTML", "cache-control": "no-store"}
    return Response(text, media_type="text/html", headers=headers)


def _acted(again: Handler) -> Failed:
    def failed(visit: Visit, failure: Failure) -> Response:
        try:
            return again(visit.refused(failure))
        except Failure:
            return _page_failed(visit, failure)

    return failed


async def form_of(request: Request) -> Form | Response:
    """The fields of a form of ours; an answer that says why it is none."""
    if not is_own(request):
        return _refused("This came from a page of another site, so nothing was done.")
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > MOST_FORM:
                return _refused(f"A form has at most {MOST_FORM} bytes; nothing was done.", 413)
    except ClientDisconnect:
        return Response(status_code=400)
    try:
        form: Mapping[str, list[str]] = parse_qs(
            body.decode(),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        return _refused("This is no form, so nothing was done.", 400)
    session = session_of(request)
    if session is None or not site_of(request).sessions.fits(session, form.get("csrf", [""])[0]):
        return _refused(
            "This form is of a session that has ended, so nothing was done. Go back, load the page again, "
            "and repeat it."
        )
    return form


def _refused(why: str, status: int = 403) -> Response:
    return Response(f"{why}\n", status, media_type="text/plain", headers={"cache-control": "no-store"})
