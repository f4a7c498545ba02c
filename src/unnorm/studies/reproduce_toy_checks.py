"""What the toy experiment shows, as statements that the results could have contradicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .reproduce_toy import PARAMETERS, SETTINGS, Errors

SEMI = ("semiparametric UBRE", "semiparametric REML", "semiparametric free")
WITHIN = 1.05  # semi-parametric rmse on the lattice, against maximum likelihood's
ENOUGH = 200  # transitions from which that is claimed
DRAWS = 2000  # of the bootstrap


@dataclass(frozen=True)
class Check:
    """One statement, whether it holds, and the figures behind it."""

    claim: str
    holds: bool
    detail: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.holds else 'FAIL'} {self.claim}: {self.detail}"


def checks(errors: Errors, seed: int = 1) -> list[Check]:
    """All statements that can be made with what was run."""
    rng = np.random.default_rng(seed)
    out: list[Check] = []
    for setting in SETTINGS:
        if (errors.setting == setting).any():
            out += _close_to_ml(errors, setting, rng)
            out += _parametric(errors, setting)
            out += _ignored(errors, setting)
    return out


def rmse_ratio(a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """rmse(a)/rmse(b) over the repetitions where both exist, and the lower end of its one-sided 95 % interval by the
    paired bootstrap."""
    both = ~(np.isnan(a) | np.isnan(b))
    a2, b2 = a[both] ** 2, b[both] ** 2
    weights = rng.multinomial(len(a2), np.full(len(a2), 1 / len(a2)), size=DRAWS)
    drawn = np.sqrt((weights @ a2) / (weights @ b2))
    return float(np.sqrt(a2.mean() / b2.mean())), float(np.quantile(drawn, 0.05))


def _sizes(errors: Errors, setting: str, least: int = 0) -> list[int]:
    return [int(n) for n in np.unique(errors.n[errors.setting == setting]) if n >= least]


def _ks(errors: Errors) -> list[int]:
    return [int(k) for k in np.unique(errors.k) if k > 0]


def _close_to_ml(errors: Errors, setting: str, rng: np.random.Generator) -> Iterator[Check]:
    for estimator in SEMI:
        for k in _ks(errors):
            ratios, bad = [], []
            for n in _sizes(errors, setting, ENOUGH):
                for parameter in PARAMETERS:
                    ml = errors.of(setting, n, k, "none", "ML", parameter)
                    semi = errors.of(setting, n, k, "lattice", estimator, parameter)
                    ratio, low = rmse_ratio(semi, ml, rng)
                    ratios.append(ratio)
                    if low > WITHIN:
                        bad.append(f"n = {n}, {parameter}: {ratio:.3f}, significantly above {WITHIN}")
            if ratios:
                detail = "; ".join(bad) or f"rmse ratios from {min(ratios):.3f} to {max(ratios):.3f}"
                claim = f"{setting}, k = {k}, lattice: {estimator} within 5 % of ML for n ≥ {ENOUGH}"
                yield Check(claim, not bad, detail)


def _excess(errors: Errors, setting: str, k: int, estimator: str, parameter: str) -> float:
    """Mean over n of mse/mse(ML) with IID points; repetitions without an estimate are left out."""
    ratios = []
    for n in _sizes(errors, setting, ENOUGH) or _sizes(errors, setting):
        ml = errors.of(setting, n, k, "none", "ML", parameter)
        one = errors.of(setting, n, k, "iid", estimator, parameter)
        both = ~(np.isnan(ml) | np.isnan(one))
        ratios.append(np.mean(one[both] ** 2) / np.mean(ml[both] ** 2))
    return float(np.mean(ratios))


def _parametric(errors: Errors, setting: str) -> Iterator[Check]:
    ks = _ks(errors)
    if len(ks) < 2:
        return
    few, many = ks[0], ks[-1]
    for parameter in PARAMETERS:
        gap = {}
        for k in (few, many):
            par, semi = (_excess(errors, setting, k, e, parameter) for e in ("parametric", SEMI[0]))
            gap[k] = (par, semi)
        detail = "; ".join(f"k = {k}: mse over ML's {par:.2f} against {semi:.2f}" for k, (par, semi) in gap.items())
        worse = gap[few][0] > gap[few][1]
        closer = gap[many][0] / gap[many][1] < gap[few][0] / gap[few][1]
        claim = (
            f"{setting}, IID points, {parameter}: parametric worse than semi-parametric at k = {few}, closer at {many}"
        )
        yield Check(claim, worse and closer, detail)


def _ignored(errors: Errors, setting: str) -> Iterator[Check]:
    """θ1 does not converge: between the two largest n its rmse hardly falls where ML's falls like n^{−1/2}.

    θ2 is good: within a factor of two of ML's error, and far nearer to it than θ1.
    """
    sizes = _sizes(errors, setting, ENOUGH)
    if len(sizes) < 2 or sizes[-1] < 2 * sizes[-2]:
        return
    before, last = sizes[-2], sizes[-1]
    for k in _ks(errors):

        def rmse(n: int, estimator: str, parameter: str, k: int = k) -> float:
            return float(np.sqrt(np.nanmean(errors.of(setting, n, k, "iid", estimator, parameter) ** 2)))

        shrinks = {e: rmse(last, e, "theta1") / rmse(before, e, "theta1") for e in ("ML", "ignored")}
        over = {p: rmse(last, "ignored", p) / rmse(last, "ML", p) for p in PARAMETERS}
        detail = (
            f"rmse at n = {last} is {shrinks['ignored']:.2f} of that at n = {before} (ML: {shrinks['ML']:.2f}), "
            f"and {over['theta1']:.1f} times ML's"
        )
        still = shrinks["ignored"] > 0.5 + 0.5 * shrinks["ML"]
        claim = f"{setting}, k = {k}: ignored constants bias θ1, which does not converge"
        yield Check(claim, still and over["theta1"] > 1.5, detail)
        good = over["theta2"] < 2.0 and over["theta2"] < 0.6 * over["theta1"]
        yield Check(f"{setting}, k = {k}: their θ2 is good", good, f"rmse {over['theta2']:.2f} times ML's")
