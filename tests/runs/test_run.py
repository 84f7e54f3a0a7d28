from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal

import numpy as np
import pytest
import torch
from PIL import Image

import unswayed
from unswayed import InterruptedRunError, Recipe, Run, UsageError, files
from unswayed.errors import DamagedFileError
from unswayed.session import Opened
from unswayed.types import Epoch, Step


def tensors(path):
    return files.read_tensors(path)[0]


def equal(a, b):
    return a.keys() == b.keys() and all(
        torch.equal(a[k].reshape(-1).view(torch.uint8), b[k].reshape(-1).view(torch.uint8))
        for k in a
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    from conftest import TINY

    return unswayed.train("digits", *TINY, run=tmp_path_factory.mktemp("run") / "done")


def test_a_run_holds_everything(finished):
    names = {p.name for p in finished.path.iterdir()}
    assert {
        "recipe.toml",
        "provenance.json",
        "samples.npz",
        "predictions.safetensors",
        "metrics.jsonl",
        "summary.json",
        "model.safetensors",
        "selected.safetensors",
        "config.json",
        "README.md",
    } <= names
    origin = finished.provenance
    assert origin.seed == 0
    assert origin.noise.realised_rate == pytest.approx(0.4, abs=0.001)
    assert np.array(origin.noise.realised_matrix).shape == (10, 10)
    assert origin.hardware.threads == 1
    assert len(origin.data.fingerprint) == 64
    assert not list(finished.path.rglob("*.tmp"))


def test_nothing_on_disk_is_a_pickle(finished):
    suffixes = {p.suffix for p in finished.path.rglob("*") if p.is_file() and p.name != ".lock"}
    assert suffixes <= {".toml", ".json", ".jsonl", ".npz", ".safetensors", ".md"}
    with np.load(finished.path / "samples.npz", allow_pickle=False) as arrays:
        assert set(arrays.files) == {"ids", "ids_end", "given", "true", "holdout"}


def test_records_are_by_sample_and_epoch(finished):
    records, labels = finished.records(), finished.samples()
    assert records.loss.shape == (2, len(labels.ids))
    trained = ~np.isin(np.arange(len(labels.ids)), labels.holdout)
    assert (records.predicted.numpy()[:, ~trained] == -1).all()
    wrong = (labels.given != labels.true) & trained
    assert np.nanmean(records.loss[1].numpy()[wrong]) > np.nanmean(
        records.loss[1].numpy()[trained & ~wrong]
    )


@pytest.mark.parametrize("which", ["last", "selected"])
def test_the_weights_reproduce_the_recorded_accuracy(finished, which):
    found = unswayed.evaluate(finished)[which]["test_accuracy"]
    assert found == getattr(finished.summary, which).test_accuracy


def test_a_finished_run_is_not_trained_again(finished):
    seen = []
    again = unswayed.train(
        Recipe.load(finished.path / "recipe.toml"), run=finished.path, watch=seen.append
    )
    assert again.summary == finished.summary
    assert unswayed.resume(finished.path, watch=seen.append).finished
    assert [(event.run.path, event.state) for event in seen] == [(finished.path, "finished")] * 2


def test_another_recipe_in_the_same_folder_is_refused(finished):
    with pytest.raises(UsageError, match=r"differs in optimizer\.lr"):
        unswayed.train(
            Recipe.load(finished.path / "recipe.toml", "optimizer.lr=0.7"), run=finished.path
        )


def test_the_resolved_recipe_loads_to_itself(finished, tiny):
    assert Recipe.load(finished.path / "recipe.toml").difference(tiny) == []


def stop_after(count, number=signal.SIGINT):
    """Return a watcher that sends this process a signal at the count-th event."""
    events = []

    def watch(event):
        if isinstance(event, Opened):
            return
        events.append(event)
        if len(events) == count:
            os.kill(os.getpid(), number)

    return watch


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("count", [1, 9, 12])
def test_a_signal_leaves_a_run_that_resumes_to_the_same_bits(
    finished, tiny, tmp_path, number, count
):
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError, match="unswayed resume") as stopped:
        unswayed.train(tiny, run=path, watch=stop_after(count, number))
    assert stopped.value.exit_code == 128 + number
    assert not Run(path).finished
    run = unswayed.resume(path)
    for name in ("model.safetensors", "selected.safetensors"):
        assert equal(tensors(path / name), tensors(finished.path / name))
    assert all(
        torch.equal(a.view(torch.uint8), b.view(torch.uint8))
        for a, b in zip(run.records(), finished.records(), strict=True)
    )
    rows = [[r.model_dump(exclude={"seconds"}) for r in each.metrics] for each in (run, finished)]
    assert rows[0] == rows[1]
    assert equal(*(tensors(p / "predictions.safetensors") for p in (path, finished.path)))


def interrupted(recipe, path, count=12):
    with pytest.raises(InterruptedRunError):
        unswayed.train(recipe, run=path, watch=stop_after(count))
    return sorted((path / "checkpoints").glob("state-*"))


def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(finished, tiny, tmp_path):
    path = tmp_path / "run"
    states = interrupted(tiny, path)
    assert len(states) == 2
    states[-1].write_bytes(states[-1].read_bytes()[:-100])
    with pytest.warns(UserWarning, match="damaged and was set aside"):
        unswayed.resume(path)
    assert equal(tensors(path / "model.safetensors"), tensors(finished.path / "model.safetensors"))


def test_without_any_good_checkpoint_training_starts_anew(finished, tiny, tmp_path):
    path = tmp_path / "run"
    for state in interrupted(tiny, path):
        state.write_bytes(b"")
    record = path / "records" / "epoch-0000.safetensors"
    good = record.read_bytes()
    with pytest.warns(UserWarning, match="damaged and was set aside; going on from the start"):
        unswayed.resume(path)
    assert record.with_suffix(".older").read_bytes() == good
    assert equal(tensors(path / "model.safetensors"), tensors(finished.path / "model.safetensors"))


def test_changed_data_are_noticed(tiny, tmp_path):
    path = tmp_path / "run"
    interrupted(tiny, path, 2)
    train, test = tiny.build("data")
    train.images[0, 0, 0, 0] ^= 1
    with pytest.raises(UsageError, match="training data are not those"):
        unswayed.resume(path, data=unswayed.Splits(train, test))


def _hold(path, held, release):
    with Run(path).lock():
        held.set()
        release.wait(30)


def test_a_second_process_is_refused(tiny, tmp_path):
    path = tmp_path / "run"
    interrupted(tiny, path, 2)
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(path, held, release))
    other.start()
    try:
        assert held.wait(60)
        with pytest.raises(UsageError, match="another process"):
            unswayed.resume(path)
    finally:
        release.set()
        other.join(30)
    assert unswayed.resume(path).finished


def test_without_a_holdout_there_is_no_selected_model(tiny, tmp_path):
    recipe = Recipe.from_dict(tiny.sections, "train.holdout=0", "train.epochs=1")
    run = unswayed.train(recipe, run=tmp_path / "run")
    assert run.summary.selected is None
    with pytest.raises(UsageError, match="without a hold-out"):
        run.classifier("selected")
    assert "selected" not in unswayed.evaluate(run)


def test_an_unfinished_run_says_how_to_go_on(tiny, tmp_path):
    interrupted(tiny, tmp_path / "run", 2)
    with pytest.raises(UsageError, match="unswayed resume"):
        Run(tmp_path / "run").classifier()


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="not a run folder"):
        Run(tmp_path)


def test_a_folder_with_other_things_in_it_is_left_alone(tiny, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        unswayed.train(tiny, run=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_watchers_see_steps_and_epochs(tiny, tmp_path):
    seen = []
    unswayed.train(tiny, "train.epochs=1", run=tmp_path / "run", watch=seen.append)
    assert (seen[0].state, seen[0].run.path) == ("new", tmp_path / "run")
    assert isinstance(seen[1], Step)
    assert isinstance(seen[-1], Epoch)


def test_checkpoints_are_ordered_by_number_not_by_letter(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    run = Run(path)
    for epoch in (9998, 9999, 10000, 10001):
        run.write_checkpoint({"x": torch.zeros(1)}, {"epoch": epoch, "step": 0})
    assert run.newest_state()[1]["epoch"] == 10001


def test_a_run_on_ones_own_data_says_that_it_needs_them_again(tiny, tmp_path):
    train, test = tiny.build("data")
    splits = unswayed.Splits(train, test)
    run = unswayed.train(tiny, "train.epochs=1", run=tmp_path / "run", data=splits)
    assert run.recipe.sections["data"] == {"name": "memory", "corrected": None}
    with pytest.raises(UsageError, match="pass them again"):
        unswayed.evaluate(run)
    found = unswayed.evaluate(run, data=splits)["last"]["test_accuracy"]
    assert found == run.summary.last.test_accuracy
    test.images[0, 0, 0, 0] ^= 1
    with pytest.raises(UsageError, match="test data are not those"):
        unswayed.evaluate(run, data=splits)
    with pytest.raises(UsageError, match="test data are not those"):
        unswayed.train(tiny, "train.epochs=1", run=tmp_path / "run", data=splits)


def test_lost_selected_weights_do_not_block_the_end(tiny, tmp_path):
    path = tmp_path / "run"
    interrupted(tiny, path)
    for kept in (path / "checkpoints").glob("selected-*"):
        kept.write_bytes(b"")
    recipe = path / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("evaluate_every = 1", "evaluate_every = 2"))
    run = unswayed.resume(path)
    assert run.finished


def test_a_resumed_run_keeps_its_name_and_its_metrics(tiny, tmp_path):
    path = tmp_path / "run"
    interrupted(tiny, path)
    (path / "metrics.jsonl").write_text("broken\nbroken\n")
    run = unswayed.resume(path)
    assert run.summary.name == run.recipe.name == "digits"
    (resumed,) = run.provenance.resumed
    assert resumed.commit == run.provenance.commit
    assert resumed.started >= run.provenance.started
    assert [row.epoch for row in run.metrics] == [0, 1]


def test_damage_in_a_finished_run_is_named(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    (path / "config.json").write_text("{")
    with pytest.raises(DamagedFileError, match=r"config\.json"):
        Run(path).classifier()
    (path / "recipe.toml").write_text("[")
    with pytest.raises(DamagedFileError, match=r"recipe\.toml"):
        _ = Run(path).recipe


@pytest.mark.parametrize("length", [0, 10, 200, -300, -1])
def test_samples_that_were_cut_short_are_named(finished, tmp_path, length):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    samples = path / "samples.npz"
    samples.write_bytes(samples.read_bytes()[:length])
    with pytest.raises(DamagedFileError, match=r"samples\.npz is damaged"):
        Run(path).samples()


def test_files_can_be_read_by_those_the_umask_allows(finished):
    modes = {
        p.stat().st_mode & 0o777
        for p in finished.path.iterdir()
        if p.suffix in (".json", ".safetensors")
    }
    assert modes == {0o666 & ~files._UMASK}


def test_what_cannot_be_opened_is_not_taken_for_damaged(tiny, tmp_path, monkeypatch):
    path = tmp_path / "run"
    states = interrupted(tiny, path)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "read_tensors", refuse)
    with pytest.raises(PermissionError):
        unswayed.resume(path)
    assert all(state.exists() for state in states)


def test_two_networks_are_shipped_as_one(tiny, tmp_path):
    recipe = Recipe.from_dict(tiny.sections, "method=coteaching", "train.epochs=1")
    run = unswayed.train(recipe, run=tmp_path / "run")
    net = run.classifier()
    assert len(net.parts) == run.config.members == 2
    images = torch.randint(0, 256, (4, 1, 8, 8), dtype=torch.uint8)
    expected = torch.stack([part(images) for part in net.parts]).mean(0).softmax(1)
    assert torch.allclose(net.predict_proba(images), expected)
    found = unswayed.evaluate(run)["last"]["test_accuracy"]
    assert found == run.summary.last.test_accuracy


def test_predictions_are_of_every_row_and_agree_with_the_network(finished):
    found, samples = finished.predictions(), finished.samples()
    train = finished.data().train
    assert found.logits.shape == (len(samples.ids), 10)
    assert found.logits.dtype == found.features.dtype == torch.float16
    expected = finished.classifier().predict_proba(train.images)
    assert torch.allclose(found.probabilities, expected, atol=5e-3)
    assert torch.isfinite(found.probabilities[torch.from_numpy(samples.holdout)]).all()
    head = finished.classifier().head
    assert torch.allclose(head(found.features.float()), found.logits.float(), atol=0.05)


@pytest.mark.parametrize("keep", ["probabilities", "none"])
def test_less_can_be_kept_of_very_large_data(tiny, tmp_path, keep):
    words = ("train.epochs=1", f"train.predictions={keep}")
    run = unswayed.train(tiny, *words, run=tmp_path / "run")
    if keep == "none":
        with pytest.raises(UsageError, match=r"train\.predictions=none"):
            run.predictions()
    else:
        assert run.predictions().features is None
        assert run.predictions().logits.shape[1] == 10


def test_the_data_of_a_run_have_the_labels_that_were_given(finished):
    train, test = finished.data()
    samples = finished.samples()
    assert np.array_equal(train.given, samples.given)
    assert np.array_equal(train.true, samples.true)
    assert list(train.ids) == samples.ids.tolist()
    assert test is not None


def test_an_image_is_found_by_its_id(finished):
    name = str(finished.samples().ids[5])
    picture = np.asarray(finished.image(name))
    assert np.array_equal(picture, finished.data().train.images[5, 0].numpy())
    with pytest.raises(UsageError, match="no training sample 'nobody'"):
        finished.image("nobody")


def test_an_image_that_is_a_file_comes_in_full_size(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(40):
        folder = tmp_path / "photos" / ("cat" if number % 2 else "dog")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (50, 40, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.{'jpg' if number == 1 else 'png'}")
    words = (
        "data.name=folder",
        f"data.path={tmp_path / 'photos'}",
        "data.size=8",
        "noise.name=none",
    )
    small = ("train.batch_size=8", "train.epochs=1", "model.width=4", "train.threads=1")
    run = unswayed.train("digits-ce", *words, *small, run=tmp_path / "run")
    assert run.provenance.data.root == str(tmp_path / "photos")
    samples = run.samples()
    assert samples.paths[0] == str(samples.ids[0])
    assert samples.paths[0].endswith("01.jpg")
    name = str(samples.ids[0])
    assert run.image(name).size == (40, 50)
    assert run.image(name, side=20).size == (20, 25)  # a JPEG is shrunk while it is decoded


def test_a_run_of_the_old_layout_is_refused_in_one_line(finished, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(finished.path, path)
    known = json.loads((path / "provenance.json").read_text())
    del known["layout"]
    (path / "provenance.json").write_text(json.dumps(known))
    for read in (lambda r: r.recipe, lambda r: r.summary, lambda r: r.classifier()):
        with pytest.raises(
            UsageError, match=r"layout 1, this one reads 2\); train it again"
        ) as said:
            read(Run(path))
        assert "\n" not in str(said.value)


def test_equal_runs_are_equal_files(finished, tiny, tmp_path):
    again = unswayed.train(tiny, run=tmp_path / "run")
    for name in ("model.safetensors", "selected.safetensors", "predictions.safetensors"):
        assert (again.path / name).read_bytes() == (finished.path / name).read_bytes()


def test_data_of_another_kind_are_refused_with_a_hint(tiny):
    with pytest.raises(UsageError, match=r"data is a list; pass unswayed\.Dataset"):
        unswayed.train(tiny, data=[1, 2])


def test_one_data_set_is_enough(tiny, tmp_path):
    train = tiny.build("data").train
    words = ("train.epochs=3", "model.name=small", "model.width=4", "framework.name=none")
    run = unswayed.train("safe", *words, run=tmp_path / "run", data=train)
    assert run.summary.last.test_accuracy is None
    assert run.summary.last.holdout_accuracy is not None
