"""What a command loads: help and lists do not wait for PyTorch."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unswayed.cli import VERBS

SLOW = ("torch", "torchvision", "sklearn", "scipy", "matplotlib")
PROGRAM = """
import sys
from unswayed.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as left:
    code = left.code
loaded = [name for name in {slow!r} if name in sys.modules]
print(loaded, file=sys.stderr)
sys.exit(code)
"""


def loaded_by(*words):
    """Return the exit code of a command in a process of its own, and what it loaded."""
    program = PROGRAM.format(slow=SLOW)
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stderr.splitlines()[-1]


def test_the_package_itself_is_light():
    program = f"import sys, unswayed; sys.exit(any(n in sys.modules for n in {(*SLOW, 'numpy')!r}))"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


@pytest.mark.parametrize("verb", list(VERBS))
def test_help_of_a_verb_loads_nothing_slow(verb):
    assert loaded_by(verb, "--help") == (0, "[]")


def test_help_loads_nothing_slow():
    assert loaded_by("--help") == (0, "[]")


@pytest.mark.parametrize("kind", [[], ["losses"], ["recipes"], ["methods"], ["train"]])
def test_list_loads_nothing_slow(kind):
    assert loaded_by("list", *kind) == (0, "[]")


def test_a_wrong_verb_and_a_wrong_option_load_nothing_slow():
    assert loaded_by("trian") == (2, "[]")
    assert loaded_by("train", "--epochs", "3") == (2, "[]")


def test_components_load_nothing_slow_but_pytorch():
    program = (
        "import sys; from unswayed.recipe import REGISTRIES; "
        "[registry.names() for registry in REGISTRIES.values()]; "
        f"sys.exit(any(name in sys.modules for name in {SLOW[1:]!r}))"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == 0
