"""The server of the review page: for one person at this machine, and nobody else.

It listens on the loopback address only. Every answer with data needs the token from the address
that `unswayed review` printed. `Host` and `Origin` are checked, so that no other web page can reach
it, not even by a name that resolves to this machine.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unswayed.audits.result import STOP
from unswayed.errors import DamagedFileError, UsageError
from unswayed.report.text import shortened
from unswayed.review.journal import Choice
from unswayed.review.pictures import SIDES, Pictures
from unswayed.review.recalibration import Expected
from unswayed.review.review import Filter, Review, Slot
from unswayed.review.verdicts import OPEN, STATES

LARGEST_BODY = 16_384
"""Bytes of a request."""

MOST_ITEMS, NEIGHBOURS, PAIRS = 200, 5, 400
NAME, ID = 120, 300
"""Characters that a page shows of a class name and of an id."""

POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
FILES = {
    "review.js": "text/javascript",
    "review.css": "text/css",
    "icon.svg": "image/svg+xml",
}


class Body(BaseModel):
    """What a request says; anything else is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    reviewer: str = Field(min_length=1, max_length=100, pattern=r"\S")


class Asked(Body):
    """A stretch of the queue."""

    filter: Filter = Filter()
    start: int = Field(default=0, ge=0, le=10**9)
    count: int = Field(default=60, ge=0, le=MOST_ITEMS)


class Decided(Body):
    """A decision about one sample."""

    row: int = Field(ge=0, le=10**9)
    slot: str = Field(max_length=64)
    decision: Choice
    label: int | None = Field(default=None, ge=0, le=10**9)
    settles: bool = False  # the page showed that decisions differ
    key: str = Field(min_length=16, max_length=64, pattern=r"^[0-9a-f]+$")


class Turned(Body):
    """Undo or redo."""

    redo: bool = False
    of: str | None = Field(default=None, max_length=64)  # the key that the page wants undone


class Accepted(Body):
    """All suggestions of a filter; without `expected`, only say what would be done."""

    filter: Filter
    expected: int | None = Field(default=None, ge=0, le=10**9)
    key: str = Field(default="", max_length=64, pattern=r"^[0-9a-f]*$")


class Guard:
    """Refuses what does not come from the page itself, and adds the headers that keep it safe."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                mine = {name.encode(): value.encode() for name, value in HEADERS.items()}
                own = [pair for pair in message["headers"] if pair[0] == b"cache-control"]
                message["headers"] = [
                    *(pair for pair in message["headers"] if pair[0] not in mine),
                    *(mine | dict(own)).items(),
                ]
            await send(message)

        refused = self._refused(scope)
        answer = self.app if refused is None else refused
        await answer(scope, receive, send_safely)

    def _refused(self, scope: Scope) -> Response | None:
        headers: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value.decode("latin-1"))
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return say(421, "this server answers to 127.0.0.1 and localhost only")
        origins = headers.get(b"origin", [])
        foreign = any(origin != f"http://{hosts[0]}" for origin in origins)
        sites = headers.get(b"sec-fetch-site", [])
        if foreign or any(site not in ("same-origin", "none") for site in sites):
            return say(403, "this server answers to its own page only")
        return None


def say(status: int, words: str) -> Response:
    """Return a refusal in words."""
    return PlainTextResponse(words, status)


def as_json(value: Any) -> Response:
    """Return plain values as JSON; broken Unicode is escaped."""
    return Response(json.dumps(value), media_type="application/json")


class Server:
    """The answers to the page."""

    def __init__(
        self,
        review: Review,
        pictures: Pictures,
        token: str,
        *,
        title: str,
        reviewer: str,
        command: str = "unswayed review RUN",
        named: bool = False,
    ) -> None:
        """Take what the page is about.

        Args:
            review: the audit and its decisions.
            pictures: of the samples.
            token: that requests must have.
            title: of the page.
            reviewer: who decides, unless the page says another name.
            command: that starts the server again.
            named: whether somebody gave that name; the page then uses no other from before.
        """
        self.review, self.pictures, self.token = review, pictures, token
        self.title, self.command, self.reviewer, self.named = title, command, reviewer, named
        self.classes = distinct([shortened(name, NAME) for name in review.found.classes])

    def app(self, port: int) -> ASGIApp:
        """Return the application for a port."""
        asks: dict[str, Callable[[Any], Any]] = {
            "items": self.items,
            "decide": self.decide,
            "undo": self.undo,
            "accept": self.accept,
            "progress": self.progress,
        }
        kinds: Mapping[str, type[Body]] = {
            "items": Asked,
            "decide": Decided,
            "undo": Turned,
            "accept": Accepted,
            "progress": Body,
        }
        routes = [
            Route("/", self.page),
            Route("/api/start", self.start),
            Route("/image/{row:int}/{size:str}", self.image),
            *(
                Route(f"/api/{name}", partial(self._answer, kinds[name], ask), methods=["POST"])
                for name, ask in asks.items()
            ),
            *(Route(f"/{name}", partial(asset, name, kind)) for name, kind in FILES.items()),
        ]
        return Guard(Starlette(routes=routes), port)

    def _may(self, request: Request) -> bool:
        """Return whether a request has the token, in its address or in a header."""
        given = request.headers.get("x-token") or request.query_params.get("token", "")
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def page(self, request: Request) -> Response:
        """Return the page."""
        if not self._may(request):
            return say(403, "open the address that `unswayed review` printed, with its token")
        return asset("index.html", "text/html", request)

    async def start(self, request: Request) -> Response:
        """Return what the page needs once."""
        if not self._may(request):
            return say(403, "the token is wrong")
        try:
            return as_json(await run_in_threadpool(self._start))
        except (OSError, DamagedFileError) as error:
            return say(500, shortened(str(error), ID))

    def _start(self) -> dict[str, Any]:
        found = self.review.found
        self.review.refresh()
        return {
            "title": shortened(self.title, NAME),
            "run": self.review.identity,
            "command": shortened(self.command, ID),
            "reviewer": self.reviewer,
            "named": self.named,
            "classes": self.classes,
            "samples": len(found),
            "stop": STOP,
            "rate": [found.noise.rate, found.noise.low, found.noise.high],
            "warnings": [shortened(text, ID) for text in found.warnings[:5]],
            "pairs": self._pairs(),
            **self._standing(self.reviewer),
        }

    def _pairs(self) -> list[tuple[int, int, int]]:
        """Return pairs of given and suggested class with the number of labels worth a look."""
        found = self.review.found
        above = found.p_wrong >= STOP
        key = found.given[above] * len(found.classes) + found.suggested[above]
        pair, count = np.unique(key, return_counts=True)
        most = np.argsort(-count, kind="stable")[:PAIRS]
        return [(*divmod(int(pair[n]), len(found.classes)), int(count[n])) for n in most.tolist()]

    async def image(self, request: Request) -> Response:
        """Return the picture of a sample."""
        if not self._may(request):
            return say(403, "the token is wrong")
        row, size = request.path_params["row"], request.path_params["size"]
        if row >= len(self.review.found) or size not in SIDES:
            return say(404, "there is no such image")
        try:
            made = await run_in_threadpool(self.pictures.get, row, size)
        except UsageError as error:
            return say(404, shortened(str(error), ID))
        headers = {"cache-control": "private, max-age=86400"}
        return Response(made.content, media_type=made.kind, headers=headers)

    async def _answer(
        self, kind: type[Body], ask: Callable[[Any], Any], request: Request
    ) -> Response:
        """Check a request, and answer it in a thread of its own."""
        if not self._may(request):
            return say(403, "the token is wrong")
        data = b""
        async for part in request.stream():
            data += part
            if len(data) > LARGEST_BODY:
                return say(413, f"a request has at most {LARGEST_BODY:,} bytes")
        try:
            body = kind.model_validate_json(data)
        except (ValidationError, ValueError) as error:
            return say(422, shortened(" ".join(str(error).split()), ID))
        try:
            return as_json(await run_in_threadpool(ask, body))
        except UsageError as error:
            return say(409, shortened(str(error), ID))
        except (OSError, DamagedFileError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            return say(507, f"not saved: {shortened(str(reason), ID)}")

    def items(self, asked: Asked) -> dict[str, Any]:
        """Return a stretch of the queue."""
        review = self.review
        review.refresh()
        with review.lock:
            slots = review.slots(asked.filter, asked.start, asked.count, asked.reviewer)
            total = int(review.matching(asked.filter).sum())
            return {
                "items": [self._item(slot) for slot in slots],
                "total": total,
                "version": review.version,
            }

    def decide(self, said: Decided) -> dict[str, Any]:
        """Write a decision, and answer once it is on the disk."""
        if said.row >= len(self.review.found):
            raise UsageError(f"there is no row {said.row}")
        slot = self.review.slot_of(said.row, said.slot)
        self.review.decide(
            slot,
            said.decision,
            said.reviewer,
            label=said.label,
            key=said.key,
            settles=said.settles,
        )
        return {"state": self._state(said.row), **self._standing(said.reviewer)}

    def undo(self, said: Turned) -> dict[str, Any]:
        """Undo or redo."""
        slots = self.review.undo(said.reviewer, redo=said.redo, of=said.of)
        return {
            "samples": len(slots),
            "items": [self._item(slot, repeated=said.redo) for slot in slots[:1]],
            **self._standing(said.reviewer),
        }

    def accept(self, said: Accepted) -> dict[str, Any]:
        """Say what accepting all suggestions would do, or do it."""
        if said.filter.is_plain:
            raise UsageError("choose a filter first, for example P(wrong) from 95 %")
        if said.expected is None:
            self.review.refresh()
            return self.review.preview(said.filter)._asdict()
        count = self.review.accept_all(said.filter, said.reviewer, said.expected, said.key)
        return {"samples": count, **self._standing(said.reviewer)}

    def progress(self, said: Body) -> dict[str, Any]:
        """Say where the review stands, also if somebody else went on with it."""
        self.review.refresh()
        return self._standing(said.reviewer)

    def _standing(self, reviewer: str) -> dict[str, Any]:
        review = self.review
        with review.lock:
            return {
                "progress": {
                    name: value._asdict() if isinstance(value, Expected) else value
                    for name, value in review.progress()._asdict().items()
                },
                "tabs": review.tabs(),
                "version": review.version,
                "undo": review.verdicts.can_undo(reviewer),
                "redo": review.verdicts.can_redo(reviewer),
            }

    def _state(self, row: int) -> dict[str, Any]:
        verdicts = self.review.verdicts
        label = int(verdicts.label[row])
        return {
            "state": STATES[verdicts.state[row]],
            "label": label if label >= 0 else None,
            "opinions": [
                {
                    "reviewer": shortened(each.reviewer, NAME),
                    "state": STATES[each.state],
                    "label": each.label if each.label >= 0 else None,
                    "again": each.again,
                }
                for each in verdicts.opinions(row)
            ],
        }

    def _item(self, slot: Slot, *, repeated: bool = False) -> dict[str, Any]:
        """Return what the page shows of a sample; of a blind one, no number and no neighbour.

        Args:
            slot: its place in the queue.
            repeated: whether a second look at it was made just now.
        """
        review, found, row = self.review, self.review.found, slot.row
        state = self._state(row)
        if slot.how == "repeat" and not repeated:  # as if nobody had decided
            state = {"state": STATES[OPEN], "label": None, "opinions": []}
        item = {
            "row": row,
            "slot": review.name_of(slot),
            "id": shortened(str(found.ids[row]), ID, keep_end=True),
            "given": int(found.given[row]),
            "suggested": int(found.suggested[row]),
            "blind": slot.blind,
            "twins": [(twin, int(found.given[twin])) for twin in review.twins(row)[:NEIGHBOURS]],
            **state,
        }
        if slot.blind:
            return item
        near = [] if found.nearest is None else found.nearest[row].tolist()
        return item | {
            "p": float(review.p_wrong[row]),
            "p_audit": float(found.p_wrong[row]),
            "top": self._top(row),
            "near": [(other, int(found.given[other])) for other in near if other != row],
            "flags": found.flags.get(row, ""),
            "held_out": bool(review.held_out[row]),
        }

    def _top(self, row: int) -> list[tuple[int, float]]:
        """Return the most probable classes, corrected as P(wrong) is."""
        found, p = self.review.found, float(self.review.p_wrong[row])
        if found.top is None or found.p_top is None:
            return [(int(found.suggested[row]), float(self.review.p_suggested[row]))]
        more = p / max(float(found.p_wrong[row]), 1e-12)
        given = int(found.given[row])
        pairs = zip(found.top[row].tolist(), found.p_top[row].tolist(), strict=True)
        top = [(k, 1 - p if k == given else min(x * more, p)) for k, x in pairs]
        return sorted(top, key=lambda each: -each[1])


def distinct(names: list[str]) -> list[str]:
    """Return names of which no two look the same, though they were cut."""
    count = Counter(names)
    return [f"{name} #{k}" if count[name] > 1 else name for k, name in enumerate(names)]


def asset(name: str, kind: str, _request: Request) -> Response:
    """Return a file of the page."""
    file = resources.files("unswayed.review") / "page" / name
    return Response(file.read_bytes(), media_type=f"{kind}; charset=utf-8")
