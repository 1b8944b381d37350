"""A real Chromium without a window, driven by its own protocol over two pipes.

Nothing but the browser is needed: no driver, no port, no package.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[3] / ".ci" / "chromium"
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
    "--disable-extensions", "--mute-audio", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 120
"""Seconds that an answer may take on a machine that is busy with other tests."""
PHONE, DESK = (390, 844), (1280, 900)
"""Sizes of windows, in pixels of CSS."""


class BrowserFailed(Exception):
    """The browser did not do what it was asked for."""


class Browser:
    """A running browser; one for many pages."""

    def __init__(self, sending: int, receiving: int) -> None:
        self._sending, self._receiving = sending, receiving
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._sending, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserFailed(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def wait_for(self, event_name: str, session: str) -> dict[str, Any]:
        """An event of a kind, which may have come already; all others are kept."""
        return self._wait(event_name, session, 0)

    def wait_for_next(self, event_name: str, session: str) -> dict[str, Any]:
        return self._wait(event_name, session, len(self.events))

    def _wait(self, event_name: str, session: str, looked_at: int) -> dict[str, Any]:
        while True:
            for event in self.events[looked_at:]:
                looked_at += 1
                if event.get("method") == event_name and event.get("sessionId") == session:
                    return dict(event["params"])
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._receiving], [], [], deadline - time.monotonic())
            piece = os.read(self._receiving, 1 << 20) if ready else b""
            if not piece:
                raise BrowserFailed("the browser does not answer")
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    @contextmanager
    def page(
        self,
        address: str,
        size: tuple[int, int] = DESK,
        *,
        dark: bool = False,
        scripts: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Page]:
        """A page that is loaded; every request has the headers, as a proxy would add them."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=size[0], height=size[1], deviceScaleFactor=1, mobile=size == PHONE,
        )  # fmt: skip
        if not scripts:
            page.call("Emulation.setScriptExecutionDisabled", value=True)
        if headers:
            page.call("Network.setExtraHTTPHeaders", headers=dict(headers))
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        page.call("Emulation.setEmulatedMedia", features=[scheme, still])
        page.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired", session)
        try:
            yield page
        finally:
            self.call("Target.closeTarget", targetId=target)


class Page:
    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self.session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask for something of this page."""
        return self._browser.call(method, self.session, **parameters)

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives; promises are awaited."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise BrowserFailed(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def complaints(self) -> list[str]:
        """What the browser logged as wrong: scripts that failed, and what the policy refused."""
        self.value("0")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self.session:
                continue
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"]))
            if event["method"] == "Log.entryAdded":
                entry = event["params"]["entry"]
                found.append(f"{entry['level']}: {entry['text']}")
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was loaded."""
        self.value("0")
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self.session
            and event["method"] == "Network.requestWillBeSent"
        ]

    def middle(self, selector: str) -> tuple[float, float]:
        """The middle of an element, scrolled into view, in the window."""
        return self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )

    def mouse(self, kind: str, x: float, y: float, buttons: int = 0) -> None:
        """An event of the mouse: mouseMoved, mousePressed or mouseReleased."""
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons,
            button="left" if kind != "mouseMoved" or buttons else "none", clickCount=1,
        )  # fmt: skip

    def hover(self, selector: str) -> None:
        """Point at the middle of an element."""
        self.mouse("mouseMoved", *self.middle(selector))

    def click(self, selector: str) -> None:
        """Click on the middle of an element."""
        at = self.middle(selector)
        self.mouse("mouseMoved", *at)
        self.mouse("mousePressed", *at, buttons=1)
        self.mouse("mouseReleased", *at)

    def press(self, key: str, code: int = 0) -> None:
        """Press a key by its name, such as Tab or ArrowLeft."""
        more = {"text": key} if len(key) == 1 else {}
        if key == "Enter":
            more = {"text": "\r"}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def screenshot(self, file: Path, *, whole: bool = False) -> Path:
        """Write what the window shows, or all of the page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        if whole:
            height = int(self.value("document.documentElement.scrollHeight"))
            width = int(self.value("innerWidth"))
            clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
            found = self.call(
                "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
            )
        file.write_bytes(base64.b64decode(found["data"]))
        return file

    def pdf(self) -> bytes:
        """The page as it is printed."""
        found = self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)
        return base64.b64decode(found["data"])

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that assistive software is shown, in order."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"]
        ]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a profile of its own.

    Raises:
        CalledProcessError: there is none, and none can be installed.
        BrowserFailed: it does not start.
    """
    found = subprocess.run([PROGRAM], check=True, stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        to_browser, from_browser = os.pipe(), os.pipe()
        command = shlex.join(
            [found.stdout.strip(), *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        )
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{to_browser[0]} 4>&{from_browser[1]}"],
            pass_fds=(to_browser[0], from_browser[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        browser = Browser(to_browser[1], from_browser[0])
        try:
            browser.call("Browser.getVersion")
            yield browser
            browser.call("Browser.close")
        finally:
            os.close(to_browser[1])
            os.close(from_browser[0])
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
