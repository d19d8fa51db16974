"""Signing in and out."""

from __future__ import annotations

from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from facade.programs.connect.failures import Failure, Refused
from facade.programs.console.web.pages import DONE, address
from facade.programs.console.web.serving import SIGN_IN, cookie_name, form_of, session_of, site_of, with_session
from facade.programs.console.web.sessions import Session
from facade.programs.console.web.visit import status_of

MOST_KEY: Final = 1000


async def show(request: Request) -> Response:
    """The form of the sign-in."""
    session = session_of(request) or site_of(request).sessions.begin()
    return _shown(request, session, request.query_params.get("next", ""))


async def sign_in(request: Request) -> Response:
    """Asks the service with the key, and keeps it in the session if it is good."""
    form = await form_of(request)
    if isinstance(form, Response):
        return form
    key_id, secret, to = (form.get(name, [""])[0] for name in ("key_id", "key_secret", "next"))
    before = session_of(request)
    assert before is not None
    if not key_id or not secret or len(key_id) + len(secret) > MOST_KEY:
        return _shown(
            request,
            before,
            to,
            f"A key has an id and a secret, of {MOST_KEY} characters together at most.",
            key_id,
            422,
        )
    try:
        await run_in_threadpool(_check, request, key_id, secret)
    except Failure as failure:
        return _shown(request, before, to, str(failure), key_id, status_of(failure))
    site = site_of(request)
    site.sessions.end(before)
    # A path of ours, and no address of another site.
    to = to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"
    return with_session(site, RedirectResponse(to, 303), site.sessions.begin(key_id, secret))


async def sign_out(request: Request) -> Response:
    """Ends the session."""
    form = await form_of(request)
    if isinstance(form, Response):
        return form
    session, site = session_of(request), site_of(request)
    if session is not None:
        site.sessions.end(session)
    response = RedirectResponse(address(SIGN_IN, done="out"), 303)
    response.delete_cookie(cookie_name(site), path="/", secure=site.order.is_secure, httponly=True, samesite="strict")
    return response


def _check(request: Request, key_id: str, secret: str) -> None:
    """Raises Failure unless the service takes the key, and takes nobody without one: elsewhere
    than on this machine a console must not open an open service.
    """
    site = site_of(request)
    if not site.order.is_local:
        with site.calls.client() as client:
            try:
                client.get("/v1/rights")
            except Refused as refused:
                if refused.status != 401:
                    raise
            else:
                raise Failure(
                    "the service asks nobody for a key, so the console serves it at an address of this machine alone"
                )
    with site.calls.client(key_id, secret) as client:
        client.get("/v1/rights")


def _shown(request: Request, session: Session, to: str, why: str = "", key_id: str = "", status: int = 200) -> Response:
    site = site_of(request)
    text = site.pages.render(
        "sign_in.html",
        me=None,
        here=SIGN_IN,
        csrf=site.sessions.token(session),
        problem=why,
        done=DONE.get(request.query_params.get("done", ""), ""),
        key_id=key_id,
        next=to,
        endpoint=site.order.endpoint,
    )
    return with_session(
        site, Response(text, status, media_type="text/html", headers={"cache-control": "no-store"}), session
    )


ROUTES: Final = (
    Route(SIGN_IN, show, methods=["GET"]),
    Route(SIGN_IN, sign_in, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
)
