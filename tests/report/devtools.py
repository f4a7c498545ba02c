"""Headless Chromium over a pipe, by its DevTools protocol: real pointers, keys, downloads and media; no package needed.

A command is one JSON text that ends with a NUL byte, written to descriptor 3 of Chromium; answers and events come from
descriptor 4. Every call waits for its own answer, so that nothing depends on how fast the machine is.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 240.0  # seconds for an answer: only a browser that is gone takes as long
# Puts the two ends of the pipes where Chromium looks for them, and becomes Chromium.
PLUMBING = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD_CLOEXEC, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {"ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9}


class Browser:
    """One Chromium with one page; close it."""

    def __init__(self, chromium: str, home: Path) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        command = [chromium, *FLAGS, f"--user-data-dir={home / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", PLUMBING, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._count, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        (page,) = [one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)  # as if the window were in front

    def close(self) -> None:
        for pipe in (self._write, self._read):
            os.close(pipe)
        self._process.kill()
        self._process.wait()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one command."""
        self._count += 1
        own = self._count
        command = {"id": own, "method": method, "params": params}
        if self._session is not None and not method.startswith(("Target.", "Browser.")):
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == own:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.events.append(message)

    def wait(self, method: str) -> dict[str, Any]:
        """The first event of this name since the events were last emptied."""
        while True:
            for event in self.events:
                if event.get("method") == method:
                    return event["params"]
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"Chromium said nothing for {PATIENCE:g} s"
            got = os.read(self._read, 1 << 20)
            assert got, "Chromium ended"
            self._buffer += got
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    # --- what a reader does ---

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False, script: bool = True) -> None:
        """The page, loaded, in a window of this size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.ask("Page.navigate", url=path.as_uri())
        self.wait("Page.loadEventFired")

    def js(self, expression: str) -> Any:
        """The value of an expression, awaited where it is a promise."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def move(self, x: float, y: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def box(self, element: str) -> tuple[float, float, float, float]:
        """Left, top, width and height in the window of what an expression gives, scrolled into view."""
        self.js(f"{element}.scrollIntoView({{ block: 'center', behavior: 'instant' }})")
        return tuple(
            self.js(
                f"(({{ left, top, width, height }}) => [left, top, width, height])({element}.getBoundingClientRect())"
            )
        )

    def press(self, element: str) -> None:
        """A click in the middle of what an expression gives."""
        left, top, width, height = self.box(element)
        self.click(left + width / 2, top + height / 2)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str) -> None:
        code = {"windowsVirtualKeyCode": KEYS[name]} if name in KEYS else {"text": name}
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name, **code)

    def downloads(self, folder: Path) -> None:
        """From here on, downloads go into this folder."""
        self.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)

    def downloaded(self) -> str:
        """The name of the next file that was downloaded, once it is whole."""
        begun = self.wait("Browser.downloadWillBegin")
        self.forget("Browser.downloadWillBegin")
        while True:
            progress = self.wait("Browser.downloadProgress")
            self.forget("Browser.downloadProgress")
            if progress["guid"] == begun["guid"] and progress["state"] != "inProgress":
                assert progress["state"] == "completed", begun
                return begun["suggestedFilename"]

    def forget(self, method: str) -> None:
        """Drops the first event of this name."""
        self.events.remove(next(event for event in self.events if event.get("method") == method))

    def picture(self, path: Path, whole: bool = True) -> None:
        """A screenshot, of the whole page or of what the window shows."""
        found = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(found["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    @property
    def complaints(self) -> list[str]:
        """Errors of scripts, of the console and of the page's policy since it was opened."""
        out = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                out.append(str(params["exceptionDetails"]))
            if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                out.append(params["entry"]["text"])
        return out

    @property
    def requests(self) -> list[str]:
        """What was fetched, but for the page itself and data in it."""
        urls = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in urls[1:] if not url.startswith(("data:", "blob:"))]
