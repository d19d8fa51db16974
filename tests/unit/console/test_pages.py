"""Every page is made of answers that are written by hand: it says what they say, under a strict
policy, and offers what the caller may do.
"""

from __future__ import annotations

from typing import Any

import pytest

from facade.programs.console.web.guard import POLICY
from tests.unit.cli.service import Service
from tests.unit.console.answers import (
    ALERT,
    AUDIT,
    DEAD,
    EVENT,
    GRANTS,
    HISTORY,
    KEY,
    LETTERS,
    LIFE,
    PAGE,
    ROW,
    TASK,
    TRANSACTION,
    USER,
)
from tests.unit.console.conftest import ALL, AT, EVIL, MESSAGE, READER, Browser, lets, queue

# Path, what the service answers beside the usual, and what the page says then.
PAGES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("/", {}, ["orders", "1,234,567", "All is well"]),
    ("/queues", {}, ["1,234,567", "/queue/orders"]),
    ("/queues?prefix=or&sort=oldest", {}, ["New queue"]),
    ("/dead-letters", {}, ["/queue/orders"]),
    ("/new-queue", {}, ["lease seconds"]),
    ("/queue/orders", {}, ["audit", "Purge ..."]),
    ("/live/queue/orders", {}, ['hx-get="/live/queue/orders"']),
    ("/live/overview", {}, ['hx-get="/live/overview"']),
    ("/live/queues?sort=oldest", {}, ["sort=oldest"]),
    (
        "/chart/queue/orders",
        {"GET /v1/queues/orders/metrics": {"metric": "x", "points": [{"at_ms": AT, "value": 5.0}]}},
        [f'data-at="{AT // 1000}"', "Show numbers"],
    ),
    (
        "/queue/orders/messages?text=x",
        {"GET /v1/queues/orders/messages": PAGE},
        ["&lt;script&gt;", "next=more", "1,200 record(s) read", "its bound of records"],
    ),
    (
        f"/queue/orders/messages/{MESSAGE['id']}",
        {f"GET /v1/queues/orders/messages/{MESSAGE['id']}": MESSAGE},
        ["&lt;script&gt;", "partition 1, offset 9", "Delete this one message"],
    ),
    ("/queue/orders/send", {}, ["Attributes"]),
    ("/queue/orders/letters", {"GET /v1/queues/orders/messages": PAGE}, ["Send the chosen ones back"]),
    (
        "/queue/orders/letters?x",
        {"GET /v1/queues/orders/messages": {**PAGE, "messages": [DEAD]}},
        ["killed: bad address &lt;script&gt;", "Dry run of all"],
    ),
    (
        f"/queue/orders/messages/{MESSAGE['id']}?dead",
        {f"GET /v1/queues/orders/messages/{MESSAGE['id']}": DEAD},
        ["bad address &lt;script&gt;", "What happened to it"],
    ),
    (
        f"/queue/orders/messages/{MESSAGE['id']}/life",
        {f"GET /v1/queues/orders/messages/{MESSAGE['id']}/events": LIFE},
        ["1,234 record(s) of the journal", "11:07:10", "/queue/orders-2/messages/bbbbbbbb", "is not all here"],
    ),
    (
        "/queue/orders/history?span=hour",
        {"GET /v1/queues/orders/history": HISTORY},
        ["Done in each 10 s", 'data-chart="numbers-in"', f'data-at="{AT // 1000}"', '<td class="n">440</td>'],
    ),
    ("/live/queue/orders/history?span=day", {"GET /v1/queues/orders/history": HISTORY}, ["history?span=day"]),
    ("/queue/orders/tags/audit", {}, ["Let nobody receive under the tag", "Seek the tag audit", "Delete ..."]),
    ("/queue/orders/settings", {}, ["lease seconds", 'value="30"']),
    ("/queue/orders/purge", {}, ["<strong>10</strong> open message(s)", "Type the name, orders"]),
    ("/queue/orders/delete", {}, ["<strong>10</strong> open message(s)"]),
    ("/queue/orders/tags/audit/delete", {}, ["<strong>3</strong> open message(s)"]),
    (
        "/queue/orders/parked",
        {
            "GET /v1/queues/orders/parked": {
                "groups": [
                    {
                        "group": "g1", "message_id": MESSAGE["id"], "partition": 0, "offset": 0, "receive_count": 5,
                        "first_received_at_ms": AT, "expires_at_ms": None, "held": 8,
                    }
                ],
                "next": None,
            }
        },
        ["g1", "Receive it again"],
    ),
    ("/tasks", {"GET /v1/tasks": {"tasks": [TASK], "next": "more"}}, ["where they came from", "next=more"]),
    ("/live/tasks?status=running", {"GET /v1/tasks": {"tasks": [], "next": None}}, ["No task.", "status=running"]),
    (
        "/tasks/" + "0" * 16 + "/outcomes",
        {
            "GET /v1/tasks/" + "0" * 16: TASK,
            "GET /v1/tasks/" + "0" * 16 + "/outcomes": {"letters": LETTERS, "next": "more", "complete": False},
        },
        ["next=more", "/queue/orders-2/messages/bbbbbbbb", "leased", "10,000"],
    ),
    (
        "/audit?verb=purge&from=2026-11-18T11:06:40",
        {"GET /v1/audit": AUDIT},
        ["10.0.0.1", "refused", "not authorised", "3 before it", "its bound of records", "cursor=17", "verb=purge"],
    ),
    ("/definitions", {}, ["Export as JSON", "Show what differs"]),
    ("/tasks/" + "0" * 16, {"GET /v1/tasks/" + "0" * 16: TASK}, ["4 of 10", "Cancel the task"]),
    ("/queue/orders/transactions", {"GET /v1/queues/orders/transactions": {"transactions": [TRANSACTION]}}, ["shops"]),
    ("/transactions/" + "1" * 32, {"GET /v1/transactions/" + "1" * 32: TRANSACTION}, ["Commit: send its messages"]),
    ("/queue/orders/access", {"GET /v1/queues/orders/grants": GRANTS}, ["eve"]),
    ("/keys", {"GET /v1/keys": {"keys": [KEY]}}, ["anna-1", "New key"]),
    ("/users/anna", {"GET /v1/users/anna": USER}, ["Anna"]),
    (
        "/queue/orders/alerts",
        {
            "GET /v1/queues/orders/alerts": {"alerts": [ALERT]},
            "GET /v1/queues/orders/alerts/history": {"events": [EVENT]},
        },
        ["fires since", "Watch something"],
    ),
    (
        "/queue/orders/statistics?day=2026-01-31",
        {"GET /v1/queues/orders/statistics": {"queue": "orders", "day": "2026-01-31", "complete": True, "rows": [ROW]}},
        ["send request", "final"],
    ),
    ("/health", {}, ["kafka", "retention near"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "answers", "words"), PAGES, ids=[path for path, *_ in PAGES])
async def test_a_page_shows_what_the_service_says(
    path: str, answers: dict[str, Any], words: list[str], service: Service, browser: Browser
) -> None:
    for request, answer in answers.items():
        service.on(request, (200, answer))

    shown = await browser.get(path)

    assert shown.status_code == 200, shown.text
    assert [word for word in words if word not in shown.text] == []
    assert EVIL not in shown.text
    assert shown.headers["content-security-policy"] == POLICY
    assert shown.headers["cache-control"] == "no-store"
    # Each number says when it was true; a form has none.
    if path not in ("/new-queue", "/queue/orders/send", "/definitions"):
        assert "as of" in shown.text.lower()


async def test_a_secret_of_a_webhook_is_on_no_page(service: Service, browser: Browser) -> None:
    service.on("GET /v1/users/anna", (200, USER))

    assert "s3cr3t" not in (await browser.get("/users/anna")).text


@pytest.mark.parametrize(
    ("path", "verbs", "words"),
    [
        (
            "/queue/orders",
            ("purge", "delete_queue", "create_tag", "delete_tag", "copy_queue"),
            ("Purge ...", "Delete ...", "New tag", "Copy the queue"),
        ),
        ("/queue/orders/settings", ("set_queue", "set_redrive_policy"), ("<button>Change", "Set the policy")),
        ("/queue/orders/access", ("grant",), ("Give a level", "Take it away")),
        ("/queue/orders/alerts", ("add_alert", "delete_alert"), ("Watch something", "Take it away")),
        ("/queue/orders/purge", ("purge",), ("Type the name",)),
        (
            "/queue/orders/tags/audit",
            ("pause", "seek", "delete_tag", "query"),
            ("Let nobody", "Seek the tag", "Delete ...", ">Messages<"),
        ),
        ("/definitions", (), ("Show what differs",)),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
async def test_what_a_right_does_not_allow_is_not_offered(
    path: str, verbs: tuple[str, ...], words: tuple[str, ...], service: Service, browser: Browser
) -> None:
    service.on("GET /v1/queues/orders/alerts", (200, {"alerts": [ALERT]}))
    service.on("GET /v1/queues/orders/alerts/history", (200, {"events": []}))
    service.on("GET /v1/queues/orders/grants", (200, GRANTS))
    lets(service, [verb for verb in ALL if verb not in verbs], ["list_queues"], "reader")

    text = (await browser.get(path)).text

    assert [word for word in words if word in text] == []
    assert "New queue" not in text and ">Keys<" not in text and ">Audit<" not in text


async def test_a_reader_sees_no_way_to_messages(service: Service, browser: Browser) -> None:
    lets(service, READER, ["list_queues"], "reader")

    text = (await browser.get("/queue/orders")).text

    assert "/queue/orders/statistics" in text
    for part in ("messages", "send", "letters", "transactions", "access"):
        assert f"/queue/orders/{part}" not in text


async def test_what_the_service_refuses_is_shown_as_it_says_it_and_what_was_typed_stays(
    service: Service, browser: Browser
) -> None:
    problem = {"code": "invalid_value", "title": "no", "detail": "lease_seconds must be 0 to 43200, given 99999"}
    service.on("PATCH /v1/queues/orders", (422, problem))
    await browser.get("/queue/orders/settings")

    shown = await browser.post("/queue/orders/settings", lease_seconds="99999")

    assert shown.status_code == 422
    assert "lease_seconds must be 0 to 43200, given 99999" in shown.text
    assert 'value="99999"' in shown.text


async def test_what_cannot_be_undone_wants_the_name(service: Service, browser: Browser) -> None:
    service.on("DELETE /v1/queues/orders", (204, None))
    await browser.get("/queue/orders/delete")

    refused = await browser.post("/queue/orders/delete", typed="order")
    assert refused.status_code == 422 and "nothing was changed" in refused.text
    assert ("DELETE", "/v1/queues/orders", None) not in service.asked

    done = await browser.post("/queue/orders/delete", typed="orders")
    assert (done.status_code, done.headers["location"]) == (303, "/queues?done=deleted")
    assert ("DELETE", "/v1/queues/orders", None) in service.asked


async def test_only_settings_that_differ_are_changed(service: Service, browser: Browser) -> None:
    service.on("PATCH /v1/queues/orders", (200, queue()))
    await browser.get("/queue/orders/settings")
    fields = {"lease_seconds": "60", "delay_seconds": "0", "durable_acks": "yes", "retention_seconds": "345600"}

    await browser.post("/queue/orders/settings", **fields)

    assert ("PATCH", "/v1/queues/orders", {"lease_seconds": 60, "durable_acks": True}) in service.asked


async def test_lines_are_sent_as_one_batch(service: Service, browser: Browser) -> None:
    service.on("POST /v1/queues/orders/messages", (200, {"messages": [{"id": "a"}, {"id": "b"}]}))
    await browser.get("/queue/orders/send")

    sent = await browser.post("/queue/orders/send", body="one\r\ntwo\r\n", lines="yes", attributes="kind=retail")

    assert sent.status_code == 303
    both = [{"attributes": {"kind": "retail"}, "body": body} for body in ("one", "two")]
    assert service.asked[-1] == ("POST", "/v1/queues/orders/messages", {"messages": both})


async def test_chosen_letters_are_sent_back_by_a_task(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders/messages", (200, PAGE))
    service.on("POST /v1/queues/orders/redrive", (202, TASK))
    await browser.get("/queue/orders/letters")

    none = await browser.post("/queue/orders/letters", which="chosen")
    assert none.status_code == 422 and "nothing was moved" in none.text
    started = await browser.post("/queue/orders/letters", which="chosen", id=["a", "b"], rate="50")

    assert started.headers["location"] == "/tasks/" + "0" * 16
    assert service.asked[-1][2] == {"rate": 50, "ids": ["a", "b"]}


async def test_a_task_that_has_ended_asks_no_more(service: Service, browser: Browser) -> None:
    service.on("GET /v1/tasks/" + "0" * 16, (200, {**TASK, "status": "completed"}))

    text = (await browser.get("/tasks/" + "0" * 16)).text

    assert "hx-get" not in text and "Cancel" not in text


async def test_a_service_that_is_away_is_said_and_asked_again(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues", (503, {"code": "store_unavailable", "title": "x", "detail": "Redis does not answer."}))

    page = await browser.get("/queues")
    assert page.status_code == 503 and "Redis does not answer" in page.text
    assert '<meta http-equiv="refresh" content="3">' in page.text

    part = await browser.get("/live/queues")
    assert part.status_code == 200 and "Redis does not answer" in part.text
    assert (part.headers["hx-retarget"], part.headers["hx-reswap"]) == ("#notice", "innerHTML")


async def test_a_page_that_is_not_there_is_said(browser: Browser, service: Service) -> None:
    assert (await browser.get("/nothing")).status_code == 404
    problem = {"code": "queue_not_found", "title": "x", "detail": "there is no queue 'gone'"}
    service.on("GET /v1/queues/gone", (404, problem))
    service.on("GET /v1/queues/gone/rights", (404, problem))
    missing = await browser.get("/queue/gone")
    assert missing.status_code == 404 and "there is no queue &#39;gone&#39;" in missing.text
    assert '<nav aria-label="Main">' in missing.text and 'href="/keys"' in missing.text
    assert "http-equiv" not in missing.text


async def test_a_switch_that_is_taken_back_is_off_and_others_are_not_named(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders", (200, queue(durable_acks=True, content_dedup=True, fifo=True)))
    service.on("PATCH /v1/queues/orders", (200, queue()))
    await browser.get("/queue/orders/settings")

    await browser.post("/queue/orders/settings", content_dedup="yes")

    assert ("PATCH", "/v1/queues/orders", {"durable_acks": False}) in service.asked


async def test_a_queue_is_paused_with_a_reason_and_resumed(service: Service, browser: Browser) -> None:
    lets(service, [*ALL, "pause", "resume"], [])
    for verb in ("pause", "resume"):
        service.on(f"POST /v1/queues/orders/{verb}", (200, {}))
    assert ">Pause<" in (await browser.get("/queue/orders")).text
    await browser.post("/queue/orders/pause", what="pause", reason="the shop moves")
    assert service.asked[-1] == ("POST", "/v1/queues/orders/pause", {"reason": "the shop moves"})

    service.on("GET /v1/queues/orders", (200, queue(paused={"at_ms": AT, "by": "anna", "reason": "the shop moves"})))
    text = (await browser.get("/queue/orders")).text
    assert (
        "Paused since 2026-11-18 11:06:40 UTC by anna: the shop moves. Nobody receives." in text
        and ">Pause<" not in text
    )
    await browser.post("/queue/orders/pause", what="resume")
    assert service.asked[-1][:2] == ("POST", "/v1/queues/orders/resume")


FORBIDDEN = (403, {"code": "not_authorised", "title": "no", "detail": "principal 'anna' may not get_queue 'orders'"})


async def test_who_may_only_send_is_shown_that_and_can_do_it(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders", FORBIDDEN)
    service.on("POST /v1/queues/orders/messages", (200, {"messages": [{"id": MESSAGE["id"]}]}))
    lets(service, ["send", "receive"], [], "member")

    page = await browser.get("/queue/orders")
    assert page.status_code == 200 and "What you may do with it: receive, send." in page.text
    assert "/queue/orders/send" in page.text
    assert not [part for part in ("settings", "letters", "alerts", "purge", "access") if f"orders/{part}" in page.text]
    assert (await browser.get("/queue/orders/send")).status_code == 200
    sent = await browser.post("/queue/orders/send", body="x")

    # Not to the message, which they may not look at.
    assert (sent.status_code, sent.headers["location"]) == (303, "/queue/orders/send?done=sent")


async def test_who_has_rights_on_a_tag_finds_its_messages(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders", FORBIDDEN)
    service.on("GET /v1/queues/orders/messages", (200, PAGE))
    service.on(f"GET /v1/queues/orders/messages/{MESSAGE['id']}", (200, MESSAGE))
    lets(service, [], [], "member")

    assert "rights on messages of one of its tags" in (await browser.get("/queue/orders")).text
    listed = await browser.get("/queue/orders/messages?tag=audit")
    assert listed.status_code == 200 and 'name="tag" value="audit"' in listed.text
    one = await browser.get(f"/queue/orders/messages/{MESSAGE['id']}?tag=audit")
    assert one.status_code == 200 and "under tag audit" in one.text and "Delete this one" not in one.text


async def test_a_refused_form_keeps_a_switch_that_was_turned_off(service: Service, browser: Browser) -> None:
    service.on("GET /v1/queues/orders", (200, queue(durable_acks=True)))
    problem = (422, {"code": "invalid_value", "title": "no", "detail": "lease_seconds must be 0 to 43200, given 99999"})
    service.on("PATCH /v1/queues/orders", problem)
    service.on("PUT /v1/queues/orders/redrive-policy", problem)
    on = 'name="durable_acks" value="yes" checked'
    assert on in (await browser.get("/queue/orders/settings")).text

    refused = await browser.post("/queue/orders/settings", lease_seconds="99999")
    assert refused.status_code == 422 and on not in refused.text

    # The form beside it names no setting.
    other = await browser.post("/queue/orders/redrive-policy", dead_letter_queue="d", max_receive_count="3")
    assert other.status_code == 422 and on in other.text and 'value="30"' in other.text
