from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from audited import audited_run, write_digits
from unswayed import Run
from unswayed.cli import main
from unswayed.cli.review import TOKEN, kept_token, listen
from unswayed.review import Slot, open_review


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    top = tmp_path_factory.mktemp("review")
    return audited_run(write_digits(top / "digits", 30, 4), top / "run", "train.epochs=2")


@pytest.fixture
def run(trained, tmp_path):
    return Run(shutil.copytree(trained.path, tmp_path / "run"))


def test_a_run_without_an_audit_is_told_how_to_get_one(run, capsys):
    (run.path / "audit.safetensors").unlink()
    assert main(["review", str(run.path)]) == 2
    assert f"unswayed audit {run.path}" in capsys.readouterr().err


def test_a_reviewer_has_a_name(run, capsys):
    assert main(["review", str(run.path), "--reviewer", " "]) == 2
    assert "--reviewer is empty" in capsys.readouterr().err


def test_a_port_in_use_is_named(run, capsys):
    taken = listen(0)
    port = taken.getsockname()[1]
    assert main(["review", str(run.path), "--port", str(port)]) == 2
    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert main(["review", str(run.path), "--port", "99999"]) == 2
    taken.close()


def test_the_usual_port_gives_way_if_it_is_taken():
    first, second = listen(None), listen(None)
    assert first.getsockname() != second.getsockname()
    assert {first.getsockname()[0], second.getsockname()[0]} == {"127.0.0.1"}
    first.close()
    second.close()


def test_the_token_stays_and_only_its_owner_can_read_it(tmp_path):
    token = kept_token(tmp_path)
    assert len(token) == 32
    assert kept_token(tmp_path) == token
    assert (tmp_path / TOKEN).stat().st_mode & 0o777 == 0o600
    (tmp_path / TOKEN).write_text("short", encoding="ascii")
    assert kept_token(tmp_path) not in ("short", token)


def test_merging_says_what_is_new_and_what_differs(run, tmp_path, capsys):
    other = Run(shutil.copytree(run.path, tmp_path / "other"))
    open_review(run).decide(Slot(1), "keep", "me")
    theirs = open_review(other)
    theirs.decide(Slot(1), "none", "you")
    theirs.decide(Slot(2), "none", "you")
    journal = str(other.path / "review.jsonl")
    assert main(["review", str(run.path), "--merge", journal]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 decisions" in out
    assert "1 of them contradict" in out
    assert "disputed: 1; settle them" in out
    assert "unswayed export" in out
    assert main(["review", str(run.path), "--merge", journal]) == 0
    assert "0 of 2 decisions" in capsys.readouterr().out
    assert main(["review", str(run.path), "--merge", str(tmp_path / "nothing")]) == 2


def test_the_command_serves_the_page_and_ends_with_what_was_decided(run):
    words = [sys.executable, "-m", "unswayed", "review", str(run.path), "--no-browser"]
    server = subprocess.Popen(
        [*words, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=\w{32}", server.stdout.readline())
        with urllib.request.urlopen(address[0], timeout=20) as answer:
            assert b"review.js" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address[0][:-1], timeout=20)
        headers = {"x-token": address[0][-32:]}
        slot = open_review(run).name_of(Slot(1))
        said = {"row": 1, "slot": slot, "decision": "keep", "key": "0" * 16, "reviewer": "me"}
        request = urllib.request.Request(
            f"http://127.0.0.1:{address[1]}/api/decide", json.dumps(said).encode(), headers
        )
        urllib.request.urlopen(request, timeout=20).close()
    finally:
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert server.returncode == 0
    assert "Traceback" not in err
    assert "decided: 1, wrong: 0" in out
    assert f"unswayed export {run.path}" in out
