"""Definitions: all queues and what belongs to them as one document, and a document made true."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from facade.programs.connect.failures import WRONG_USE, Failure
from facade.programs.console.web.serving import act, page
from facade.programs.console.web.visit import Visit

_PATH: Final = "/v1/definitions"


def show(visit: Visit) -> Response:
    """The form; after a dry run what differs."""
    return _shown(visit, None)


def export(visit: Visit) -> Response:
    """The document as a file."""
    text = json.dumps(visit.get(_PATH), indent=2, ensure_ascii=False) + "\n"
    headers = {"content-disposition": 'attachment; filename="definitions.json"', "cache-control": "no-store"}
    return Response(text, media_type="application/json", headers=headers)


def put(visit: Visit) -> Response:
    """Says what of a document differs, or makes it true."""
    is_dry = visit.given("what") != "apply"
    found = visit.client.call(
        "PUT", _PATH, _document(visit.text("document")), query={"dry_run": "true" if is_dry else None}
    )
    return _shown(visit, found)


def _shown(visit: Visit, found: dict[str, Any] | None) -> Response:
    return visit.page(
        "definitions.html", found=found, may_apply="create_queue" in visit.me["may"], document=visit.text("document")
    )


def _document(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(f"the document is no JSON, so nothing was changed: {error}", WRONG_USE) from None
    if not isinstance(found, dict):
        raise Failure("the document is an object with `queues` or `users`; nothing was changed", WRONG_USE)
    return found


ROUTES: Final[tuple[Route, ...]] = (
    page("/definitions", show),
    page("/definitions/export", export),
    act("/definitions", put, show),
)
