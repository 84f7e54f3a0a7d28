"""Look at suspicious labels in the browser, and decide.

Opens a page for this machine alone. Every decision is written to RUN/review.jsonl before the page
confirms it, so nothing is lost by closing the browser, by Ctrl-C or by a power cut: the same
command goes on. `--merge FILE` adds decisions that somebody else made, in another journal or in a
report, and opens no page.
"""

from __future__ import annotations

import argparse
import getpass
import os
import secrets
import shlex
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unswayed.errors import UsageError

if TYPE_CHECKING:
    from unswayed.review import Review
    from unswayed.runs import Run

PORT = 8642
"""Tried first, so that the page can be reloaded after a restart."""

TOKEN = ".review-token"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("run", metavar="RUN", help="a run folder with an audit")
    add("--port", type=int, metavar="N", help=f"the port ({PORT}, or any that is free)")
    add("--no-browser", action="store_true", help="print the address, and open no browser")
    add("--reviewer", metavar="NAME", help="who decides (default: the name of the user)")
    add("--recheck", type=float, default=0.05, metavar="SHARE", help="of blind checks (0.05)")
    add("--merge", metavar="FILE", help="add the decisions of this file, and open no page")


def run(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, or merge."""
    from unswayed.review import open_review
    from unswayed.runs import Run

    if args.reviewer is not None and not args.reviewer.strip():
        raise UsageError("--reviewer is empty; give a name, or leave it out")
    judged = Run(args.run)
    review = open_review(judged, args.recheck)
    review.journal.check_writable()
    if args.merge:
        merge(review, Path(args.merge))
    else:
        serve(review, judged, args)
    conclude(review, judged)
    return 0


def merge(review: Review, file: Path) -> None:
    """Add decisions of a file, and say what came of it."""
    from unswayed.review.journal import read_events

    events = read_events(file)
    before = review.progress().disputed
    added = review.merge(events, str(file))
    print(f"{added:,} of {len(events):,} decisions in {file} are new")
    disputed = review.progress().disputed - before
    if disputed > 0:
        print(f"{disputed:,} of them contradict decisions that were there")


def serve(review: Review, judged: Run, args: argparse.Namespace) -> None:
    """Serve the page until it is interrupted."""
    import uvicorn

    from unswayed.review.pictures import pictures_of
    from unswayed.review.server import Server

    pictures = pictures_of(judged)
    listener = listen(args.port)
    port = listener.getsockname()[1]
    token = kept_token(judged.path)
    title = judged.path.name or judged.path.resolve().name
    server = Server(
        review,
        pictures,
        token,
        title=title,
        command=shlex.join(["unswayed", "review", str(judged.path)]),
        reviewer=args.reviewer or reviewer_name(),
        named=args.reviewer is not None,
    )
    address = f"http://127.0.0.1:{port}/?token={token}"
    print(f"review at: {address}", flush=True)
    print("Ctrl-C ends it; nothing is lost", file=sys.stderr, flush=True)
    if not args.no_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    options: dict[str, Any] = {"log_level": "warning", "lifespan": "off", "server_header": False}
    config = uvicorn.Config(server.app(port), timeout_graceful_shutdown=1, **options)
    with suppress(KeyboardInterrupt):  # uvicorn raises it once more when it has ended
        uvicorn.Server(config).run(sockets=[listener])


def listen(port: int | None) -> socket.socket:
    """Return a socket that listens on the loopback address."""
    if port is not None and not 0 <= port < 2**16:
        raise UsageError(f"--port must lie between 0 and 65535, not {port}")
    for tried in [port] if port is not None else [PORT, 0]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", tried))
            listener.listen(128)
        except OSError as error:
            listener.close()
            reason = error.strerror
        else:
            return listener
    raise UsageError(
        f"port {port} cannot be used ({reason}); choose another with --port, or leave --port out"
    )


def kept_token(folder: Path) -> str:
    """Return the token of a run, so that its address is the same after a restart.

    Only the owner can read the file; somebody else gets a token for this time.
    """
    file = folder / TOKEN
    with suppress(OSError):
        text = file.read_text(encoding="ascii", errors="replace").strip()
        if len(text) >= 32 and text.isalnum():
            return text
        file.unlink()
    token = secrets.token_hex(16)
    with suppress(OSError):
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as opened:
            opened.write(token)
    return token


def reviewer_name() -> str:
    """Return the name of the user, if the system knows it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "reviewer"


def conclude(review: Review, judged: Run) -> None:
    """Say what was decided, what is left, and what to do next."""
    folder, progress = shlex.quote(str(judged.path)), review.progress()
    hidden = progress.hidden
    print(
        f"decided: {progress.reviewed:,}, wrong: {progress.wrong:,}, to remove: "
        f"{progress.removed:,}, unsure: {progress.unsure:,}"
        + (f", accepted unseen: {progress.unseen:,}" if progress.unseen else "")
    )
    print(
        f"still hidden: {hidden.low:,.0f} to {hidden.high:,.0f} wrong labels, probably about "
        f"{hidden.value:,.0f}; {progress.to_stop:,} labels are worth a look"
    )
    if progress.disputed:
        print(f"disputed: {progress.disputed:,}; settle them: unswayed review {folder}")
    print(f"corrected labels: unswayed export {folder}")
