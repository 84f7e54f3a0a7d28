"""The command line: one file per verb. stdout carries results, stderr everything else."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

from unswayed import __version__
from unswayed.errors import (
    DamagedFileError,
    InterruptedRunError,
    NonFiniteLossError,
    UsageError,
)

VERBS = {
    "train": "Train a recipe.",
    "resume": "Go on with an interrupted run.",
    "evaluate": "Test the weights of a finished run again.",
    "predict": "Classify image files with a finished run.",
    "compare": "Put finished runs side by side.",
    "bench": "Train a grid of methods, settings and seeds, and make its table.",
    "data": "Look at data before training on them.",
    "noise": "Make, look at and compare files of noisy labels.",
    "list": "List what a recipe can name: components, their options, defaults and papers.",
    "demo": "See the effect: cross entropy and CTRR on digits with wrong labels.",
}
"""Name and first sentence of each verb; its module is imported only when it is called for."""


def parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all verbs, with the arguments of the chosen one."""
    top = argparse.ArgumentParser(
        prog="unswayed", description="Train image classifiers that wrong labels do not sway."
    )
    top.add_argument("--version", action="version", version=f"unswayed {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, summary in VERBS.items():
        verb = verbs.add_parser(name, help=summary)
        if name == chosen:
            module = importlib.import_module(f"unswayed.cli.{name}")
            verb.description = module.__doc__
            verb.formatter_class = argparse.RawDescriptionHelpFormatter
            module.add_arguments(verb)
            verb.set_defaults(run_verb=module.run)
    return top


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; overrides may also stand behind an option."""
    return parse_with_overrides(parser(argv[0] if argv else None), argv)


def parse_with_overrides(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parse, and add each `key=value` that stands behind an option to `overrides`."""
    args, rest = parser.parse_known_args(argv)
    late = all("=" in each and not each.startswith("-") for each in rest)
    if rest and not (late and hasattr(args, "overrides")):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        args.overrides += rest
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit code: 0 well, 1 failed, 2 the user can mend it."""
    args = parsed([*(sys.argv[1:] if argv is None else argv)])  # `list` is a verb here
    return run_safely(args.run_verb, args)


def run_safely(verb: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Run a verb and return its exit code; what the user can mend is said in one line."""
    try:
        return verb(args)
    except UsageError as error:
        return _fail(str(error), 2)
    except InterruptedRunError as stopped:
        return _fail(str(stopped), stopped.exit_code)
    except (NonFiniteLossError, DamagedFileError, OSError) as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)


def _fail(message: str, code: int) -> int:
    print(f"unswayed: {message}", file=sys.stderr)
    return code


def entry() -> None:
    """Be the `unswayed` command."""
    sys.exit(main())
