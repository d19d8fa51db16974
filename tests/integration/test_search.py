"""Searches: by text, attributes, time and state, within bounds that are told."""

from __future__ import annotations

import pytest

from engine.engine import Engine
from engine.errors import InvalidValue
from engine.receive import browse
from engine.shapes import Page, SendEntry
from schemas.filters import Condition, Filter, Text
from schemas.records import Attribute
from schemas.records.settings import QueueSettings
from tests.integration.drive import BY, ack, receive


def entry(body: bytes, **attributes: str) -> SendEntry:
    return SendEntry(body, {name: Attribute("string", value.encode()) for name, value in attributes.items()})


async def search(
    engine: Engine,
    queue: str,
    text: str | None = None,
    *,
    any_case: bool = False,
    filter: Filter | None = None,
    span: tuple[int | None, int | None] = (None, None),
    state: str | None = None,
    limit: int = 100,
    next: str | None = None,
) -> Page:
    wanted = None if text is None else Text(text, any_case)
    return await engine.messages.query(BY, queue, None, *span, state, filter, limit, next, text=wanted)


def bodies(page: Page) -> list[bytes]:
    return [one.message.body for one in page.messages]


async def test_text_attributes_time_and_state_must_all_hold(engine: Engine, queue: str) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=1, lease_ms=60_000))
    sent = []
    for one in (
        entry("Bestellung 4711: Grüße".encode(), kind="retail", region="eu"),
        entry(b"order 4711", kind="retail", region="us"),
        entry(b"ORDER 4712", kind="retail", region="eu"),
        entry(b"order 4711 \xff", kind="retail", region="eu"),
    ):
        sent += await engine.messages.send(BY, queue, [one])
    (first, *_) = await receive(engine, queue, max=1)
    await ack(engine, queue, [first])

    assert bodies(await search(engine, queue, "4711")) == ["Bestellung 4711: Grüße".encode(), b"order 4711"]
    assert bodies(await search(engine, queue, "GRÜSSE", any_case=True)) == ["Bestellung 4711: Grüße".encode()]
    assert bodies(await search(engine, queue, "order")) == [b"order 4711"]
    assert bodies(await search(engine, queue, "order", any_case=True)) == [b"order 4711", b"ORDER 4712"]
    both = Filter([Condition("kind", "string", b"retail"), Condition("region", "string", b"eu")])
    assert bodies(await search(engine, queue, "order", any_case=True, filter=both)) == [b"ORDER 4712"]
    assert bodies(await search(engine, queue, "4711", state="settled")) == ["Bestellung 4711: Grüße".encode()]
    later = (sent[1].sent_at_ms, None)
    page = await search(engine, queue, "4711", span=later)
    assert bodies(page)[-1] == b"order 4711"
    assert page.scanned <= (3 if sent[1].sent_at_ms > sent[0].sent_at_ms else 4)
    assert bodies(await search(engine, queue, "4711", span=(None, sent[0].sent_at_ms))) == []
    whole = await search(engine, queue)
    assert (len(whole.messages), whole.scanned, whole.cut, whole.next) == (4, 4, "", None)
    for text in ("", "x" * 1001):
        with pytest.raises(InvalidValue) as refused:
            await search(engine, queue, text)
        assert (refused.value.field, refused.value.limit) == ("text", [1, 1000])


async def _all_pages(engine: Engine, queue: str, text: str, limit: int) -> tuple[list[bytes], list[str], int]:
    """What all pages have, what has cut each, and how many records were read."""
    found: list[bytes] = []
    cuts: list[str] = []
    scanned, token = 0, None
    while True:
        page = await search(engine, queue, text, limit=limit, next=token)
        found += bodies(page)
        cuts.append(page.cut)
        scanned += page.scanned
        token = page.next
        if token is None:
            return found, cuts, scanned


async def test_each_bound_cuts_a_search_which_then_goes_on_where_it_was(
    engine: Engine, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.queues.create_queue(BY, queue, QueueSettings(partitions=2))
    for start in range(0, 60, 20):
        await engine.messages.send(BY, queue, [entry(b"n%03d %s" % (n, b"x" * 1000)) for n in range(start, start + 20)])
    wanted = [b"n%03d" % n for n in range(10, 20)]
    monkeypatch.setattr(browse, "CHUNK", 7)

    async def check(cut: str, limit: int = 100) -> None:
        found, cuts, scanned = await _all_pages(engine, queue, "n01", limit)
        assert sorted(body[:4] for body in found) == wanted
        assert (scanned, cuts[-1]) == (60, "")
        assert len(cuts) > 4
        assert set(cuts[:-1]) == {cut}

    monkeypatch.setattr(browse, "LOOKED_AT", 7)
    await check("records")
    monkeypatch.setattr(browse, "LOOKED_AT", 20_000)
    monkeypatch.setattr(browse, "LOOKED_AT_BYTES", 5000)
    await check("bytes")
    monkeypatch.setattr(browse, "LOOKED_AT_BYTES", 64_000_000)
    monkeypatch.setattr(browse, "LOOKED_S", 0.0)
    await check("time")
    monkeypatch.setattr(browse, "LOOKED_S", 3.0)
    await check("", limit=2)  # full pages are not cut
