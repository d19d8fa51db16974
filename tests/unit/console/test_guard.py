"""Who may make the console do something: sessions, tokens of forms, names of hosts."""

from __future__ import annotations

import re

import pytest

from facade.programs.console.order import Order
from tests.unit.cli.service import Service
from tests.unit.console.conftest import Browser, client_of, lets

KEY = "a key of sixteen letters"
UNKNOWN = (401, {"code": "not_authenticated", "title": "x", "detail": "this service needs credentials"})


def required(service: Service) -> None:
    """As a service that wants a key."""
    service.on("GET /v1/rights", UNKNOWN)


@pytest.mark.parametrize(
    ("field", "headers"),
    [
        ("", {}),
        ("00" * 32, {}),
        ("not hex", {}),
        (None, {"sec-fetch-site": "cross-site"}),
        (None, {"sec-fetch-site": "same-site"}),
        (None, {"origin": "http://elsewhere.example"}),
        (None, {"cookie": ""}),
    ],
)
async def test_a_form_that_is_not_ours_does_nothing(
    field: str | None, headers: dict[str, str], service: Service, browser: Browser
) -> None:
    await browser.get("/queue/orders/purge")
    service.asked.clear()
    token = browser.token if field is None else field

    answer = await browser.client.post("/queue/orders/purge", data={"csrf": token, "typed": "orders"}, headers=headers)

    assert answer.status_code == 403
    assert "nothing was done" in answer.text
    assert service.asked == []


async def test_a_token_of_another_session_does_nothing(service: Service, browser: Browser) -> None:
    await browser.get("/queue/orders/purge")
    async with client_of(Order(service.endpoint, key=KEY)) as other:
        theirs = Browser(other)
        await theirs.get("/queue/orders/purge")
        theirs.text = browser.text

        assert (await theirs.post("/queue/orders/purge", typed="orders")).status_code == 403


async def test_another_console_of_the_same_key_goes_on_with_a_page(service: Service, browser: Browser) -> None:
    """So does the same console after it was killed."""
    service.on("POST /v1/queues/orders/purge", (204, None))
    await browser.get("/queue/orders/purge")
    async with client_of(Order(service.endpoint, key=KEY)) as again:
        again.cookies = browser.client.cookies
        after = Browser(again)
        after.text = browser.text

        assert (await after.post("/queue/orders/purge", typed="orders")).status_code == 303


@pytest.mark.parametrize(("host", "status"), [
    ("127.0.0.1:9480", 200), ("localhost", 200), ("[::1]:9480", 200), ("queues.example", 200),
    ("QUEUES.example.:1", 200),
    ("elsewhere.example", 421), ("127.0.0.1.elsewhere.example", 421), ("", 421), ("[", 421),
])  # fmt: skip
async def test_only_names_that_are_known_are_answered(host: str, status: int, service: Service) -> None:
    async with client_of(Order(service.endpoint, hosts=("queues.example",))) as client:
        answer = await client.get("/live", headers={"host": host})

    assert answer.status_code == status
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_who_is_not_signed_in_is_asked_for_a_key(service: Service, browser: Browser) -> None:
    required(service)
    service.on("GET /v1/queues", UNKNOWN)

    page = await browser.get("/queues?prefix=a%26b")
    assert (page.status_code, page.headers["location"]) == (303, "/sign-in?next=%2Fqueues%3Fprefix%3Da%2526b")
    part = await browser.get("/live/queues")
    assert (part.status_code, part.headers["hx-refresh"]) == (200, "true")


async def test_signing_in_keeps_the_secret_out_of_everything_but_a_sealed_cookie(
    service: Service, browser: Browser
) -> None:
    required(service)
    await browser.get("/sign-in?next=/queues")
    wrong = await browser.post("/sign-in", key_id="anna-1", key_secret="wrong-secret-of-anna", next="/queues")
    assert wrong.status_code == 401 and "this service needs credentials" in wrong.text
    assert "wrong-secret" not in wrong.text

    lets(service, [], [])
    done = await browser.post("/sign-in", key_id="anna-1", key_secret="s3cr3t-of-anna", next="/queues")

    assert (done.status_code, done.headers["location"]) == (303, "/queues")
    (cookie,) = done.headers.get_list("set-cookie")
    assert re.search(r"; HttpOnly; Path=/; SameSite=strict$", cookie, re.IGNORECASE)
    assert "s3cr3t" not in cookie
    await browser.get("/queues")
    assert service.headers[-1]["authorization"] == "Basic YW5uYS0xOnMzY3IzdC1vZi1hbm5h"
    assert "s3cr3t" not in browser.text


@pytest.mark.parametrize("to", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", ""])
async def test_a_sign_in_leads_to_no_other_site(to: str, service: Service, browser: Browser) -> None:
    await browser.get("/sign-in")

    done = await browser.post("/sign-in", key_id="a", key_secret="b", next=to)

    assert done.headers["location"] == "/"


async def test_a_session_that_was_ended_is_none_also_for_a_copy_of_its_cookie(
    service: Service, browser: Browser
) -> None:
    await browser.get("/sign-in")
    await browser.post("/sign-in", key_id="anna-1", key_secret="secret")
    copied = dict(browser.client.cookies)
    await browser.get("/queues")
    await browser.post("/sign-out")
    assert not browser.client.cookies

    browser.client.cookies.update(copied)
    await browser.get("/queues")

    assert "authorization" not in service.headers[-1]


async def test_a_secure_console_has_a_cookie_for_https_alone(service: Service) -> None:
    async with client_of(Order(service.endpoint, is_behind_https=True)) as client:
        answer = await client.get("/queues")

    assert answer.headers["set-cookie"].startswith("__Host-leaseway_console_9480=")
    assert "; Secure" in answer.headers["set-cookie"]


async def test_elsewhere_than_on_this_machine_an_open_service_is_not_opened(service: Service) -> None:
    async with client_of(Order(service.endpoint, host="0.0.0.0", key=KEY)) as client:
        browser = Browser(client)
        assert (await browser.get("/queues")).status_code == 303
        await browser.get("/sign-in")
        service.asked.clear()

        refused = await browser.post("/sign-in", key_id="a", key_secret="b")

        assert refused.status_code == 422 and "an address of this machine alone" in refused.text
        assert (await browser.get("/queues")).status_code == 303
        assert [asked for asked in service.asked if asked[1].startswith("/v1/queues")] == []


async def test_a_form_has_a_bound(browser: Browser) -> None:
    await browser.get("/queue/orders/send")

    answer = await browser.post("/queue/orders/send", body="x" * (7 * 1024 * 1024))

    assert answer.status_code == 413
