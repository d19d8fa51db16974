"""What people do with a tag, dead letters and definitions, and the history of a queue."""

from __future__ import annotations

import re
from typing import Any

from tests.unit.cli.service import Service
from tests.unit.console.answers import (
    HISTORY,
    PAGE,
    PAUSED,
    PREVIEW,
)
from tests.unit.console.conftest import AT, MESSAGE, TAG, Browser, queue


def last(service: Service) -> Any:
    """What was asked last: method, path, body."""
    return service.asked[-1]


async def test_a_history_has_what_was_done_between_two_times_over_all_tags(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders/history", (200, HISTORY))

    text = (await browser.get("/live/queue/orders/history")).text
    new = {
        **HISTORY,
        **{name: [None, *HISTORY[name][1:]] for name in ("ready", "delayed", "leased", "parked", "stored")},
    }
    service.on("GET /v1/queues/orders/history", (200, new))
    fresh = (await browser.get("/live/queue/orders/history")).text

    assert (fresh.count("<td data-at"), text.count("<td data-at")) == (1, 5)
    rows = re.findall(r"<tr><td data-at[^>]*>[^<]*</td>(.*?)</tr>", text)
    cells = [re.findall(r">([^<]*)</td>", row) for row in rows]
    # In it: ready, delayed, leased, parked, stored; done: sent, received, redelivered, acked, dead.
    assert cells == [
        ["4", "0", "0", "0", "0"], ["-", "-", "-", "-", "-"], ["7", "0", "2", "0", "0"],
        ["440", "20", "0", "-", "0"], ["10", "6", "0", "8", "0"],
    ]  # fmt: skip


async def test_a_tag_is_paused_by_itself_and_sought_by_its_name(service: Service, browser: Browser) -> None:
    for verb in ("pause", "resume", "seek"):
        service.on(f"POST /v1/queues/orders/tags/audit/{verb}", (200, {}))
    await browser.get("/queue/orders/tags/audit")
    await browser.post("/queue/orders/tags/audit/pause", what="pause", reason="the shop moves")
    assert last(service) == ("POST", "/v1/queues/orders/tags/audit/pause", {"reason": "the shop moves"})

    await browser.get("/queue/orders/tags/audit")
    refused = await browser.post("/queue/orders/tags/audit/seek", to="earliest", typed="audits")
    assert refused.status_code == 422 and "nothing was changed" in refused.text
    lacking = await browser.post("/queue/orders/tags/audit/seek", to="time", at="", typed="audit")
    assert lacking.status_code == 422 and "say the time" in lacking.text
    assert not [asked for asked in service.asked if asked[1].endswith("/seek")]

    done = await browser.post("/queue/orders/tags/audit/seek", to="time", at="2026-11-18T11:06:40", typed="audit")
    assert (done.status_code, done.headers["location"]) == (303, "/queue/orders/tags/audit?done=sought")
    assert last(service) == ("POST", "/v1/queues/orders/tags/audit/seek", {"to_ms": AT})
    await browser.get("/queue/orders/tags/audit")
    await browser.post("/queue/orders/tags/audit/seek", to="latest", typed="audit")
    assert last(service)[2] == {"to": "latest"}

    service.on("GET /v1/queues/orders", (200, queue(tags=[{**TAG, "paused": PAUSED}])))
    text = (await browser.get("/queue/orders/tags/default")).text
    assert "by anna: the shop moves" in text and "Resume the tag" in text
    # It is the first reader of the queue, and stays so.
    assert "Seek the tag" not in text and "Delete ..." not in text
    assert (await browser.get("/queue/orders/tags/none")).status_code == 404


async def test_a_dry_run_moves_nothing_and_leads_to_what_it_showed(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders/messages", (200, PAGE))
    service.on("POST /v1/queues/orders/redrive/preview", (200, PREVIEW))
    await browser.get("/queue/orders/letters")

    shown = await browser.post("/queue/orders/letters", which="try_chosen", id=["a", "b"], rate="50", reason="killed")

    assert last(service)[:2] != ("POST", "/v1/queues/orders/redrive")
    assert ("POST", "/v1/queues/orders/redrive/preview", {"ids": ["a", "b"], "reason": "killed"}) in service.asked
    assert "would be moved" in shown.text and "its bound of records" in shown.text
    for field in (
        'name="id" value="a"',
        'name="id" value="b"',
        'name="rate" value="50"',
        'name="reason" value="killed"',
    ):
        assert field in shown.text


async def test_a_document_is_compared_before_it_is_applied(service: Service, browser: Browser) -> None:
    change = {
        "action": "change", "kind": "queue", "name": "orders", "queue": None, "field": "lease_seconds", "before": 30,
        "after": 60,
    }  # fmt: skip
    service.on("PUT /v1/definitions", (200, {"dry_run": True, "changes": [change]}))
    service.on("GET /v1/definitions", (200, {"version": 1, "queues": []}))
    assert "Apply:" not in (await browser.get("/definitions")).text
    broken = await browser.post("/definitions", what="diff", document="{")
    assert broken.status_code == 422 and "is no JSON, so nothing was changed" in broken.text

    shown = await browser.post("/definitions", what="diff", document='{"queues": []}')
    assert ("PUT", "/v1/definitions?dry_run=true", {"queues": []}) in service.asked
    assert "nothing was" in shown.text and "lease_seconds" in shown.text and "Apply: 1 change(s)" in shown.text
    await browser.post("/definitions", what="apply", document='{"queues": []}')
    assert ("PUT", "/v1/definitions", {"queues": []}) in service.asked

    kept = await browser.get("/definitions/export")
    assert kept.json() == {"version": 1, "queues": []} and "attachment" in kept.headers["content-disposition"]


async def test_a_masked_message_says_so_and_is_copied_as_it_is(service: Service, browser: Browser) -> None:
    masked = {**MESSAGE, "body": '{"card":"***"}', "masked": True}
    where = f"/queue/orders/messages/{MESSAGE['id']}"
    service.on(f"GET /v1/queues/orders/messages/{MESSAGE['id']}", (200, masked))
    service.on("GET /v1/queues/orders/messages", (200, {**PAGE, "messages": [masked, MESSAGE]}))
    service.on(f"POST /v1/queues/orders/messages/{MESSAGE['id']}/copy", (200, {"id": "n", "queue": "orders"}))
    for page in ("/queue/orders/messages", "/queue/orders/letters"):
        assert (await browser.get(page)).text.count("<small>masked</small>") == 1

    text = (await browser.get(where)).text
    assert "Masked: body and attributes" in text and "Send a copy ..." not in text
    done = await browser.post(where, what="copy")
    assert (done.status_code, done.headers["location"]) == (303, f"{where}?done=sent")
    assert last(service) == ("POST", f"/v1/queues/orders/messages/{MESSAGE['id']}/copy", None)

    refused = await browser.get(f"/queue/orders/send?copy={MESSAGE['id']}")
    assert refused.status_code == 422 and "a masked message can&#39;t be edited" in refused.text


async def test_a_mask_is_set_line_by_line(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders", (200, queue(mask=["card", "a.*.b"])))
    service.on("PATCH /v1/queues/orders", (200, queue()))
    text = (await browser.get("/queue/orders/settings")).text
    assert ">card\na.*.b</textarea>" in text
    fields = {"durable_acks": "", "mask": "card\n\n attribute:x "}
    await browser.post("/queue/orders/settings", **fields)
    assert last(service)[2]["mask"] == ["card", "attribute:x"]
    await browser.get("/queue/orders/settings")
    await browser.post("/queue/orders/settings", **{**fields, "mask": ""})
    assert last(service)[2]["mask"] == []
