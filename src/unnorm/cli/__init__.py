"""The command line: `unnorm fit`, `pattern`, `directions`, `steps`, `demo`, `simulate`, `report` and others."""

from __future__ import annotations

import sys

from .._base.words import in_shell
from ..errors import UnnormError, listing, told
from .signals import Ended, ends_on_signals

LONGEST = 1000  # characters of an error, which may quote what was given
OK, INTERNAL, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130  # exit codes


def main(tokens: list[str] | None = None) -> None:
    """Run a command; bad input ends with one sentence and exit code 2, a traceback only with --debug."""
    from cyclopts import CycloptsError  # here: a process beside a command parses none

    tokens = sys.argv[1:] if tokens is None else list(tokens)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    received: list[int] = []
    say = _nothing if {"--quiet", "-q"} & {*tokens} else _say
    try:
        with in_shell(), told(say), ends_on_signals() as received:
            from .commands import app

            app(tokens, exit_on_error=False, print_error=False)
    except (UnnormError, OSError, CycloptsError, MemoryError) as error:
        if debug:
            raise
        _fail(_line(error) + _notes(error), BAD_INPUT)
    except KeyboardInterrupt as error:
        _fail("interrupted" + _notes(error, "."), INTERRUPTED)
    except Ended as end:
        _fail("terminated" + _notes(end, "."), end.code)
    except SystemExit as end:  # cyclopts ends so, also after an interrupt
        if end.code == INTERRUPTED:
            _fail("interrupted" + _notes(end.__context__, "."), INTERRUPTED)
        if end.code not in (None, OK):
            raise
    except Exception as error:
        if debug:
            raise
        if received:  # a library took the signal for a failure of its own
            _fail(f"ended by signal {received[0]}" + _notes(error, "."), 128 + received[0])
        if isinstance(error, ImportError) and "failed to map" in str(error):  # how a library says it has no memory
            _fail(_line(MemoryError(str(error))), BAD_INPUT)
        what = f"{type(error).__name__}: {_line(error)}"
        _fail(f"internal error, please report it ({what}); --debug shows where.", INTERNAL)


def _line(error: BaseException) -> str:
    """The error as one line of bounded length."""
    from cyclopts import UnusedCliTokensError

    text = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{str(error.filename)!r}: {error.strerror}."
    if isinstance(error, MemoryError) and not isinstance(error, UnnormError):
        what = f" ({text[:1].lower()}{text[1:]})" if text else ""
        text = f"There is not enough memory{what}: try fewer rows, fewer --references, or a smaller k in the terms."
    if isinstance(error, UnusedCliTokensError):
        text = (
            f"{listing(error.unused_tokens or ())} belongs to no option. Names in a list have commas and no blanks "
            "between them, as --y x,y; a name that has a blank needs quotes, as --order 'fix number'."
        )
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 200]} … {text[-200:]}"


def _notes(error: BaseException | None, mark: str = "") -> str:
    """What was added on the way: where an unfinished output is."""
    notes = getattr(error, "__notes__", ())
    return f"{mark} {' '.join(notes)}" if notes else ""


def _say(sentence: str) -> None:
    print(f"unnorm: note: {' '.join(sentence.split())}", file=sys.stderr)


def _nothing(sentence: str) -> None:
    """What --quiet says of a warning."""


def _fail(sentence: str, code: int) -> None:
    print(f"unnorm: {sentence}", file=sys.stderr)
    sys.exit(code)
