from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import TOKEN, served
from test_journal import disk_of

from unswayed.audits.result import STOP
from unswayed.review import Slot
from unswayed.review.server import LARGEST_BODY, distinct

LOOSE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def client(run):
    with served(run) as made:
        yield made


def written(client):
    file = client.review.journal.path
    return file.read_bytes() if file.exists() else b""


def test_the_page_needs_the_token(client):
    for path in ("/", "/api/start", "/image/0/thumb"):
        assert client.send("GET", path, token="")[0] == 403
        assert client.send("GET", path, token=TOKEN[:-1] + "0")[0] == 403
        assert client.send("GET", f"{path}?token={TOKEN}", token="")[0] == 200
    assert client.send("POST", "/api/decide", "{}", token="")[0] == 403


def test_what_holds_no_data_needs_no_token(client):
    for path in ("/review.js", "/review.css", "/icon.svg"):
        status, _, body = client.send("GET", path, token="")
        assert status == 200
        assert TOKEN.encode() not in body


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.2:{port}"],
)
def test_another_name_for_this_machine_is_refused(client, host):
    headers = {"Host": host.format(port=client.port)}
    assert client.send("GET", "/", headers=headers)[0] in (400, 421)
    assert client.send("POST", "/api/undo", '{"reviewer": "x"}', headers)[0] in (400, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_pages_are_refused_even_with_the_token(client, headers):
    assert client.send("POST", "/api/undo", '{"reviewer": "x"}', headers)[0] == 403
    assert not written(client)


def test_two_hosts_in_one_request_are_refused(client):
    line = socket.create_connection(("127.0.0.1", client.port))
    mine = f"127.0.0.1:{client.port}"
    line.sendall(
        f"GET /?token={TOKEN} HTTP/1.1\r\nHost: {mine}\r\nHost: evil.example\r\n\r\n".encode()
    )
    assert line.recv(100).split()[1] in (b"400", b"421")
    line.close()


def test_every_answer_has_the_headers_that_keep_it_safe(client):
    for path in ("/", "/review.js", "/api/start", "/image/0/thumb", "/nothing"):
        headers = client.send("GET", path)[1]
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/../recipe.toml",
        "/%2e%2e/recipe.toml",
        "/image/0/..%2f..%2frecipe.toml",
        "/image/-1/thumb",
        "/image/0/huge",
        "/image/999999999999/thumb",
        "/review.jsonl",
        "/page/index.html",
        "//etc/passwd",
        "/review.js/../server.py",
    ],
)
def test_nothing_but_the_page_and_its_pictures_is_served(client, path):
    status, _, body = client.send("GET", path)
    assert status in (400, 404)
    assert len(body) < 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_decisions_are_posted_only(client, method):
    assert client.send(method, "/api/decide")[0] in (400, 405)


def test_a_decision_is_on_the_disk_before_it_is_confirmed(client):
    item = client.items()[0]
    status, said = client.decide(item, "relabel", label=item["suggested"])
    assert status == 200
    assert json.loads(written(client))["decision"] == "relabel"
    assert said["state"]["state"] == "relabel"
    assert said["progress"]["reviewed"] == 1
    client.decide(item, "relabel", label=item["suggested"])  # the same key, as after a lost answer
    assert written(client).count(b"\n") == 1
    assert client.ask("undo")[1]["samples"] == 1
    assert client.ask("undo", redo=True)[1]["progress"]["reviewed"] == 1


def test_a_full_disk_is_said_and_nothing_is_lost(client):
    first, second = client.items()[:2]
    client.decide(first)
    before = written(client)
    with disk_of(len(before) + 10):
        status, said = client.decide(second, key="1" * 16)
    assert (status, written(client)) == (507, before)
    assert said.startswith("not saved: ")
    assert client.decide(second, key="1" * 16)[0] == 200


def test_blind_checks_look_like_blind_suspects(run):
    # So many that chance leaves some of each kind, whatever the network has learnt.
    with served(run, recheck=0.4) as client:
        items = client.items(count=200)
        blind = [item for item in items if item["blind"]]
        rows = [item["row"] for item in blind]
        suspected = client.review.found.p_wrong[rows] >= STOP
        assert suspected.any()
        assert not suspected.all()
        assert len({tuple(sorted(item)) for item in blind}) == 1  # the same fields
        assert not {"p", "p_audit", "top", "near", "flags"} & set(blind[0])


def test_every_item_has_its_evidence(client):
    item = next(item for item in client.items() if not item["blind"])
    assert 0 <= item["p"] <= 1
    assert item["p"] == item["p_audit"]
    assert item["top"][0][1] >= item["top"][1][1]
    assert len(item["near"]) == 5
    assert client.send("GET", f"/image/{item['row']}/full")[1]["content-type"] == "image/png"


def test_accepting_all_needs_a_filter(client):
    status, said = client.ask("accept", filter={})
    assert (status, said) == (409, "choose a filter first, for example P(wrong) from 95 %")
    told = client.ask("accept", filter={"low": 0.5})[1]
    assert 0 < told["expected_right"] <= told["samples"]
    assert client.ask("accept", filter={"low": 0.5}, expected=told["samples"] + 1)[0] == 409
    assert not written(client)
    assert client.ask("accept", filter={"low": 0.5}, expected=told["samples"])[0] == 200


def test_a_page_of_another_run_is_told_to_reload(client):
    status, said = client.decide({"row": 5, "slot": "of another run"})
    assert (status, said) == (409, "the page is not that of this run; reload it")
    assert not written(client)


def test_names_that_were_cut_alike_are_told_apart():
    assert distinct(["cat", "dog…", "dog…"]) == ["cat", "dog… #1", "dog… #2"]


def test_a_request_may_not_be_large(client):
    assert client.send("POST", "/api/items", b"x" * (LARGEST_BODY + 1))[0] == 413


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = ["reviewer", "row", "slot", "decision", "label", "key", "filter", "start", "count", "redo"]
BODIES = (
    st.binary(max_size=100)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(st.sampled_from(NAMES), JSON).map(lambda value: json.dumps(value).encode())
)


@LOOSE
@given(what=st.sampled_from(["items", "decide", "accept", "undo", "progress"]), body=BODIES)
def test_nonsense_is_refused_and_nothing_is_written(client, what, body):
    status, _, text = client.send("POST", f"/api/{what}", body)
    assert status in (200, 409, 422)
    assert b"Traceback" not in text
    assert not written(client)


@LOOSE
@given(path=st.text(max_size=60))
def test_any_path_gets_an_answer(client, path):
    quoted = "".join(f"%{byte:02x}" for byte in path.encode("utf-8", "surrogatepass"))
    assert client.send("GET", f"/{quoted}", token="")[0] < 500


def test_many_requests_at_once_are_all_answered(client):
    def one(number):
        if number % 2:
            return client.send("GET", f"/image/{number}/thumb")[0]
        slot = client.review.name_of(Slot(number))
        return client.decide({"row": number, "slot": slot}, key=f"{number:016x}")[0]

    with ThreadPoolExecutor(50) as pool:
        assert {*pool.map(one, range(50))} == {200}
    assert written(client).count(b"\n") == 25


def test_another_server_on_the_same_run_sees_the_decision(run, client):
    with served(run) as other:
        item = client.items()[0]
        client.decide(item)
        assert other.ask("progress")[1]["progress"]["reviewed"] == 1
        assert item["row"] not in [each["row"] for each in other.items()]
