"""What a job needs besides its own modules: Numba with the compiled kernels, and Matplotlib."""

from __future__ import annotations

from threading import Thread

from .._base.garbage import staying


def make_ready() -> None:
    """Import Numba, and read the kernels from disk where they are there."""
    from ..engine.ahead import SHARES, cached, signature

    with staying():
        from ..engine import kernels

        if cached():  # else other processes are compiling them
            for name in (name for names in SHARES for name in names):
                vars(kernels)[name].compile(signature(name))


def begin_figures() -> None:
    """Import Matplotlib beside the fits, which leave the interpreter alone while they are in compiled code."""

    def work() -> None:
        from matplotlib import figure
        from matplotlib.backends import backend_svg

        assert figure is not None
        assert backend_svg is not None

    Thread(target=work, daemon=True).start()
