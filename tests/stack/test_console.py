"""The console in a real Chromium, before a real `leaseway up` that wants keys: what people do with
it every day, by who may do everything and by who only looks; no report of the policy of the pages,
nothing grave by axe; and it goes on by itself when it, or the service, was away.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from facade.programs.stack.processes.ports import free_port
from tests.browser import axe
from tests.browser.chromium import Page, page
from tests.browser.fetch import browser
from tests.clients import NotFetched
from tests.conftest import StartUp, absent
from tests.services import Up
from tests.stopping import stand_still

SECRET = "u8Xw-3kFq9_ZtR2mPb7L"
PHONE = 390
# What a browser says of answers that tests ask for, and of a console that was killed.
EXPECTED = ("status of 4", "ERR_", "Failed to fetch")


class Desk:
    """A person at the console."""

    def __init__(self, tab: Page, at: str) -> None:
        self.tab = tab
        self.at = at

    def open(self, path: str, **how: Any) -> None:
        self.tab.open(self.at + path, **how)

    @property
    def path(self) -> str:
        return str(self.tab.value("location.pathname + location.search"))

    @property
    def text(self) -> str:
        return str(self.tab.value("document.body.innerText"))

    def count(self, selector: str) -> int:
        return int(self.tab.value(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def fill(self, **fields: Any) -> None:
        """Types into the fields of those names."""
        for name, value in fields.items():
            self.tab.value(
                f"(() => {{ const field = document.querySelector({json.dumps(f'main [name={name}]')});"
                f" if (field.type === 'checkbox') field.checked = {json.dumps(value)};"
                f" else field.value = {json.dumps(str(value))};"
                " field.dispatchEvent(new Event('change', {bubbles: true})); })()"
            )

    def press(self, words: str) -> None:
        """Presses the button, or follows the link, of the page that has these words."""
        self.tab.follow(
            "(() => { const all = (selector) => [...document.querySelectorAll(selector)];"
            " const found = [...all('main button'), ...all('button, a')]"
            f".filter((one) => one.textContent.trim().startsWith({json.dumps(words)}));"
            f" if (found.length === 0) throw new Error('no ' + {json.dumps(words)});"
            " const form = found[0].closest('form'); if (form && !form.checkValidity()) throw new Error('not valid');"
            " found[0].click(); })()"
        )

    def sign_in(self, key_id: str, secret: str) -> None:
        self.fill(key_id=key_id, key_secret=secret)
        self.press("Sign in")

    def number(self) -> int:
        """The first number of the page of a queue: what is open under all tags."""
        return int(self.tab.value("document.querySelector('.figures dd').textContent.replaceAll(',', '')"))

    def until(self, holds: Callable[[], bool], seconds: float = 30.0) -> float:
        """Waits until something holds; how many seconds that took."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < seconds, self.text
            time.sleep(0.05)
        return time.monotonic() - began


@pytest.fixture(scope="module")
def up(leaseway_up_module: StartUp) -> Up:
    started = leaseway_up_module(
        "--auth", "required", "--console-port", str(free_port()), environment={"LEASEWAY_ADMIN_KEY_SECRET": SECRET}
    )
    started.wait_ready()
    started.wait_line("the console is")
    return started


@pytest.fixture(scope="module")
def api(up: Up) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=up.endpoint, auth=("admin", SECRET), timeout=30) as client:
        yield client


@pytest.fixture
def desk(up: Up) -> Iterator[Desk]:
    try:
        program = browser()
    except NotFetched as error:
        absent(str(error))
    with page(program) as tab:
        yield Desk(tab, up.run["console"]["url"])
        # A script that was refused, a style, a load from elsewhere: each is a line of the console.
        assert [line for line in tab.complaints if not any(word in line for word in EXPECTED)] == []
        assert {url.split("/")[2] for url in tab.requests if "://" in url} <= {up.run["console"]["url"].split("/")[2]}


@pytest.fixture(scope="module")
def script() -> str:
    try:
        return axe.program()
    except NotFetched as error:
        absent(str(error))


def made(api: httpx.Client, name: str, **settings: Any) -> None:
    api.post("/v1/queues", json={"name": name, **settings}).raise_for_status()


def sent(api: httpx.Client, queue: str, *bodies: str) -> list[str]:
    answer = api.post(f"/v1/queues/{queue}/messages", json={"messages": [{"body": body} for body in bodies]})
    return [message["id"] for message in answer.raise_for_status().json()["messages"]]


def killed(api: httpx.Client, queue: str, count: int) -> None:
    """Has that many messages of a queue die."""
    done = 0
    while done < count:
        found = api.post(f"/v1/queues/{queue}/receive", json={"max": 100, "wait_seconds": 5}).json()["messages"]
        if found:
            body = {"handles": [message["handle"] for message in found], "reason": "bad address"}
            api.post(f"/v1/queues/{queue}/kill", json=body).raise_for_status()
        done += len(found)


@pytest.mark.long
def test_people_do_their_work_at_the_console(  # noqa: PLR0915 - one stack, one browser, a day of work
    up: Up, api: httpx.Client, desk: Desk, script: str
) -> None:
    wrong: list[str] = []

    def looked() -> None:
        wrong.extend(f"{desk.path}: {one}" for one in axe.grave(desk.tab, script))

    # Signing in leads to where one wanted to go.
    desk.open("/queues?sort=oldest")
    assert desk.path.startswith("/sign-in")
    looked()
    desk.sign_in("admin", "not-the-secret-of-it")
    assert desk.path.startswith("/sign-in") and "wrong" in desk.text
    desk.sign_in("admin", SECRET)
    assert desk.path == "/queues?sort=oldest"

    # A queue for dead letters, and one with a policy.
    for name in ("desk.dead", "desk"):
        desk.open("/new-queue")
        desk.fill(name=name, lease_seconds=45)
        looked()
        desk.press("Create the queue")
        assert desk.path == f"/queue/{name}?done=created"
    desk.press("Settings")
    desk.fill(dead_letter_queue="desk.dead", max_receive_count=3)
    desk.press("Set the policy")
    desk.fill(lease_seconds=60)
    looked()
    desk.press("Change")
    assert "Changed." in desk.text
    settings = api.get("/v1/queues/desk").json()
    assert settings["lease_seconds"] == 60 and settings["redrive_policy"]["max_receive_count"] == 3
    # What the service refuses is said, and what was typed stays.
    desk.fill(lease_seconds=60, delay_seconds=60)
    desk.tab.value("document.querySelector('[name=lease_seconds]').removeAttribute('max')")
    desk.fill(lease_seconds=99999)
    desk.press("Change")
    assert "99999" in desk.text and desk.tab.value("document.querySelector('[name=delay_seconds]').value") == "60"

    # A tag, a message with an attribute, and a look at it that counts nothing.
    desk.open("/queue/desk")
    desk.tab.value("document.querySelectorAll('details').forEach((one) => one.open = true)")
    desk.fill(name="audit", filter="kind=retail")
    desk.press("Create the tag")
    assert "audit" in desk.text
    desk.press("audit")
    desk.fill(reason="the shop moves")
    looked()
    desk.press("Let nobody receive under the tag")
    assert "by admin: the shop moves" in desk.text
    looked()
    desk.press("Resume the tag")
    desk.fill(to="earliest", typed="audit")
    desk.press("Seek the tag")
    assert "begins anew" in desk.text
    desk.press("Send")
    body = "<b>hello</b> \u2603 'quoted'"
    desk.fill(body=body, attributes="kind=retail")
    looked()
    desk.press("Send")
    assert "/queue/desk/messages/" in desk.path and body in desk.text and "Received\n0 time(s)" in desk.text
    looked()
    desk.press("What happened to it")
    assert desk.count("tbody tr") == 1 and "sent" in desk.text and "admin" in desk.text
    looked()
    (sent_id,) = [message["id"] for message in api.get("/v1/queues/desk/messages").json()["messages"]]
    desk.open("/queue/desk/messages")
    looked()
    desk.fill(id=sent_id)
    desk.press("Find")
    assert sent_id in desk.text and api.get(f"/v1/queues/desk/messages/{sent_id}").json()["receive_count"] == 0
    desk.open("/queue/desk/messages?attribute=kind%3Dother")
    assert "No message fits." in desk.text

    # Dead letters: the chosen ones go back, and the task shows how far it is.
    sent(api, "desk", *(f"letter {number}" for number in range(9)))
    killed(api, "desk", 10)
    desk.open("/dead-letters")
    assert "desk.dead" in desk.text
    desk.open("/queue/desk.dead/letters")
    assert desk.count("tbody input[type=checkbox]") == 10 and "killed: bad address" in desk.text
    looked()
    desk.press("Dry run of all")
    assert "would be moved\n10" in desk.text and desk.count("tbody tr") == 10
    looked()
    desk.press("Back")
    desk.tab.value(
        "[...document.querySelectorAll('tbody input[type=checkbox]')].slice(0, 3).forEach((one) => one.checked = true)"
    )
    desk.press("Send the chosen ones back")
    desk.until(lambda: "completed" in desk.text)
    assert "3 of 3" in desk.text
    looked()
    desk.press("What came of each message")
    assert desk.count("tbody tr") == 3 and desk.text.count("moved") >= 3
    looked()
    desk.open("/tasks")
    desk.until(lambda: "completed" in desk.text)
    looked()
    desk.open("/queue/desk.dead/letters")
    desk.tab.value("document.querySelector('thead input').click()")
    assert desk.count("tbody input:checked") == 7
    desk.press("Send all of")
    desk.until(lambda: "completed" in desk.text)
    assert sum(tag["backlog"] for tag in api.get("/v1/queues/desk.dead").json()["tags"]) == 0

    # Numbers are those of now, within 2 s and what a page takes.
    desk.open("/queue/desk")
    before = desk.number()
    sent(api, "desk", "one more")
    took = desk.until(lambda: desk.number() == before + 1, 10)
    assert took < 4, took

    # A document is compared, and then made true.
    document = api.get("/v1/definitions", params={"prefix": "desk"}).json()
    next(one for one in document["queues"] if one["name"] == "desk")["lease_seconds"] = 61
    desk.open("/definitions")
    desk.fill(document=json.dumps(document))
    desk.press("Show what differs")
    assert desk.count("tbody tr") == 1 and "lease_seconds" in desk.text
    looked()
    assert api.get("/v1/queues/desk").json()["lease_seconds"] == 60
    desk.press("Apply: 1 change(s)")
    assert api.get("/v1/queues/desk").json()["lease_seconds"] == 61

    # Rights, alerts, transactions, keys, users, health, statistics.
    desk.open("/queue/desk/access")
    desk.fill(principal="eve", level="use")
    looked()
    desk.press("Give")
    assert api.get("/v1/queues/desk/grants").json()["grants"] == [{"principal": "eve", "level": "use"}]
    desk.press("Take it away")
    assert api.get("/v1/queues/desk/grants").json()["grants"] == []
    desk.open("/queue/desk/alerts")
    desk.fill(threshold=1000)
    desk.press("Watch")
    looked()
    assert len(api.get("/v1/queues/desk/alerts").json()["alerts"]) == 1
    half = api.post("/v1/queues/desk/transactions", json={"producer_group": "g", "messages": [{"body": "t"}]}).json()
    desk.open("/queue/desk/transactions")
    while half["id"] not in desk.text:
        desk.open("/queue/desk/transactions")
    looked()
    desk.press(half["id"])
    looked()
    desk.press("Roll back")
    assert api.get(f"/v1/transactions/{half['id']}").json()["status"] == "rolled_back"
    desk.open("/keys")
    desk.fill(key_id="looker", principal="looker", role="reader")
    desk.press("Create the key")
    secret = desk.tab.value("document.querySelector('.done pre').textContent")
    looked()
    desk.until(lambda: api.get("/v1/queues/desk/history").json()["as_of_ms"] is not None)
    desk.open("/queue/desk/history")
    desk.until(lambda: desk.count(".drawn canvas") == 2)
    of_queue = ("/queue/desk/history", "/queue/desk/tags/audit", "/queue/desk/statistics", "/queue/desk")
    for path in ("/", "/queues", "/health", "/tasks", "/definitions", "/users/admin", *of_queue):
        desk.open(path)
        looked()
        desk.open(path, dark=True)
        looked()
        desk.open(path, width=PHONE)
        assert desk.tab.value("document.documentElement.scrollWidth") <= PHONE, path
    with httpx.Client(base_url=up.endpoint, auth=("looker", secret), timeout=30) as looker:
        assert looker.get("/v1/rights").json()["role"] == "reader"

    # What can't be undone says how many, and wants the name.
    desk.open("/queue/desk")
    desk.press("Purge ...")
    looked()
    assert f"{before + 1} open message(s)" in desk.text
    desk.fill(typed="something else")
    desk.press("Purge desk")
    assert "nothing was changed" in desk.text
    desk.fill(typed="desk")
    desk.press("Purge desk")
    desk.until(lambda: sum(tag["ready"] for tag in api.get("/v1/queues/desk").json()["tags"]) == 0)
    desk.open("/queue/desk")
    desk.press("Delete ...")
    desk.fill(typed="audit")
    desk.press("Delete tag audit")
    desk.press("Delete ...")
    desk.fill(typed="desk")
    desk.press("Delete desk")
    assert desk.path == "/queues?done=deleted" and api.get("/v1/queues/desk").status_code == 404
    desk.press("Sign out")
    desk.open("/queues")
    assert desk.path.startswith("/sign-in")
    assert wrong == []
    assert SECRET not in (up.data / "logs" / "console.log").read_text()


@pytest.mark.long
def test_who_only_looks_is_offered_nothing_else(api: httpx.Client, desk: Desk) -> None:
    made(api, "seen")
    sent(api, "seen", "private")
    secret = api.post("/v1/keys", json={"key_id": "watcher", "principal": "watcher", "role": "reader"}).json()["secret"]
    desk.open("/queue/seen")
    desk.sign_in("watcher", secret)

    for path in (
        "/",
        "/queues",
        "/dead-letters",
        "/queue/seen",
        "/queue/seen/settings",
        "/queue/seen/history",
        "/queue/seen/tags/default",
        "/definitions",
        "/queue/seen/alerts",
        "/queue/seen/purge",
    ):
        desk.open(path)
        buttons = desk.tab.value(
            "[...document.querySelectorAll('main button, main .button')].map((one) => one.textContent)"
        )
        assert set(buttons) <= {"Show", "Export as JSON"}, path
        assert desk.count("main form[method=post] button") == 0, path
        assert "private" not in desk.text
    desk.open("/queue/seen")
    assert desk.tab.value("[...document.querySelectorAll('.tabs a')].map((one) => one.textContent)") == [
        "Now",
        "Settings",
        "Alerts",
        "History",
        "Statistics",
    ]
    # Who asks all the same is told no, and why.
    desk.open("/queue/seen/messages")
    assert "may not query" in desk.text

    # Who may only send is shown that, and can.
    secret = api.post("/v1/keys", json={"key_id": "sender", "principal": "sender", "role": "member"}).json()["secret"]
    api.put("/v1/queues/seen/grants/sender", json={"level": "send"}).raise_for_status()
    desk.open("/queues")
    desk.press("Sign out")
    desk.open("/queue/seen")
    desk.sign_in("sender", secret)
    assert "What you may do with it: send." in desk.text and "Purge" not in desk.text
    desk.press("Send")
    desk.fill(body="from a sender")
    desk.press("Send")
    assert desk.path == "/queue/seen/send?done=sent"


@pytest.mark.long
def test_an_open_page_goes_on_when_the_console_or_the_service_was_away(up: Up, api: httpx.Client, desk: Desk) -> None:
    made(api, "kept")
    desk.open("/queue/kept")
    desk.sign_in("admin", SECRET)
    desk.tab.value("window.kept = 1; document.querySelectorAll('details').forEach((one) => one.open = true)")
    desk.fill(name="half-typed")

    os.kill(up.run["console"]["pid"], signal.SIGKILL)
    sent(api, "kept", "one")
    desk.until(lambda: desk.number() == 1 and desk.count("#notice p") == 0)

    (worker,) = up.workers
    stand_still(worker)
    try:
        desk.until(lambda: "did not answer" in desk.text)
    finally:
        os.kill(worker, signal.SIGCONT)
    sent(api, "kept", "two")
    desk.until(lambda: desk.number() == 2 and desk.count("#notice p") == 0)

    os.kill(worker, signal.SIGKILL)
    desk.until(lambda: up.workers not in ([], [worker]) and up.status("/ready") == 200, 120)
    sent(api, "kept", "three")
    desk.until(lambda: desk.number() == 3 and desk.count("#notice p") == 0, 60)
    # It is the page that was opened, with what was typed there; the session is the same too.
    assert desk.tab.value("window.kept") == 1
    assert desk.tab.value("document.querySelector('[name=name]').value") == "half-typed"
    desk.press("Create the tag")
    assert "half-typed" in desk.text


@pytest.mark.long
def test_a_tab_that_nobody_sees_asks_nothing(up: Up, desk: Desk) -> None:
    desk.open("/queues")
    desk.sign_in("admin", SECRET)

    def asked() -> int:
        desk.tab.value("0")
        return sum("/live/" in url for url in desk.tab.requests)

    desk.until(lambda: asked() >= 2)
    desk.tab.value("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})")
    time.sleep(0.5)
    before = asked()
    time.sleep(5)
    assert asked() == before
    # No timer is left, so it is the return alone that asks.
    desk.tab.value("for (let id = 1; id < 1000; id++) clearInterval(id); 0")
    desk.tab.value("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    desk.until(lambda: asked() > before)


def test_the_service_leads_browsers_to_the_console(up: Up) -> None:
    shown = httpx.get(f"{up.endpoint}/", timeout=30)

    assert shown.status_code == 200 and shown.headers["content-type"].startswith("text/html")
    assert f'content="0;url={up.run["console"]["url"]}"' in shown.text
