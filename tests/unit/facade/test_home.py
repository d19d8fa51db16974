"""The page at `/`: where the console is."""

from __future__ import annotations

import httpx

from facade.dialects.native.reference.page import home_of


async def test_the_page_at_the_root_says_that_no_console_is_known(client: httpx.AsyncClient) -> None:
    answer = await client.get("/")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "No console is known here" in answer.text and "http-equiv" not in answer.text
    assert "href=/docs" in answer.text


def test_it_leads_browsers_to_the_console() -> None:
    text = home_of("https://console.example.org/?a=1&b=2").decode()

    assert '<meta http-equiv=refresh content="0;url=https://console.example.org/?a=1&amp;b=2">' in text
    assert '<a href="https://console.example.org/?a=1&amp;b=2">' in text
