"""What the console costs with many queues: `python -m benchmarks.console [--queues 2000]`.

A stack of its own and a Chromium: bytes over the wire and CPU of the console's process for the
first view of each page, CPU while a page is open, and how old the numbers are that it shows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from facade.programs.stack.processes.ports import free_port
from tests.browser.chromium import Page, page
from tests.browser.fetch import browser
from tests.services import Up

SIZES = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".filter((one) => !one.name.includes('/live/')).reduce((sum, one) => sum + one.transferSize, 0)"
)
PAGES = ("/queues", "/", "/queues?sort=oldest", "/dead-letters", "/queue/q-00000", "/queue/q-00000/messages", "/health")


def cpu_s(pid: int) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make(endpoint: str, count: int, first: int = 0) -> None:
    """Makes the queues from the number `first` on, and a message in each tenth."""
    with httpx.Client(base_url=endpoint, timeout=120) as client, ThreadPoolExecutor(16) as pool:

        def one(number: int) -> None:
            name = f"q-{number:05}"
            client.post("/v1/queues", json={"name": name, "partitions": 1}).raise_for_status()
            if number % 10 == 0:
                client.post(f"/v1/queues/{name}/messages", json={"messages": [{"body": "x"}]}).raise_for_status()

        list(pool.map(one, range(first, count)))


def lags_s(tab: Page, url: str, client: httpx.Client, rounds: int) -> list[float]:
    """How long after the answer to a send its queue's page shows the number."""
    tab.open(f"{url}/queue/q-00000")
    found = []
    for _ in range(rounds):
        shown = "Number(document.querySelector('.figures dd').textContent.replaceAll(',', ''))"
        before = tab.value(shown)
        client.post("/v1/queues/q-00000/messages", json={"messages": [{"body": "x"}]}).raise_for_status()
        sent = time.monotonic()
        while tab.value(shown) <= before:
            time.sleep(0.01)
        found.append(time.monotonic() - sent)
    return found


def measure(up: Up, tab: Page) -> list[dict[str, Any]]:
    """A row for each page."""
    pid, url = up.run["console"]["pid"], up.run["console"]["url"]
    rows = []
    for path in PAGES:
        before = cpu_s(pid)
        tab.open(url + path)
        rows.append({"page": path, "kB": round(tab.value(SIZES) / 1000, 1), "cpu_s": round(cpu_s(pid) - before, 3)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=int, default=2000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        up = Up(Path(name), "--console-port", str(free_port()))
        try:
            up.wait_ready()
            up.wait_line("the console is")
            began = time.monotonic()
            make(up.endpoint, given.queues)
            print(f"{given.queues} queues made in {time.monotonic() - began:.0f} s")
            with page(browser()) as tab, httpx.Client(base_url=up.endpoint, timeout=60) as client:
                for row in measure(up, tab):
                    print(row)
                pid = up.run["console"]["pid"]
                tab.open(f"{up.run['console']['url']}/queues")
                before = cpu_s(pid)
                time.sleep(20)
                print(f"a page of queues that is open: {(cpu_s(pid) - before) / 20 * 1000:.1f} ms of CPU a second")
                lags = lags_s(tab, up.run["console"]["url"], client, 10)
                print(f"from a send to the page: median {statistics.median(lags):.2f} s, most {max(lags):.2f} s")
        finally:
            up.stop()


if __name__ == "__main__":
    main()
