"""Headless Chromium, driven as a user would: by the names of tabs, fields and buttons. Speaks the W3C's WebDriver."""

import base64
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ports import fixed_port

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = [name for name, path in (("chromium", CHROMIUM), ("chromedriver", DRIVER)) if path is None]
_WAIT_SECONDS = 10.0

_FIND = """
const [kind, name] = arguments;
const seen = (node) => node.offsetParent !== null;
if (kind === 'field') {
  const label = [...document.querySelectorAll('label')].filter(seen).find((one) => one.textContent === name);
  return label ? document.getElementById(label.htmlFor) : null;
}
const among = kind === 'tab' ? '[role=tab]' : 'button:not([role=tab])';
return [...document.querySelectorAll(among)].filter(seen).find((one) => one.textContent === name) ?? null;
"""


class Browser:
    """One window. Names are what the user reads."""

    def __init__(self, port: int, session: str) -> None:
        self._port = port
        self._session = session

    def call(self, method: str, path: str, value: Any = None) -> Any:
        body = None if method in ("GET", "DELETE") else json.dumps(value or {})
        return _call(self._port, method, f"/session/{self._session}{path}", body)

    def run(self, script: str, *arguments: object) -> Any:
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command: str, **parameters: object) -> Any:
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def _element(self, kind: str, name: str) -> str:
        found = wait_until(lambda: self.run(_FIND, kind, name), f"a {kind} named {name}", self.text)
        return str(found[ELEMENT])

    def press(self, name: str) -> None:
        self.call("POST", f"/element/{self._element('button', name)}/click")

    def tab(self, name: str) -> None:
        self.call("POST", f"/element/{self._element('tab', name)}/click")

    def fill(self, **values: str) -> None:
        for name, text in values.items():
            field = self._element("field", name)
            self.call("POST", f"/element/{field}/clear")
            self.call("POST", f"/element/{field}/value", {"text": text})

    def choose(self, name: str, option: str) -> None:
        self.run(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
            {ELEMENT: self._element("field", name)},
            option,
        )

    def keys(self, *keys: str) -> None:
        active = self.call("GET", "/element/active")[ELEMENT]
        self.call("POST", f"/element/{active}/value", {"text": "".join(keys)})

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def sees(self, *words: str) -> str:
        """Waits until the page shows all these words at once; returns what it shows."""

        def seen() -> str | None:
            text = self.text()
            return text if all(word in text for word in words) else None

        return str(wait_until(seen, " and ".join(map(repr, words)), self.text))

    def complaints(self) -> list[str]:
        """Errors in the browser's console; answers 4xx of the API are none."""
        log = self.call("POST", "/se/log", {"type": "browser"})
        return [
            one["message"] for one in log if "the server responded with a status of 4" not in one["message"]
        ]

    def look(self, width: int, *, dark: bool = False) -> None:
        """The width of the window in CSS pixels, and what the user prefers."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path) -> None:
        picture = self.devtools("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))


def wait_until(probe: Any, what: str, now: Any) -> Any:
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        if found := probe():
            return found
        time.sleep(0.02)
    raise AssertionError(f"the page never has {what}; it shows:\n{now()}")


def _call(port: int, method: str, path: str, body: str | None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        value = json.loads(answer.read())["value"]
    finally:
        connection.close()
    assert answer.status == 200, value
    return value


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A window without a profile of its own; the driver and the browser end with it."""
    assert DRIVER is not None
    assert CHROMIUM is not None
    port = fixed_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = {**os.environ, "HOME": folder, "TMPDIR": folder}
        driver = subprocess.Popen(
            [DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        try:
            wait_until(lambda: _is_up(port), "a driver that answers", lambda: "")
            # Inside a container, and as root, Chromium cannot have its sandbox; it sees pages of this test only.
            words = [
                "--headless=new",
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                "--lang=en",
            ]
            options = {"binary": CHROMIUM, "args": [*words, f"--user-data-dir={folder}/profile"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "SEVERE"}}
            session = _call(port, "POST", "/session", json.dumps({"capabilities": {"alwaysMatch": wanted}}))
            one = Browser(port, session["sessionId"])
            try:
                yield one
            finally:
                one.call("DELETE", "")
        finally:
            driver.terminate()
            driver.wait(10)


def _is_up(port: int) -> bool:
    try:
        return bool(_call(port, "GET", "/status", None)["ready"])
    except OSError:
        return False
