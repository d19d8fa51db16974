"""Drives a headless Chromium by its DevTools protocol over two pipes: opens a page, takes pictures,
tells what went wrong in it.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.browser.fetch import Browser

ANSWER_S = 60
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
)
OPTIONS_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-pipe",
    "about:blank",
)


class Page:
    """One tab. `requests` are the addresses that it asked for, `complaints` its script errors and
    console errors.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._commands, self._answers = commands, answers
        self._rest, self._number, self._session, self._loaded = b"", 0, "", False
        target = self._do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._do(f"{domain}.enable")

    def open(self, url: str, width: int = 1100, dark: bool = False, media: str = "") -> None:
        """Loads `url`, `width` CSS pixels wide; `media` "print" shows it as on paper."""
        self._do("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._do("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self._loaded = False
        self._do("Page.navigate", url=url)
        end = time.monotonic() + ANSWER_S
        while not self._loaded:
            self._take(end)

    def follow(self, expression: str) -> None:
        """Evaluates what leads to another page, and waits until that is loaded."""
        self._loaded = False
        self.value(expression)
        end = time.monotonic() + ANSWER_S
        while not self._loaded:
            self._take(end)

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives, as JSON; what a promise does."""
        parameters = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        result = self._do("Runtime.evaluate", **parameters)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key, by its name in the DOM."""
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self._do(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode={"Tab": 9, "Enter": 13}[key],
                **more,
            )

    def picture(self) -> bytes:
        """The whole page as a PNG."""
        size = self._do("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(
            self._do("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        )

    def paper(self) -> bytes:
        """The page as a PDF, with backgrounds."""
        return base64.b64decode(self._do("Page.printToPDF", printBackground=True)["data"])

    def _do(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        end = time.monotonic() + ANSWER_S
        while (answer := self._take(end)).get("id") != self._number:
            pass
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _take(self, end: float) -> dict[str, Any]:
        """The next answer or event; events are noted."""
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"Chromium did not answer within {ANSWER_S} s"
            part = os.read(self._answers, 1 << 20)
            assert part, "Chromium has ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, told: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([argument.get("value") for argument in told["args"]]))


@contextlib.contextmanager
def page(browser: Browser) -> Iterator[Page]:
    """A tab of a new Chromium, which ends with the block."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        pid, commands, answers = _start(browser, Path(home))
        try:
            yield Page(commands, answers)
        finally:
            os.close(commands)
            os.close(answers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _start(browser: Browser, home: Path) -> tuple[int, int, int]:
    """(pid, where commands go, where answers come from). Chromium reads commands from descriptor 3
    and answers on 4.
    """
    # Above 10, so that making 3 and 4 of them overwrites none of them.
    (its_in, commands), (answers, its_out) = ((_high(a), _high(b)) for a, b in (os.pipe(), os.pipe()))
    words = [str(browser.program), *OPTIONS, f"--user-data-dir={home}", *OPTIONS_QUIET]
    # Some scripts take no language of a POSIX locale.
    environment = {**os.environ, "HOME": str(home), "LANG": "en_US.UTF-8", **browser.environment}
    log = (os.POSIX_SPAWN_OPEN, 2, str(home / "log"), os.O_WRONLY | os.O_CREAT, 0o600)
    actions = [(os.POSIX_SPAWN_DUP2, its_in, 3), (os.POSIX_SPAWN_DUP2, its_out, 4), (os.POSIX_SPAWN_DUP2, 2, 1), log]
    pid = os.posix_spawn(words[0], words, environment, file_actions=actions)
    os.close(its_in)
    os.close(its_out)
    return pid, commands, answers


def _high(descriptor: int) -> int:
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return high
