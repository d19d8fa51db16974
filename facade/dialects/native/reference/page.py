"""The document for people and programs: /openapi.json, and /docs, a page without scripts that needs
no network; and the page at `/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from facade.dialects.native.reference.fields import about_of, form_of, rows_of
from facade.http.operation import Answer, Call, Example, Operation
from facade.http.problem import CODES

if TYPE_CHECKING:
    from engine.engine import Engine

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}"
    "code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f4f2;padding:.7rem;overflow:auto}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{border-bottom:1px solid #ddd;padding:.25rem .6rem .25rem 0;text-align:left;vertical-align:top}"
    "summary{cursor:pointer;padding:.3rem 0}b.m{display:inline-block;width:4.5rem}"
    "details[open]{border-left:3px solid #ddd;padding-left:1rem;margin-bottom:1rem}"
    "details div{overflow-x:auto}h4{margin:1rem 0 .2rem}"
)
# The page has no script and loads nothing; a browser is told to hold it to that.
_HEADERS = (
    ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("x-content-type-options", "nosniff"),
)


def _pretty(value: Any) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are HTML already."""
    body = "".join("<tr><td>" + "<td>".join(cells) for cells in rows)
    return f"<div><table><tr><th>{'<th>'.join(head.split())}{body}</table></div>"


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """The fields of a body; a star marks those that must be there."""
    rows = rows_of(schema, schemas)
    cells = [(f"<code>{escape(r.name)}</code>{'*' if r.needed else ''}", escape(r.form), escape(r.about)) for r in rows]
    return _table("field is what", cells) if cells else ""


def _parameters(parameters: Sequence[dict[str, Any]], schemas: dict[str, Any]) -> str:
    rows = [
        (
            f"<code>{escape(p['name'])}</code>{'*' if p['required'] else ''}",
            p["in"],
            escape(form_of(p["schema"], schemas)),
            escape(p.get("description") or about_of(p["schema"], schemas)),
        )
        for p in parameters
    ]
    return _table("parameter in is what", rows)


def _answer(status: str, response: dict[str, Any], schemas: dict[str, Any]) -> str:
    about = escape(response["description"])
    if "content" not in response:
        return f"<h4>Answer {status}</h4><p>No body."
    (media,) = response["content"].values()
    if "example" in media:
        fields, example = _fields(media["schema"], schemas), _pretty(media["example"])
        return f"<h4>Answer {status}</h4><p>{about}{fields}<pre>{example}</pre>"
    links = ", ".join(f"<a href='#{escape(code)}'>{escape(code)}</a>" for code in media["examples"])
    return f"<p><b>{status}</b> {links}"


def _section(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    parts = [f"<details id='{escape(operation['operationId'])}'><summary><b class=m>{method.upper()}</b>"]
    parts.append(
        f"<code>{escape(path)}</code> {escape(operation['summary'])}</summary><p>{escape(operation['description'])}"
    )
    if operation["parameters"]:
        parts.append(_parameters(operation["parameters"], schemas))
    if body := operation.get("requestBody"):
        content = body["content"]["application/json"]
        about = escape(about_of(content["schema"], schemas))
        parts.append(
            f"<h4>Request</h4><p>{about}{_fields(content['schema'], schemas)}<pre>{_pretty(content['example'])}</pre>"
        )
    answers = [_answer(status, response, schemas) for status, response in operation["responses"].items()]
    return "".join((*parts, *answers, "</details>"))


def page_of(document: dict[str, Any]) -> bytes:
    """The HTML page that shows `document` and every problem code."""
    schemas = document["components"]["schemas"]
    groups: dict[str, list[str]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups[operation["tags"][0]].append(_section(path, method, operation, schemas))
    sections = "".join(f"<h2>{escape(name)}</h2>{''.join(parts)}" for name, parts in groups.items())
    rows = "".join(
        f"<tr id='{escape(code)}'><td><code>{escape(code)}</code><td>{row.status}<td>{escape(row.title)}"
        for code, row in CODES.items()
    )
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>Leaseway API</title><style>{_STYLE}</style>"
    intro = (
        f"<h1>Leaseway API</h1><p>{escape(document['info']['description'])} <a href='/openapi.json'>openapi.json</a>"
    )
    intro += "<p>A field or parameter with a star must be given, or is always there."
    return f"{head}{intro}{sections}<h2>Problems</h2><table><tr><th>code<th>status<th>{rows}</table></html>".encode()


def home_of(console_url: str) -> bytes:
    """The page at `/`: it leads browsers to the console, if there is one."""
    to = escape(console_url)
    leads = f'<meta http-equiv=refresh content="0;url={to}">' if to else ""
    console = (
        f'<p>The console is at <a href="{to}">{to}</a>.'
        if to
        else "<p>No console is known here: `leaseway console` starts one."
    )
    head = f"<!doctype html><html lang=en><meta charset=utf-8>{leads}<title>Leaseway</title><style>{_STYLE}</style>"
    return f"{head}<h1>Leaseway</h1>{console}<p>What the API has: <a href=/docs>/docs</a>.</html>\n".encode()


def documents(document: dict[str, Any], console_url: str = "") -> tuple[Operation, ...]:
    """GET /openapi.json, /docs and /, encoded once."""
    text, page, first = msgspec.json.encode(document), page_of(document), home_of(console_url)

    async def openapi(engine: Engine, call: Call) -> Answer:
        return Answer(text)

    async def docs(engine: Engine, call: Call) -> Answer:
        return Answer(page, headers=_HEADERS, media_type="text/html; charset=utf-8")

    async def home(engine: Engine, call: Call) -> Answer:
        return Answer(first, headers=_HEADERS, media_type="text/html; charset=utf-8")

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
        get("home", "/", "Where the console is", home),
    )
