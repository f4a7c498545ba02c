"""`unnorm demo`: the main job on the bundled scanpaths; `unnorm demo toy`: the paper's toy chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cyclopts import App

from .._base.atomic import whole_file
from .._base.garbage import staying
from .config import BUNDLED, LARGEST_SEED, checked_job, whole
from .options import Force, Number, Quiet
from .output import check_target

DEMO_FOLDER = "demo-output"
MOST_TRANSITIONS = 1_000_000  # of the toy chain
demo = App(name="demo", help="Fit the bundled scanpaths and write a report; or the toy chain (demo toy).")


@demo.default
def eye(
    *,
    out: str = DEMO_FOLDER,
    seed: Number = "1",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fit spatial Markov chains to 14 simulated subjects (Section 4.2), and write effects, fits and a report.

    Args:
        out: the folder to make.
        seed: of everything random.
        force: replace an earlier output there (the default folder is always replaced).
        quiet: print nothing but errors.
    """
    from ..engine.ahead import compile_ahead
    from .beside import begun

    compile_ahead()  # before anything heavy is imported
    force = force or out == DEMO_FOLDER  # the README's line can be run again
    target = check_target(out, force)
    settings = {
        "data": BUNDLED,
        "order": "fix",
        "group": ("subject", "image"),
        "by": "subject",
        "window": (0, 800, 0, 600),
        "y_down": True,
        "seed": seed,
    }
    with begun(likely=True) as other:
        with staying():
            from .run import run_job

        run_job(checked_job(settings), target, force, quiet, other=other)


@demo.command
def toy(
    *, out: str = "toy-output", n: Number = "500", theta1: float = 0.5, theta2: float = 5.0, seed: Number = "1"
) -> None:
    """Simulate the toy chain of Section 4.1, fit it by 𝓛 and by 𝓜, print the table and write a picture.

    Args:
        out: folder for the picture, toy.png.
        n: transitions.
        theta1: preference for large y.
        theta2: preference for short steps.
        seed: of the simulation.
    """
    from ..data.observations import transitions
    from ..domains import Interval
    from ..models import ExponentialFamily
    from ..objectives import Exact, Poisson
    from ..results.fitting import fit
    from ..studies import datasets

    length, start = whole("--n", n, 10, MOST_TRANSITIONS), whole("--seed", seed, 0, LARGEST_SEED)
    model = ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), Interval(-1, 1))
    chain = datasets.toy_chain(length, theta1, theta2, rng=start)
    obs = transitions(chain)
    fits = {"exact likelihood 𝓛(θ)": fit(model, obs, Exact()), "Poisson transform 𝓜(θ, ν)": fit(model, obs, Poisson())}

    print("p(y_t | y_t-1) ∝ exp{θ1 y_t − ½ θ2 (y_t − y_t-1)²} on [−1, 1], ", end="")
    print(f"{length} transitions, true θ = ({theta1:g}, {theta2:g})\n")
    print(f"{'':<28}{'θ1':>9}{'se':>8}{'θ2':>9}{'se':>8}{'maximum':>13}")
    for label, one in fits.items():
        a, b = one.estimate
        print(f"{label:<28}{a:>9.4f}{one.se[0]:>8.4f}{b:>9.4f}{one.se[1]:>8.4f}{one.value:>13.4f}")
    exact, poisson = fits.values()
    print(f"\nmax 𝓜 = max 𝓛 − n to {abs(poisson.value - (exact.value - length)):.1e}; ", end="")
    print(f"{length} normalising constants estimated along the way (Theorem 2).")
    path = picture(Path(out), chain, poisson.nu, poisson.theta)
    print(f"picture: {path}")


def picture(folder: Path, chain: np.ndarray, nu: np.ndarray, theta: dict[str, float]) -> Path:
    """The chain, and its normalising constants against the closed form."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from ..studies.datasets import toy_log_normaliser

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    shown = min(len(chain), 200)
    left.plot(np.arange(shown), chain[:shown], "o-", ms=2.5, lw=0.6, color="#2b5c8a")
    left.set(
        xlabel="t",
        ylabel="$y_t$",
        ylim=(-1.05, 1.05),
        title="The chain: first 200 points" if shown == 200 else "The chain",
    )
    grid = np.linspace(-1, 1, 200)
    closed = -toy_log_normaliser(theta["theta1"], theta["theta2"], grid)
    right.plot(grid, closed, color="#c05621", lw=1.5, label=r"$-\log\int \exp f_{\hat\theta}(y|x)\,dy$, closed form")
    right.plot(chain[:-1], nu, ".", ms=3, color="#2b5c8a", label=r"$\hat\nu_t$, estimated")
    right.set(xlabel="$y_{t-1}$", ylabel=r"$\nu$", title="Normalising constants")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    target = folder / "toy.png"
    with whole_file(target) as scratch:
        figure.savefig(scratch, dpi=150)
    return target
