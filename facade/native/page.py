"""The document for people and programs: /openapi.json, and /docs, a page without scripts that needs no network.

Neighbours: `openapi` makes the document; problems' `type` points into this page. This module must not know any operation.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from facade.operation import Answer, Call, Example, Operation
from facade.problem import CODES

if TYPE_CHECKING:
    from engine.engine import Engine

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}"
    "code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f4f2;padding:.7rem;overflow:auto}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;padding:.25rem .6rem .25rem 0;text-align:left;"
    "vertical-align:top}summary{cursor:pointer;padding:.3rem 0}b.m{display:inline-block;width:4.5rem}"
)
# The page has no script and loads nothing; a browser is told to hold it to that.
_HEADERS = (("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"), ("x-content-type-options", "nosniff"))


def _pretty(value: Any) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    parts = [f"<details id='{escape(operation['operationId'])}'><summary><b class=m>{method.upper()}</b>"]
    parts.append(f"<code>{escape(path)}</code> {escape(operation['summary'])}</summary>")
    if operation["parameters"]:
        rows = "".join(
            f"<tr><td><code>{escape(p['name'])}</code><td>{p['in']}<td>{escape(p.get('description', ''))}" for p in operation["parameters"]
        )
        parts.append(f"<table><tr><th>parameter<th>in<th>{rows}</table>")
    if body := operation.get("requestBody"):
        parts.append(f"<p>Request<pre>{_pretty(body['content']['application/json']['example'])}</pre>")
    for status, response in operation["responses"].items():
        for media in response.get("content", {}).values():
            if "example" in media:
                parts.append(f"<p>{status}: {escape(response['description'])}<pre>{_pretty(media['example'])}</pre>")
            else:
                links = ", ".join(f"<a href='#{escape(code)}'>{escape(code)}</a>" for code in media["examples"])
                parts.append(f"<p>{status}: {links}")
        if "content" not in response:
            parts.append(f"<p>{status}: no body")
    return "".join(parts) + "</details>"


def page_of(document: dict[str, Any]) -> bytes:
    """The HTML page that shows `document` and every problem code."""
    groups: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups[operation["tags"][0]].append(_section(path, method, operation))
    sections = "".join(f"<h2>{escape(name)}</h2>{''.join(parts)}" for name, parts in groups.items())
    rows = "".join(
        f"<tr id='{escape(code)}'><td><code>{escape(code)}</code><td>{row.status}<td>{escape(row.title)}" for code, row in CODES.items()
    )
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>Leaseway API</title><style>{_STYLE}</style>"
    intro = f"<h1>Leaseway API</h1><p>{escape(document['info']['description'])} <a href='/openapi.json'>openapi.json</a>"
    return f"{head}{intro}{sections}<h2>Problems</h2><table><tr><th>code<th>status<th>{rows}</table></html>".encode()


def documents(document: dict[str, Any]) -> tuple[Operation, ...]:
    """GET /openapi.json and /docs, encoded once."""
    text, page = msgspec.json.encode(document), page_of(document)

    async def openapi(engine: Engine, call: Call) -> Answer:
        return Answer(text)

    async def docs(engine: Engine, call: Call) -> Answer:
        return Answer(page, headers=_HEADERS, media_type="text/html; charset=utf-8")

    def get(name: str, path: str, summary: str, run: Any) -> Operation:
        return Operation(
            name=name,
            method="GET",
            path=path,
            group="Documents",
            summary=summary,
            run=run,
            replies={},
            example=Example(),
            anonymous=True,
        )

    return (
        get("openapi", "/openapi.json", "The OpenAPI document", openapi),
        get("docs", "/docs", "The document for people", docs),
    )
