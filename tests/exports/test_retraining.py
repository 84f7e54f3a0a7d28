from __future__ import annotations

import unswayed
from exports.examples import decide, trained
from unswayed.exports.retraining import prepare_retraining

SMALL = ("data.size=8", "data.test_fraction=0.97")


def test_the_same_recipe_is_trained_on_corrected_labels_beside_the_run(tmp_path):
    run = trained(tmp_path / "run", *SMALL, "noise.name=symmetric", 'train.budget="0.00003 TFLOP"')
    decide(run, 0, "remove")
    recipe, folder, labels = prepare_retraining(run, 0.8)
    assert folder == tmp_path / "run-corrected"
    assert labels.path == run.path / "corrected.csv"
    assert recipe.settings.epochs == run.summary.epochs > 1
    assert set(recipe.difference(run.recipe)) <= {
        *(f"noise.{option}" for option in run.recipe.sections["noise"]),
        *("data.corrected", "train.epochs", "train.budget", "train.precision"),
    }
    assert recipe.sections["noise"] == {"name": "none"}
    made = unswayed.train(recipe, run=folder)
    assert made.provenance.data.samples == len(run.samples().ids) - 1


def test_the_same_labels_are_trained_once_and_others_beside(tmp_path):
    run = trained(tmp_path / "run", *SMALL)
    first = prepare_retraining(run, 0.8)
    made = unswayed.train(first.recipe, run=first.folder)
    again = prepare_retraining(run, 0.8)
    assert again.folder == first.folder
    assert unswayed.train(again.recipe, run=again.folder).path == made.path
    decide(run, 5, "remove")
    other = prepare_retraining(run, 0.8)
    assert other.folder == tmp_path / "run-corrected-2"
    assert other.labels.path == run.path / "corrected-2.csv"
    made.data()  # what the first one was trained on is still there
