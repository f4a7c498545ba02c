"""The two figures of Section 4.1: two realisations of the chain, and the error of each estimator against n."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._base.atomic import whole_file
from .reproduce_toy import ESTIMATORS, PARAMETERS, SCHEMES, SETTINGS, Errors

_LABELS = {
    "ML": "maximum likelihood",
    "semiparametric UBRE": "semi-parametric (UBRE)",
    "semiparametric REML": "semi-parametric (REML)",
    "semiparametric free": "semi-parametric (no penalty)",
    "parametric": "fully parametric",
    "ignored": "constants ignored",
}
# Okabe & Ito's colours, which everyone can tell apart
_COLOURS = dict(zip(ESTIMATORS, ("#000000", "#0072B2", "#56B4E9", "#009E73", "#D55E00", "#E69F00")))
_MARKERS = dict(zip(ESTIMATORS, ("o", "s", "D", "P", "^", "v")))
_TITLES = {"random": "θ1 ~ U(−1, 1), θ2 ~ U(1/10, 10)", "fixed": "θ = (−2, 50)"}
_SYMBOLS = {"theta1": "θ1", "theta2": "θ2"}


def realisations(out: Path, seed: int = 1, n: int = 100) -> Path:
    """Two chains: θ = (0, 2), open circles, and θ = (−2, 10), dots."""
    from .datasets import toy_chain

    figure = _figure(8, 3.2)
    axes = figure.subplots()
    looks = (((0.0, 2.0), "#D55E00", "none"), ((-2.0, 10.0), "#0072B2", "#0072B2"))
    for stream, ((theta1, theta2), colour, face) in zip(np.random.default_rng(seed).spawn(2), looks):
        chain = toy_chain(n, theta1, theta2, rng=stream)
        label = f"θ1 = {theta1:g}, θ2 = {theta2:g}".replace("-", "−")
        axes.plot(chain, "-", lw=0.6, color=colour, alpha=0.6)
        axes.plot(chain, "o", ms=4, color=colour, markerfacecolor=face, label=label)
    axes.set(xlabel="t", ylabel="$y_t$", ylim=(-1.05, 1.05))
    axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return _save(figure, out / "realisations.png")


def error_against_n(errors: Errors, out: Path, scheme: str, setting: str) -> Path:
    """Root mean squared error against n on log axes: a row for each parameter, a column for each k.

    Bars are two standard errors of the rmse. An estimator is left out where it does not exist in every repetition.
    """
    from matplotlib.ticker import LogLocator

    here = (errors.setting == setting) & (errors.scheme == scheme)
    ks, sizes = np.unique(errors.k[here]), np.unique(errors.n[errors.setting == setting])
    figure = _figure(3.6 * len(ks) + 1.0, 6.0)
    panels = figure.subplots(len(PARAMETERS), len(ks), sharex=True, sharey="row", squeeze=False)
    for i, parameter in enumerate(PARAMETERS):
        for j, k in enumerate(ks):
            axes = panels[i, j]
            for e, estimator in enumerate(ESTIMATORS):
                x, rmse, low, high = [], [], [], []
                for n in sizes:
                    square = errors.of(setting, int(n), int(k), scheme, estimator, parameter) ** 2
                    if square.size == 0 or np.isnan(square).any():
                        continue
                    mean, se = float(square.mean()), float(square.std() / np.sqrt(square.size))
                    x.append(n * 1.03 ** (e - 2))
                    rmse.append(np.sqrt(mean))
                    low.append(np.sqrt(mean) - np.sqrt(max(mean - 2 * se, 0.0)))
                    high.append(np.sqrt(mean + 2 * se) - np.sqrt(mean))
                look = {"color": _COLOURS[estimator], "marker": _MARKERS[estimator], "label": _LABELS[estimator]}
                axes.errorbar(x, rmse, yerr=(low, high), ms=4, lw=1.2, elinewidth=0.8, **look)
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
            axes.spines[["top", "right"]].set_visible(False)
            if i == 0:
                axes.set_title(f"k = {k} reference points for each transition", fontsize=9)
            if i == len(PARAMETERS) - 1:
                axes.set_xlabel("n")
            if j == 0:
                axes.set_ylabel(f"rmse of {_SYMBOLS[parameter]}")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    points = "IID" if scheme == "iid" else "lattice"
    figure.suptitle(f"{_TITLES[setting]}; {points} reference points", fontsize=10)
    return _save(figure, out / f"errors-{setting}-{scheme}.png")


def all_figures(errors: Errors, out: Path, seed: int = 1) -> list[Path]:
    """Both figures: the second for each setting and scheme that was run."""
    run = [setting for setting in SETTINGS if (errors.setting == setting).any()]
    return [
        realisations(out, seed),
        *(error_against_n(errors, out, scheme, setting) for setting in run for scheme in SCHEMES),
    ]


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, target: Path) -> Path:
    with whole_file(target) as scratch:
        figure.savefig(scratch, dpi=150)
    return target
