"""A page of another origin in a real Chromium, before a real `leaseway up` in open mode: whatever
it makes the browser send, nothing changes. With each front.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.browser.chromium import Page, page
from tests.browser.fetch import browser
from tests.clients import NotFetched
from tests.conftest import StartUp, absent
from tests.services import Up

HTML = b"<!doctype html><title>elsewhere</title><body></body>"
# Each is sent without a preflight; `sent` counts what the browser has done with.
SCRIPT = """(() => {
  const at = %r, paths = %r;
  window.sent = 0; window.wanted = 0;
  const done = () => { window.sent++ };
  for (const path of paths) {
    for (const options of [{}, {body: "{}"}, {body: new URLSearchParams("a=b")}]) {
      window.wanted++;
      fetch(at + path, {method: "POST", mode: "no-cors", credentials: "include", ...options}).then(done, done);
    }
    window.wanted++;
    navigator.sendBeacon(at + path, "{}"); done();
    const frame = document.createElement("iframe"); frame.name = "f" + window.wanted; document.body.append(frame);
    const form = document.createElement("form"); form.method = "post";
    form.action = at + path; form.target = frame.name;
    document.body.append(form); window.wanted++; frame.onload = done; form.submit();
  }
  for (const action of ["PurgeQueue", "ReceiveMessage", "DeleteQueue"]) {
    const url = at + "/?Action=" + action + "&QueueUrl=" + at + "/000000000000/pages";
    window.wanted++;
    const image = new Image(); image.onload = image.onerror = done; image.src = url; document.body.append(image);
  }
  window.wanted++;
  const image = new Image(); image.onload = image.onerror = done; image.src = at + "/queues/pages/messages";
})()"""


class Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(HTML)

    def log_message(self, *about: object) -> None:
        """Says nothing."""


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """The port of another server of this machine, with a page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tab() -> Iterator[Page]:
    try:
        program = browser()
    except NotFetched as error:
        absent(str(error))
    with page(program) as found:
        yield found


@pytest.fixture(params=["off", "auto"])
def up(leaseway_up: StartUp, request: pytest.FixtureRequest) -> Up:
    started = leaseway_up(environment={"LEASEWAY_NATIVE": request.param})
    started.wait_ready()
    return started


def refusals(up: Up) -> int:
    lines = httpx.get(f"{up.endpoint}/metrics", timeout=30).text.splitlines()
    return sum(
        int(float(line.split()[-1]))
        for line in lines
        if line.startswith("leaseway_requests_total") and 'status="403"' in line
    )


@pytest.mark.long
def test_a_page_of_another_origin_changes_nothing(up: Up, elsewhere: int, tab: Page) -> None:
    at = f"http://127.0.0.1:{up.endpoint.rpartition(':')[2]}"
    with httpx.Client(base_url=at, timeout=30) as client:
        client.post("/v1/queues", json={"name": "pages-dlq"}).raise_for_status()
        policy = {"dead_letter_queue": "pages-dlq", "max_receive_count": 5}
        client.post("/v1/queues", json={"name": "pages", "redrive_policy": policy}).raise_for_status()
        client.post("/v1/queues/pages/messages", json={"messages": [{"body": "a"}, {"body": "b"}]}).raise_for_status()
        prepared = {"producer_group": "g", "messages": [{"body": "t"}]}
        half = client.post("/v1/queues/pages/transactions", json=prepared).raise_for_status().json()["id"]
        paths = [
            "/v1/queues/pages/receive", "/v1/queues/pages/purge", "/v1/queues/pages-dlq/redrive",
            f"/v1/transactions/{half}/rollback",
            f"/v1/transactions/{half}/commit", "/v1/producer-groups/g/checks", "/v1/queues", "/queues/pages/messages",
        ]  # fmt: skip
        # Two names: the same site and another port, and another site.
        for host in ("127.0.0.1", "localhost"):
            before = refusals(up)
            tab.open(f"http://{host}:{elsewhere}/")
            tab.value(SCRIPT % (at, paths))
            until = time.monotonic() + 60
            while tab.value("window.sent < window.wanted") and time.monotonic() < until:
                time.sleep(0.1)
            assert not tab.value("window.sent < window.wanted")
            # The browser holds some back by rules of its own; of these it may hold back none.
            assert refusals(up) - before >= 3 * len(paths)
            assert client.get(f"/v1/transactions/{half}").json()["decided_at_ms"] is None
        got = client.post("/v1/queues/pages/receive", json={"max": 10, "wait_seconds": 5}).json()["messages"]
        assert sorted((message["body"], message["receive_count"]) for message in got) == [("a", 1), ("b", 1)]
        assert client.get("/v1/queues").json()["queues"] == ["pages", "pages-dlq"]
