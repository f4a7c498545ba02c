"""Section 4.1 and Figures 4.1 and 4.2: four estimators on the toy chain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from claims import Verdict, claim, verdict

from unnorm.studies.reproduce_toy import Errors, Toy, read_errors, run
from unnorm.studies.reproduce_toy_checks import checks
from unnorm.studies.reproduce_toy_figures import all_figures, realisations

_errors: dict[bool, Errors] = {}


def errors(quick: bool, out: Path) -> Errors:
    """The experiment, run once. Quick: 40 repetitions of two sizes at θ = (−2, 50). Else 100 of four sizes, at random θ
    as well; the paper has 300."""
    if quick not in _errors:
        toy = (
            Toy(reps=40, sizes=(200, 500), settings=("fixed",)) if quick else Toy(reps=100, sizes=(100, 200, 500, 1000))
        )
        _errors[quick] = read_errors(run(toy, out / "toy"))
    return _errors[quick]


def ratio(quick: bool, out: Path, estimator: str, k: int, setting: str = "fixed") -> tuple[float, float]:
    """Root mean squared errors of θ1 and θ2 over maximum likelihood's, IID points, at the largest n."""
    e = errors(quick, out)
    n, found = int(e.n.max()), []
    for parameter in ("theta1", "theta2"):
        ours = e.of(setting, n, k, "iid", estimator, parameter)
        ml = e.of(setting, n, k, "iid", "ML", parameter)
        found.append(float(np.sqrt(np.nanmean(ours**2) / np.nanmean(ml**2))))
    return found[0], found[1]


@claim("Figure 4.1", "Two realisations: θ = (−2, 10) is biased to negative values and more autocorrelated than (0, 2)")
def figure_4_1(quick: bool, out: Path) -> Verdict:
    import unnorm as un

    realisations(out)
    both = [np.asarray(un.datasets.toy_chain(5000, *theta, rng=1)).ravel() for theta in ((0.0, 2.0), (-2.0, 10.0))]
    mean, lag = [float(y.mean()) for y in both], [float(np.corrcoef(y[:-1], y[1:])[0, 1]) for y in both]
    return verdict(
        f"means {mean[0]:.2f}, {mean[1]:.2f}; autocorrelations {lag[0]:.2f}, {lag[1]:.2f}",
        mean[1] < mean[0] - 0.2 and lag[1] > lag[0],
    )


@claim("Figure 4.2, semi-parametric", "The semi-parametric estimate is almost as good as ML across the board")
def semiparametric(quick: bool, out: Path) -> Verdict:
    all_figures(errors(quick, out), out)
    r = [ratio(quick, out, "semiparametric UBRE", k) for k in (10, 30)]
    return verdict(
        f"rmse over ML's, θ1 / θ2: k = 10 {r[0][0]:.2f} / {r[0][1]:.2f}, k = 30 {r[1][0]:.2f} / {r[1][1]:.2f}",
        max(max(one) for one in r) < 1.25,
    )


@claim(
    "Figure 4.2, parametric",
    "One ν_t for each point is much more variable, less so for larger k",
    "holds, with a condition",
)
def parametric(quick: bool, out: Path) -> Verdict:
    r = [ratio(quick, out, "parametric", k) for k in (10, 30)]
    e = errors(quick, out)
    error = e.of("fixed", int(e.n.max()), 10, "iid", "parametric", "theta2")
    bias, sd = float(np.nanmean(error)), float(np.nanstd(error))
    good = r[0][1] > 1.3 and r[1][1] < r[0][1]
    return Verdict(
        f"rmse over ML's of θ2: {r[0][1]:.1f} at k = 10, {r[1][1]:.1f} at k = 30; "
        f"its bias at θ2 = 50 is {bias / sd:.0f} sd",
        "holds, with a condition" if good else "does not hold",
        note="It is biased as well, at any fixed k: there are as many constants as observations.",
    )


@claim("Figure 4.2, ignored", "Ignoring the constants: θ1 does not converge, θ2 is very good")
def ignored(quick: bool, out: Path) -> Verdict:
    r = ratio(quick, out, "ignored", 30)
    return verdict(f"rmse over ML's: θ1 {r[0]:.1f}, θ2 {r[1]:.2f}", r[0] > 1.4 and r[1] < 1.4)


@claim("Section 4.1, smoothing", "GCV and REML work just as well as cross-validation")
def smoothing(quick: bool, out: Path) -> Verdict:
    r = [ratio(quick, out, f"semiparametric {name}", 30) for name in ("UBRE", "REML")]
    return verdict(f"rmse over ML's, θ1 / θ2: UBRE {r[0][0]:.2f} / {r[0][1]:.2f}, REML {r[1][0]:.2f} / {r[1][1]:.2f}",
                   max(max(one) for one in r) < 1.25)  # fmt: skip


@claim("Section 4.1, as a whole", "All statements of `unnorm reproduce toy --check`")
def statements(quick: bool, out: Path) -> Verdict:
    found = checks(errors(quick, out))
    wrong = [one.claim for one in found if not one.holds]
    return verdict(f"{len(found) - len(wrong)} of {len(found)} hold" + (f"; not {'; '.join(wrong)}" if wrong else ""),
                   len(wrong) <= (len(found) // 6 if quick else 0))  # fmt: skip
