"""The command line: `unnorm fit`, `demo`, `simulate`, `report`, `compare`, `reproduce`."""

from __future__ import annotations

import re
import sys

from cyclopts import App, CycloptsError

from .. import __version__
from ..errors import UnnormError
from . import compare, demo, fit, report, reproduce, simulate

# missing='drop' → --missing drop, order= → --order: the library's sentences in the words of the shell
_ARGUMENT = re.compile(
    r"""(?<![\w'"-])(?:(missing|outside)=(['"])(drop)\2|(lags)=(\d+)|(y|order|group|max_gap|centre)=(?![\w'"]))"""
)
LONGEST = 1000  # characters of an error, which may quote what was given
OK, INTERNAL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # exit codes

app = App(name="unnorm", help="Models known up to a constant, by the Poisson transform.", version=__version__)
for _command in (fit.fit, demo.demo, simulate.simulate, report.report, compare.compare, reproduce.app):
    app.command(_command)


def main(tokens: list[str] | None = None) -> None:
    """Run a command; bad input ends with one sentence and exit code 2, a traceback only with --debug."""
    tokens = sys.argv[1:] if tokens is None else list(tokens)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    try:
        app(tokens, exit_on_error=False, print_error=False)
    except (UnnormError, OSError, CycloptsError) as error:
        if debug:
            raise
        _fail(_line(error), BAD_INPUT)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    except SystemExit as end:  # cyclopts ends so, also after an interrupt
        if end.code == INTERRUPTED:
            _fail("interrupted", INTERRUPTED)
        if end.code not in (None, OK):
            raise
    except Exception as error:
        if debug:
            raise
        what = f"{type(error).__name__}: {_line(error)}"
        _fail(f"internal error, please report it ({what}); --debug shows where.", INTERNAL)


def _line(error: BaseException) -> str:
    """The error as one line of bounded length, with options in place of Python's arguments."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{str(error.filename)!r}: {error.strerror}."
    text = _ARGUMENT.sub(_option, text)
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 200]} … {text[-200:]}"


def _option(found: re.Match[str]) -> str:
    name, value = found[1] or found[4] or found[6], found[3] or found[5]
    return f"--{name.replace('_', '-')}" + (f" {value}" if value else "")


def _fail(sentence: str, code: int) -> None:
    print(f"unnorm: {sentence}", file=sys.stderr)
    sys.exit(code)
