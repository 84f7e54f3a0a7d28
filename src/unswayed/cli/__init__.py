"""The command line: one file per verb. stdout carries results, stderr everything else."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence

from unswayed import __version__
from unswayed.cli.together import leave, report, speaks, together
from unswayed.errors import (
    DamagedFileError,
    InterruptedRunError,
    LostProcessError,
    NonFiniteLossError,
    UsageError,
    one_line,
)

VERBS = {
    "clean": "Find the wrong labels of a folder of images: plan, train, audit, report.",
    "train": "Train a recipe.",
    "resume": "Resume an interrupted run.",
    "evaluate": "Test the weights of a finished run again.",
    "audit": "Find the labels that are probably wrong.",
    "review": "Look at suspicious labels in the browser, and decide.",
    "export": "Write the data of a run with corrected labels.",
    "predict": "Classify image files with a finished run.",
    "compare": "Compare finished runs.",
    "bench": "Train a grid of methods, settings and seeds, and make its table.",
    "data": "Inspect data before training on them.",
    "noise": "Make, inspect and compare files of noisy labels.",
    "list": "List what a recipe can name: components, their options, defaults and papers.",
    "demo": "See it work: find the wrong labels among digits of which a fifth is labelled wrongly.",
}
"""Name and first sentence of each verb. The module of a verb is imported only when it is used.

It imports PyTorch inside its functions only, so that help is shown at once.
"""

BROKEN_PIPE = 141
"""The usual exit code after a broken pipe: 128 and the number of SIGPIPE."""


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
            verb.set_defaults(run_verb=module.run, help_of_verb=verb.format_help)
    return top


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the arguments; overrides may follow options."""
    if argv and not argv[0].startswith("-") and argv[0] not in VERBS:
        from unswayed.registry import did_you_mean

        raise UsageError(f"there is no verb {argv[0]!r}; {did_you_mean(argv[0], VERBS)}")
    return parse_with_overrides(parser(argv[0] if argv else None), argv)


def parse_with_overrides(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parse the arguments, and add each `key=value` that follows an option to `overrides`."""
    args, rest = parser.parse_known_args(argv)
    late = all("=" in each and not each.startswith("-") for each in rest)
    if rest and not (late and hasattr(args, "overrides")):
        shown = getattr(args, "help_of_verb", parser.format_help)()
        parser.error(
            _unrecognized(rest, argv or sys.argv, shown, overrides=hasattr(args, "overrides"))
        )
    if rest:
        args.overrides += rest
    return args


def _unrecognized(
    rest: Sequence[str], argv: Sequence[str], help_of_verb: str, *, overrides: bool
) -> str:
    from unswayed.cli.hints import hint

    options = re.findall(r"--[a-z][a-z-]*", help_of_verb)
    advice = hint(rest[0], argv, options, overrides=overrides)
    return f"unrecognized arguments: {' '.join(rest)}" + (f"; {advice}" if advice else "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit code: 0 for success, 1 for failure, 2 for a user's mistake."""
    argv = [*(sys.argv[1:] if argv is None else argv)]  # `list` is a verb here

    def run() -> int:
        args = parsed(argv)
        with together(args.verb):
            return int(args.run_verb(args))

    return run_safely(run)


def run_safely(verb: Callable[[], int]) -> int:
    """Run a verb and return its exit code; a user's mistake is reported in one line."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            code = verb()
            print(end="", flush=True)  # a disk that is full is noticed here, not at Python's end
            return code
    except UsageError as error:
        return _fail(error, 2)
    except InterruptedRunError as stopped:
        return _fail(stopped, stopped.exit_code)
    except BrokenPipeError:  # no failure: `entry` leaves without a word
        raise
    except (NonFiniteLossError, DamagedFileError, LostProcessError, OSError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt as error:
        return _fail(error, 130)


def _note(message: Warning | str, *_where: object, **_more: object) -> None:
    """Show a warning as one line, without its place in the source."""
    print(f"unswayed: note: {one_line(str(message))}", file=sys.stderr)


def _fail(error: BaseException, code: int) -> int:
    if speaks(error):
        report("interrupted" if isinstance(error, KeyboardInterrupt) else str(error))
    return code


def entry() -> None:
    """Run the `unswayed` command; end quietly on a broken pipe, as with `| head`."""
    try:
        try:
            code = main()
        finally:
            print(end="", flush=True)
    except OSError as error:
        # Python flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE if isinstance(error, BrokenPipeError) else 1
    leave(code)
    sys.exit(code)
