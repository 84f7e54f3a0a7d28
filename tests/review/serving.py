"""A real server in a thread, and requests to it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import contextmanager

import uvicorn

from unswayed.cli.review import listen
from unswayed.review import open_review
from unswayed.review.pictures import pictures_of
from unswayed.review.server import Server

TOKEN = "0123456789abcdef0123456789abcdef"


class Client:
    """Sends requests as somebody who knows the port, and perhaps the token."""

    def __init__(self, port, review):
        self.port, self.review = port, review

    def send(self, method, path, body=None, headers=None, *, token=TOKEN):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        known = {"X-Token": token} if token else {}
        try:
            line.request(method, path, body, {**known, **(headers or {})})
            answer = line.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            line.close()

    def ask(self, what, **body):
        """Return status, and what the server says as plain values."""
        status, _, text = self.send("POST", f"/api/{what}", json.dumps({"reviewer": "me", **body}))
        return status, json.loads(text) if status == 200 else text.decode()

    def items(self, **body):
        return self.ask("items", **body)[1]["items"]

    def decide(self, item, decision="keep", key="0" * 16, **more):
        known = {"row": item["row"], "slot": item["slot"], "decision": decision, "key": key}
        return self.ask("decide", **known, **more)


@contextmanager
def served(run, **options):
    """Serve a run, and yield a client."""
    review = open_review(run, **options)
    listener = listen(0)
    port = listener.getsockname()[1]
    app = Server(review, pictures_of(run), TOKEN, title=run.path.name, reviewer="me").app(port)
    config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Client(port, review)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
