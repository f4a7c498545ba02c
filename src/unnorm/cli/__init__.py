"""The command line: `unnorm demo`, and more as the library grows."""

from __future__ import annotations

import sys

from cyclopts import App

from .. import __version__
from ..errors import UnnormError

app = App(name="unnorm", help="Models known up to a constant, by the Poisson transform.", version=__version__)


def _register() -> None:
    from .demo import demo

    app.command(demo)


_register()


def main(tokens: list[str] | None = None) -> None:
    """Run a command; bad input ends with one sentence and exit code 2, a traceback only with --debug."""
    tokens = sys.argv[1:] if tokens is None else list(tokens)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    try:
        app(tokens)
    except (UnnormError, OSError) as error:
        if debug:
            raise
        print(f"unnorm: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("unnorm: interrupted", file=sys.stderr)
        sys.exit(130)
