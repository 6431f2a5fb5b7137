"""A real browser without a window, driven by the protocol of its developer tools over two pipes. Scripts of pages are
switched off in it: what we look and click with is the protocol's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROGRAM = "chromium-headless-shell"
_WAIT_S = 30.0


class Refused(Exception):
    """What the browser does not do."""


class Browser:
    """One window of it."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._number = 0
        self._session = ""
        self._rest = b""
        self.requests: list[str] = []
        """addresses that were asked for"""
        self.console: list[str] = []

    def open(self) -> None:
        """A blank page."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "DOM", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScriptExecutionDisabled", value=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """What it answers; events are noted meanwhile."""
        self._number += 1
        number = self._number
        sent: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            sent["sessionId"] = self._session
        os.write(self._write, json.dumps(sent).encode() + b"\0")
        until = time.monotonic() + _WAIT_S
        while True:
            told = self._next(until)
            if told.get("id") == number:
                if "error" in told:
                    raise Refused(told["error"]["message"])
                result: dict[str, Any] = told["result"]
                return result

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = until - time.monotonic()
            assert left > 0, "the browser does not answer"
            if select.select([self._read], [], [], left)[0]:
                part = os.read(self._read, 1 << 20)
                assert part, "the browser has ended"
                self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        if told.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["params"]["request"]["url"])
        if told.get("method") == "Log.entryAdded":
            self.console.append(told["params"]["entry"]["text"])
        return told

    def go(self, url: str) -> None:
        """To an address."""
        self.call("Page.navigate", url=url)

    @property
    def url(self) -> str:
        """Where it is."""
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                history = self.call("Page.getNavigationHistory")
            except Refused:
                # On its way from one page to the next there is none.
                assert time.monotonic() < until, "the browser is nowhere"
                time.sleep(0.05)
            else:
                found: str = history["entries"][history["currentIndex"]]["url"]
                return found

    def at(self, selector: str, method: str, **params: Any) -> dict[str, Any]:
        """Do something with the first that fits, as soon as it is there; a page may be replaced meanwhile."""
        until = time.monotonic() + _WAIT_S
        while time.monotonic() < until:
            with contextlib.suppress(Refused, KeyError):
                root = self.call("DOM.getDocument")["root"]["nodeId"]
                found = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
                if found:
                    return self.call(method, nodeId=found, **params)
            time.sleep(0.05)
        raise AssertionError(f"never on the page at {self.url}: {selector}; {self.console}")

    def text(self, selector: str) -> str:
        """What a person reads there."""
        html: str = self.at(selector, "DOM.getOuterHTML")["outerHTML"]
        return html

    def click(self, selector: str) -> None:
        """In the middle of it, by the mouse."""
        quad = self.at(selector, "DOM.getContentQuads")["quads"][0]
        x, y = sum(quad[::2]) / 4, sum(quad[1::2]) / 4
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def fill(self, selector: str, text: str) -> None:
        """By the keyboard."""
        self.at(selector, "DOM.focus")
        self.call("Input.insertText", text=text)


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Started, and ended with all its processes and files."""
    program = shutil.which(PROGRAM)
    assert program, f"{PROGRAM} is missing: scripts/install-test-parts"
    to_read, write = os.pipe()
    read, to_write = os.pipe()
    # The protocol's own numbers: it reads from 3 and writes to 4.
    start = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
    process = subprocess.Popen(
        ["bash", "-c", start, program, "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-dev-shm-usage", f"--user-data-dir={folder}", "--no-proxy-server",
         "--disable-background-networking", "--disable-component-update"],
        pass_fds=(to_read, to_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    os.close(to_read)
    os.close(to_write)
    try:
        made = Browser(write, read)
        made.open()
        yield made
    finally:
        os.close(write)
        os.close(read)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait(30)
