r"""How the review page behaves with 100,000 labels of 1,000 classes.

    python benchmarks/review_load.py [--runs DIR] [--rows 100000] [--classes 1000] [--save DIR]

Makes as many image files and a table of them, trains a small network for an epoch, audits it, and
keeps all that below --runs. Then it starts `unswayed review` as a user does, opens the page in
Chromium, and measures: the time to the first screen, from a key to the next picture on the screen,
the memory of server and page before and after many decisions, and 50 requests at once. `--save`
writes the numbers to review-load.json. Needs `pip install 'unswayed[dev]'` and Chromium.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import hardware, save
from PIL import Image

from unswayed import Recipe, Run, audit, train
from unswayed.audits.storage import FILE, write_audit

KEYS, PACE, AT_ONCE = 400, 200, 50
"""Keys, milliseconds between two of them (five decisions a second), and requests at once."""

WORDS = (
    "model.width=8",
    "train.epochs=1",
    "train.budget=",
    "train.threads=1",
    "train.holdout=0.01",
)

WATCH = """() => {
  window.paints = [];
  new PerformanceObserver((list) => {
    const keys = list.getEntries().filter((entry) => entry.name === "keydown");
    paints.push(...keys.map((entry) => entry.duration));
  }).observe({ type: "event", durationThreshold: 16 });
}"""


THERE = """() => {
  const image = document.getElementById("image");
  return image.complete && image.naturalWidth > 0;
}"""


def files(folder: Path, rows: int, classes: int) -> Path:
    """Write images and their table; a tenth of the labels is wrong."""
    table = folder / "labels.csv"
    if table.is_file():
        return table
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 256, (classes, 6, 6, 3), dtype=np.uint8)
    label = rng.integers(classes, size=rows)
    given = np.where(rng.random(rows) < 0.1, rng.integers(classes, size=rows), label)
    for row in range(rows):
        place = folder / "images" / f"{row // 1000:03}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.kron(patterns[label[row]], np.ones((8, 8, 1))) + rng.normal(0, 20, (48, 48, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place / f"{row:06}.jpg")
        if row % 5000 == 0:
            print(f"images: {row:,}/{rows:,}", flush=True)
    with table.with_suffix(".tmp").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("path", "label"))
        for row in range(rows):
            writer.writerow((f"images/{row // 1000:03}/{row:06}.jpg", f"class {given[row]:04}"))
    table.with_suffix(".tmp").replace(table)
    return table


def audited(folder: Path, rows: int, classes: int) -> Run:
    """Return a run with an audit; make what is missing."""
    path = folder / "run"
    if not (path / "summary.json").is_file():
        table = files(folder / "data", rows, classes)
        data = ("data.name=manifest", f"data.path={table}", "data.size=16")
        train(Recipe.load("cpu/cifar10", *data, *WORDS), run=path)
    run = Run(path)
    if not (path / FILE).is_file():
        print("auditing", flush=True)
        write_audit(audit(run), run)
    return run


@contextmanager
def serving(run: Run) -> Any:
    """Start the command, and yield its process, its address, and the seconds that took."""
    (run.path / "review.jsonl").unlink(missing_ok=True)
    began = time.perf_counter()
    words = ["-m", "unswayed", "review", str(run.path), "--no-browser", "--port", "0"]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = re.search(r"http\S+", server.stdout.readline())
    assert address is not None
    try:
        yield server, address[0], time.perf_counter() - began
    finally:
        server.kill()
        server.wait()


def megabytes(process: int) -> float:
    """Return the memory that a process holds."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024


def heap(page: Any) -> float:
    """Return the megabytes of JavaScript objects in a page, after a collection."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 2**20


def until(page: Any, code: str) -> None:
    """Wait until some JavaScript returns true; the page allows no `wait_for_function`."""
    end = time.perf_counter() + 60
    while not page.evaluate(code):
        if time.perf_counter() > end:
            raise SystemExit(f"this did not happen within a minute: {code}")
        time.sleep(0.005)


def in_browser(server: Any, address: str) -> dict[str, Any]:
    """Measure the page with a real browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        began = time.perf_counter()
        page.goto(address)
        until(page, THERE)
        first = time.perf_counter() - began
        page.evaluate(WATCH)
        page.wait_for_timeout(1000)
        before = megabytes(server.pid), heap(page)
        shown = 0
        for number in range(KEYS):
            page.keyboard.press("n" if number % 3 else "y")
            shown += page.evaluate(THERE)
            if number == KEYS // 2:
                page.wait_for_timeout(500)
                middle = megabytes(server.pid), heap(page)
            page.wait_for_timeout(PACE)
        until(page, "() => document.getElementById('saved').textContent === 'all saved'")
        after = megabytes(server.pid), heap(page)
        paints = page.evaluate("paints")
        browser.close()
    paints += [16.0] * (KEYS - len(paints))  # shorter ones are not reported
    return {
        "first_screen_seconds": round(first, 2),
        "key_to_paint_ms": {
            "median": statistics.median(paints),
            "99th percentile": float(np.quantile(paints, 0.99)),
            "largest": max(paints),
        },
        "picture_there_at_once": shown / KEYS,
        "server_mb": [round(each[0]) for each in (before, middle, after)],
        "page_heap_mb": [round(each[1], 1) for each in (before, middle, after)],
        "decisions": KEYS,
    }


def at_once(address: str, token: str) -> dict[str, float]:
    """Measure many requests at the same time."""
    body = json.dumps({"reviewer": "load", "filter": {"text": "1"}, "count": 60}).encode()

    def one(_: int) -> float:
        began = time.perf_counter()
        headers = {"x-token": token, "content-type": "application/json"}
        request = urllib.request.Request(f"{address}api/items", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert len(json.load(answer)["items"]) == 60
        return time.perf_counter() - began

    with ThreadPoolExecutor(AT_ONCE) as pool:
        began = time.perf_counter()
        found = sorted(pool.map(one, range(AT_ONCE)))
        whole = time.perf_counter() - began
    return {"requests": AT_ONCE, "all_seconds": round(whole, 2), "slowest": round(found[-1], 2)}


def main() -> None:
    """Prepare, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", metavar="DIR", default="runs/review-load")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--save", metavar="DIR")
    args = parser.parse_args()
    run = audited(Path(args.runs).absolute(), args.rows, args.classes)
    with serving(run) as (server, address, seconds):
        base, _, token = address.partition("?token=")
        found = {
            "rows": args.rows,
            "classes": args.classes,
            "hardware": hardware(),
            "command_start_seconds": round(seconds, 2),
            **in_browser(server, address),
            "at_once": at_once(base, token),
        }
    print(json.dumps(found, indent=2))
    if args.save:
        save(found, Path(args.save), "review-load.json")


if __name__ == "__main__":
    main()
