from __future__ import annotations

import re
from pathlib import Path

import pytest
from grids import write_grid

from unswayed import UsageError
from unswayed.bench.grid import Grid, GridRow, slug
from unswayed.bench.published import Published
from unswayed.recipe import Recipe, shipped

SETTINGS = '[settings]\nclean = ["noise.name=none"]\n"sym 20" = ["noise.rate=0.2"]\n'


def load(tmp_path, head, tail=SETTINGS):
    path = tmp_path / "g.toml"
    path.write_text(f'extends = "digits"\n{head}\n{tail}', encoding="utf-8")
    return Grid.load(path)


def test_cells_are_methods_times_columns_times_seeds(tmp_path):
    grid = load(tmp_path, 'seeds = 2\nmethods = ["ce", "gce"]')
    assert [cell.folder for cell in grid.cells[:5]] == [
        "ce/clean/seed0",
        "ce/clean/seed1",
        "ce/sym-20/seed0",
        "ce/sym-20/seed1",
        "gce/clean/seed0",
    ]
    assert [cell.recipe.settings.seed for cell in grid.cells] == [0, 1] * 4
    assert all(cell.recipe.settings.threads == 1 for cell in grid.cells)


def test_own_sections_lie_below_the_method_and_overrides_above_it(tmp_path):
    head = 'set = ["optimizer.lr=0.5"]\nmethods = ["ce", "sln-mo", "ctrr", "elr/cifar100"]'
    tail = SETTINGS + "[train]\nema = 0.5\n[optimizer]\nlr = 0.1\n"
    tail += "[framework]\nprojector_widths = [8]\n"
    recipes = {c.row.key: c.recipe.sections for c in load(tmp_path, head, tail).cells}
    assert recipes["ce"]["train"]["ema"] == 0.5
    assert recipes["sln-mo"]["train"]["ema"] == 0.999
    assert recipes["sln-mo"]["optimizer"]["lr"] == 0.5
    assert recipes["ctrr"]["framework"]["projector_widths"] == [8]
    assert recipes["elr-cifar100"]["loss"]["weight"] == 7.0


def test_a_method_can_come_twice_with_other_options_and_a_label(tmp_path):
    head = 'methods = ["gce", { name = "gce", label = "GCE, q = 0.3", set = ["loss.q=0.3"] }]'
    grid = load(tmp_path, head)
    assert [(row.key, row.title) for row in grid.rows] == [
        ("gce", "Generalized cross entropy"),
        ("gce-q-0.3", "GCE, q = 0.3"),
    ]
    assert grid.cells[-1].recipe.sections["loss"]["q"] == 0.3


def test_costly_methods_and_long_trainings_cost_more(tmp_path):
    head = 'methods = ["ce", "ctrr", { name = "ce", label = "long", set = ["train.epochs=120"] }]'
    cost = {cell.row.key: cell.cost for cell in load(tmp_path, head).cells}
    assert (cost["ce"], cost["long"], cost["ctrr"]) == (60, 120, 180)


def test_a_base_is_looked_for_beside_the_grid(tmp_path, monkeypatch):
    (tmp_path / "base.toml").write_text('extends = "digits"\n[train]\nepochs = 7\n')
    (tmp_path / "g.toml").write_text(f'extends = "base.toml"\nmethods = ["ce"]\n{SETTINGS}')
    monkeypatch.chdir("/")
    assert Grid.load(tmp_path / "g.toml").cells[0].recipe.settings.epochs == 7


def test_only_some_methods_and_columns(tmp_path):
    grid = load(tmp_path, 'methods = ["ce", "gce"]')
    assert {cell.row.key for cell in grid.only(["gce"])} == {"gce"}
    assert {cell.folder for cell in grid.only(["sym 20"])} == {
        "ce/sym-20/seed0",
        "gce/sym-20/seed0",
    }
    assert [cell.folder for cell in grid.only(["gce", "clean"])] == ["gce/clean/seed0"]
    assert len(grid.only([])) == 4
    with pytest.raises(UsageError, match="did you mean 'gce'"):
        grid.only(["gcee"])


@pytest.mark.parametrize(
    ("head", "tail", "message"),
    [
        ("", SETTINGS, "needs methods"),
        ("methods = []", SETTINGS, "needs methods"),
        ("methods = [3]", SETTINGS, "3 is no name"),
        ('methods = ["gcee"]', SETTINGS, "method 'gcee'.*did you mean 'gce'"),
        ('methods = ["elr/cifar"]', SETTINGS, "no preset 'cifar'"),
        ('methods = ["ce", "ce"]', SETTINGS, "two methods with the folder 'ce'"),
        ('methods = [{ name = "ce", labl = "x" }]', SETTINGS, "did you mean 'label'"),
        ('methods = [{ name = "ce", label = "–" }]', SETTINGS, "no letter"),
        ('methods = ["ce"]', "", "needs settings"),
        ('methods = ["ce"]', "[settings]\nclean = 3", "column 'clean': 3 is no list"),
        ('methods = ["ce"]', '[settings]\n"a b" = []\na-b = []', "two columns"),
        ('methods = ["ce"]', '[settings]\nx = ["train.seed=3"]', "not for a grid to set"),
        ('methods = ["ce"]', '[settings]\nx = ["method=gce"]', "not for a grid to set"),
        ('methods = ["ce"]\nseeds = 0', SETTINGS, "seeds is 0"),
        ('methods = ["ce"]\nseeds = true', SETTINGS, "seeds is True"),
        ('methods = ["ce"]\nsede = 1', SETTINGS, "did you mean"),
        ('methods = ["ce"]\nfirst_seed = -1', SETTINGS, "first_seed is -1"),
        (
            'methods = ["ce"]\npublished = "none.toml"',
            SETTINGS,
            r"published table .*none\.toml cannot",
        ),
        ('methods = ["ce"]\nscales = 3', SETTINGS, "scales is a table of tables"),
        ('methods = ["ce"]\nshape = 3', SETTINGS, "shape is a table"),
        ('methods = ["ce"]', f"{SETTINGS}[shape]\nsamples = 3", "shape has samples, side"),
        ('methods = ["ce"]', f"{SETTINGS}[shape.clen]\nsamples = 3", "did you mean 'clean'"),
        ('methods = ["ce", "gce"]\nset = ["loss.q=0.5"]', SETTINGS, "method 'ce', 'clean'.*'q'"),
        ('methods = ["ce"]', '[settings]\nx = ["noise.rat=1"]', "'x'.*did you mean 'rate'"),
        ('methods = ["ce"', SETTINGS, "not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path, head, tail, message):
    with pytest.raises(UsageError, match=message):
        load(tmp_path, head, tail)


def test_an_unknown_grid_names_those_there_are():
    with pytest.raises(UsageError, match="did you mean 'digits-frameworks'"):
        Grid.load("digits-framework")


OTHERS = 'title = "T"\nsource = "S"\nruns = 3\ncolumns = ["clean"]\nlast = { ce = [[90.0, 1.0]] }'
SCALED = """\
published = "others.toml"
methods = ["ce", "gce"]
seeds = 1
settings = { clean = ["noise.name=none"] }
[train]
epochs = 100
[optimizer]
lr = 0.5
[scales.cpu]
seeds = 2
train = { epochs = 3 }
optimizer = { nesterov = true }
settings = { "sym 20" = ["noise.rate=0.2"] }
"""


def test_a_scale_replaces_whole_entries_and_has_a_name_of_its_own(tmp_path):
    (tmp_path / "g.toml").write_text('extends = "digits"\n' + SCALED, encoding="utf-8")
    (tmp_path / "others.toml").write_text(OTHERS, encoding="utf-8")
    full, small = Grid.load(tmp_path / "g.toml"), Grid.load(tmp_path / "g.toml", "cpu")
    assert (full.name, len(full.cells), list(full.columns)) == ("g", 2, ["clean"])
    assert (small.name, len(small.cells), list(small.columns)) == ("g-cpu", 4, ["sym 20"])
    assert full.cells[0].recipe.build("optimizer").lr == 0.5
    assert small.cells[0].recipe.settings.epochs == 3
    digits = Recipe.load("digits").build("optimizer")
    assert small.cells[0].recipe.build("optimizer").lr == digits.lr
    assert full.published == small.published == Published.load(tmp_path / "others.toml")
    assert len(Grid.load(tmp_path / "g.toml", "full", seeds=3).cells) == 6


def test_overrides_can_name_the_seed_and_the_first_one_can_be_chosen(tmp_path):
    head = 'methods = ["ce"]\nfirst_seed = 2021\nseeds = 2'
    settings = "[settings]\nsym = ['noise.rate=0.2', 'noise.official_seed=\"{seed}\"']"
    cells = load(tmp_path, head, settings).cells
    assert [cell.folder for cell in cells] == ["ce/sym/seed2021", "ce/sym/seed2022"]
    assert [c.recipe.sections["noise"]["official_seed"] for c in cells] == ["2021", "2022"]
    assert [c.recipe.settings.seed for c in cells] == [2021, 2022]


def test_the_preset_that_fits_a_column_best_is_taken():
    ctrr = GridRow(name="ctrr")
    assert ctrr.for_column("cifar10", "sym 20") == "ctrr/cifar10-sym20"
    assert ctrr.for_column("cifar100", "sym 20") == "ctrr/cifar100-sym"
    assert ctrr.for_column("{column}", "ANIMAL-10N") == "ctrr/animal10n"
    assert ctrr.for_column("", "sym 20") == "ctrr"
    assert GridRow(name="sl").for_column("cifar100", "clean") == "sl/cifar100"
    assert GridRow(name="ce").for_column("cifar10", "clean") == "ce"
    assert (
        GridRow(name="elr/cifar10-sym", label="x").for_column("cifar100", "sym 20")
        == "elr/cifar10-sym"
    )


@pytest.mark.parametrize("name", shipped("grid"))
def test_every_shipped_grid_is_valid_described_and_no_recipe(name):
    grid = Grid.load(name)
    assert grid.description
    assert name not in shipped()


def test_slugs_are_safe_for_file_systems():
    assert slug("Sym 20 % / Ünï") == "sym-20-uni"
    assert slug("../x") == "x"


def test_the_grid_in_the_documentation_is_valid(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "mine.toml").write_text(code, encoding="utf-8")
    assert [row.key for row in Grid.load(tmp_path / "mine.toml").rows][2] == "gce-q-0.5"


def test_overrides_of_the_command_win_over_the_grid(tmp_path):
    path = write_grid(tmp_path)
    assert {
        c.recipe.settings.epochs for c in Grid.load(path, overrides=["train.epochs=7"]).cells
    } == {7}
    with pytest.raises(UsageError, match=r"on the command line: 'train\.seed=1' is not for a grid"):
        Grid.load(path, overrides=["train.seed=1"])
    with pytest.raises(UsageError, match="has no option 'epoch'"):
        Grid.load(path, overrides=["train.epoch=7"])


def test_cells_can_be_left_out(tmp_path):
    path = write_grid(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + '\n[skip]\ncoteaching = ["sym 40"]\n', encoding="utf-8")
    places = {(cell.row.key, cell.column) for cell in Grid.load(path).cells}
    assert places == {("ce", "clean"), ("ce", "sym 40"), ("coteaching", "clean")}
    for wrong in ('nobody = ["clean"]', 'ce = ["sym 50"]', 'ce = "clean"'):
        path.write_text(f"{text}\n[skip]\n{wrong}\n", encoding="utf-8")
        with pytest.raises(UsageError, match="skip"):
            Grid.load(path)
