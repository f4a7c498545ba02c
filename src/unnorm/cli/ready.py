"""What a job needs besides its own modules, loaded at once: Numba with the compiled kernels, and Matplotlib."""

from __future__ import annotations

from .._base.garbage import staying


def make_ready(figures: bool = False) -> None:
    """Import Numba, read the kernels from disk where they are there, and import what figures need."""
    from ..engine.ahead import SHARES, cached, signature

    with staying():
        if figures:
            import matplotlib.backends.backend_svg as backend_svg

            assert backend_svg is not None
        from ..engine import kernels

        if cached():  # else other processes are compiling them
            for name in (name for names in SHARES for name in names):
                vars(kernels)[name].compile(signature(name))
