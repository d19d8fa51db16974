"""Who may do what: grants of a queue, keys and users."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from facade.programs.connect.client import path_to
from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.console.web.pages import path
from facade.programs.console.web.serving import act, page
from facade.programs.console.web.visit import Visit
from facade.programs.console.web.words import moment
from schemas.vocabulary import Level, Role

_LEVELS: Final = tuple(level.value for level in Level if level is not Level.NONE)
_ROLES: Final = tuple(role.value for role in Role)
_BOUNDS: Final = ("read_qps", "write_qps", "queues", "partitions", "daily_bytes", "waits")


def grants(visit: Visit) -> Response:
    """Who has which level on a queue."""
    found = visit.of_queue("grants")["grants"] if "list_grants" in visit.may else []
    return visit.page("access.html", queue=visit.seen, may=visit.may, grants=found, levels=_LEVELS)


def grant(visit: Visit) -> Response:
    """Gives a principal a level, or takes it away."""
    to = path_to("queues", visit.queue, "grants", visit.given("principal"))
    if visit.given("level"):
        visit.client.call("PUT", to, {"level": visit.given("level")})
    else:
        visit.client.call("DELETE", to)
    return visit.to(path("queue", visit.queue, "access"), done="changed")


def keys(visit: Visit) -> Response:
    """All access keys, without their secrets."""
    return visit.page("keys.html", keys=visit.get("/v1/keys")["keys"], roles=_ROLES, made=None)


def _with_secret(visit: Visit, to: str, body: dict[str, Any]) -> Response:
    """The page with a new secret, which is shown this once: whatever becomes of what else is on it,
    so who asks is looked up before.
    """
    assert visit.me is not None
    made = visit.client.post(to, body)
    try:
        known = visit.get("/v1/keys")["keys"]
    except Failure:
        known = []
    return visit.page("keys.html", keys=known, roles=_ROLES, made=made)


def create_key(visit: Visit) -> Response:
    """Makes a key, and shows its secret, this once."""
    return _with_secret(
        visit,
        "/v1/keys",
        {
            "key_id": visit.given("key_id"),
            "principal": visit.given("principal"),
            "role": visit.given("role") or Role.MEMBER.value,
            "expires_at_ms": _expiry(visit.given("expires")),
        },
    )


def change_key(visit: Visit) -> Response:
    """Changes, rotates or deletes a key."""
    what, to = visit.given("what"), path_to("keys", visit.part("key"))
    if what == "rotate":
        return _with_secret(visit, f"{to}/rotate", {})
    if what == "delete":
        if visit.given("typed") != visit.part("key"):
            raise Failure(f"type the id of the key, {visit.part('key')}, to delete it; nothing was changed", WRONG_USE)
        visit.client.call("DELETE", to)
        return visit.to("/keys", done="deleted")
    change: dict[str, Any] = {"role": visit.given("role")} if what == "role" else {"disabled": what == "disable"}
    visit.client.call("PATCH", to, change)
    return visit.to("/keys", done="changed")


def user(visit: Visit) -> Response:
    """A user: contacts, bounds, and what they have."""
    return visit.page("user.html", user=visit.get(path_to("users", visit.part("user"))), bounds=_BOUNDS)


def change_user(visit: Visit) -> Response:
    """Sets contacts, or bounds."""
    to = path_to("users", visit.part("user"))
    if visit.given("what") == "quota":
        visit.client.call("PUT", f"{to}/quota", {name: _whole(name, visit.given(name) or "0") for name in _BOUNDS})
    else:
        names = ("display_name", "email", "phone", "webhook")
        visit.client.call("PUT", f"{to}/contacts", {name: visit.given(name) for name in names})
    return visit.to(path("users", visit.part("user")), done="changed")


def _expiry(text: str) -> int:
    try:
        return moment(text) or 0
    except ValueError:
        raise Failure(f"a time is YYYY-MM-DDTHH:MM:SS, given {text[:100]!r}", WRONG_USE) from None


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Failure(f"{name} is a whole number, given {text[:100]!r}", WRONG_USE)
    return int(text)


ROUTES: Final = (
    page("/queue/{queue}/access", grants),
    act("/queue/{queue}/access", grant, grants),
    page("/keys", keys),
    act("/keys", create_key, keys),
    act("/keys/{key}", change_key, keys),
    page("/users/{user}", user),
    act("/users/{user}", change_user, user),
)
