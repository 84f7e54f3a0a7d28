"""The command line: one file per verb. stdout carries results, stderr everything else."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from unswayed import __version__
from unswayed.cli import compare, demo, evaluate, predict, resume, train
from unswayed.cli import list as list_verb
from unswayed.errors import InterruptedRunError, NonFiniteLossError, UsageError
from unswayed.training.files import DamagedFileError

VERBS = (train, resume, evaluate, predict, compare, list_verb, demo)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    top = argparse.ArgumentParser(
        prog="unswayed", description="Train image classifiers that wrong labels do not sway."
    )
    top.add_argument("--version", action="version", version=f"unswayed {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in VERBS:
        name = module.__name__.rpartition(".")[2]
        summary = (module.__doc__ or "").partition("\n")[0]
        verb = verbs.add_parser(name, help=summary, description=module.__doc__)
        verb.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(verb)
        verb.set_defaults(run_verb=module.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit code: 0 well, 1 failed, 2 the user can mend it."""
    args = parser().parse_args(argv)
    try:
        code: int = args.run_verb(args)
    except UsageError as error:
        return _fail(str(error), 2)
    except InterruptedRunError as stopped:
        return _fail(str(stopped), stopped.exit_code)
    except (NonFiniteLossError, DamagedFileError, OSError) as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    return code


def _fail(message: str, code: int) -> int:
    print(f"unswayed: {message}", file=sys.stderr)
    return code


def entry() -> None:
    """Be the `unswayed` command."""
    sys.exit(main())
