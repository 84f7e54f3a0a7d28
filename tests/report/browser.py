"""Ask a real browser about a page, through a pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

BINARY = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


START = """
import fcntl, os, sys
for place, pipe in [(n, fcntl.fcntl(int(sys.argv[n - 2]), fcntl.F_DUPFD, 10)) for n in (3, 4)]:
    os.dup2(pipe, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads from descriptor 3 and writes to 4."""


class Browser:
    """A headless Chromium with one page; a context manager."""

    def __init__(self, profile):
        self.profile, self.number, self.rest, self.session = profile, 0, b"", {}
        self.events = []

    def __enter__(self):
        theirs_in, self.write_to = os.pipe()
        self.read_from, theirs_out = os.pipe()
        words = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                START,
                str(theirs_in),
                str(theirs_out),
                BINARY,
                *words,
                f"--user-data-dir={self.profile}",
                "about:blank",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.tell("Target.createTarget", url="about:blank")["targetId"]
        told = self.tell("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": told["sessionId"]}
        for part in ("Page", "Runtime", "Log"):
            self.tell(f"{part}.enable")
        return self

    def __exit__(self, *error):
        self.session = {}
        self.tell("Browser.close")
        self.process.wait(30)
        os.close(self.write_to)
        os.close(self.read_from)

    def tell(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, **self.session}
        os.write(self.write_to, json.dumps(message).encode() + b"\0")
        while (answer := self.read()).get("id") != self.number:
            self.events.append(answer)
        return answer["result"]

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.read_from, 2**20)
            assert part, "the browser has ended"
            self.rest += part
        first, _, self.rest = self.rest.partition(b"\0")
        return json.loads(first)

    def open(self, path):
        self.tell("Page.navigate", url=path.as_uri())
        while not self.happened("Page.loadEventFired"):
            self.events.append(self.read())

    def happened(self, *methods):
        return [event for event in self.events if event.get("method") in methods]

    def ask(self, code):
        told = self.tell("Runtime.evaluate", expression=code, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")
