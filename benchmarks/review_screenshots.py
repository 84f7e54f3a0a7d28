r"""Pictures of the review page, for the docs.

    python benchmarks/review_screenshots.py [--runs runs/demo] [--save docs/images]

Writes the digits of `unswayed demo`, a fifth of them wrongly labelled, cleans the folder, opens the
review page in Chromium, decides about some labels by the truth, and takes screenshots: one label,
many labels, and the dark page. The decisions of an earlier call are removed.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from unswayed.cli.clean import clean
from unswayed.cli.demo import write_digits

DECISIONS, SIZE = 63, {"width": 1280, "height": 800}


def decide(page: Any, truth: dict[str, str], count: int) -> None:
    """Decide about the first labels of the queue by the truth."""
    for _ in range(count):
        page.keyboard.press(truth[page.inner_text("#id")])
    while page.inner_text("#saved") != "all saved" or page.is_visible("#toast"):
        page.wait_for_timeout(200)


def take(address: str, truth: dict[str, str], folder: Path) -> None:
    """Use the page, and write the pictures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        page.wait_for_selector("#single:not([hidden])")
        decide(page, truth, DECISIONS)
        while page.inner_text("#chance-text").startswith("Blind"):
            page.keyboard.press("ArrowRight")
        page.wait_for_timeout(500)
        page.screenshot(path=folder / "review-one.png")
        page.emulate_media(color_scheme="dark")
        page.keyboard.press("g")
        page.wait_for_timeout(1000)
        page.screenshot(path=folder / "review-many.png")
        browser.close()


def main() -> None:
    """Prepare, serve, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", metavar="DIR", default="runs/demo")
    parser.add_argument("--save", metavar="DIR", default="docs/images")
    args = parser.parse_args()
    top, folder = Path(args.runs), Path(args.save)
    folder.mkdir(parents=True, exist_ok=True)
    write_digits(top)
    run, _ = clean(top / "digits", top / "digits-run", 5, ["train.threads=1"], top=0)
    (run.path / "review.jsonl").unlink(missing_ok=True)
    with (top / "truth.csv").open(encoding="utf-8", newline="") as file:
        truth = {row["id"]: row["true"] for row in csv.DictReader(file)}
    words = ["review", str(run.path), "--no-browser", "--port", "0", "--reviewer", "you"]
    server = subprocess.Popen(
        [sys.executable, "-m", "unswayed", *words], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        address = re.search(r"http\S+", server.stdout.readline())
        assert address is not None
        take(address[0], truth, folder)
    finally:
        server.kill()
        server.communicate()


if __name__ == "__main__":
    main()
