"""How well a fit predicts each point, in the scores that the field uses.

With p(y|x) the fitted density, V the area of the window and b the baseline's density (`centre_bias`):

    information gain   log₂ p(y|x) V over the uniform law, log₂ p(y|x)/b(y) over the centre bias, in bits
    NSS                (p(y|x) − 1/V)/sd of p(·|x) over the window
    AUC                the share of the window where p(·|x) is below p(y|x)

Means are over all points, with errors that let points of one image, and of one subject, depend on each other: with
several grouping columns V = V₁ + V₂ − V₁₂ (Cameron, Gelbach & Miller 2011). Two conditions are no sample of
conditions: grouping columns with few levels are left out where others tell more (`clusterings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from .._base.intervals import quantile
from .._base.lattices import kronecker
from .._base.numerics import read_only
from .._base.threads import cores, run_tasks
from ..data.observations import Observations
from ..data.placing import from_unit, log_volumes, placed
from ..domains.base import Domain
from ..errors import InputError, OutsideError, hush, listing
from ..objectives.integrals import context_rules
from ..objectives.representatives import representatives
from .centre_bias import CentreBias, centre_bias
from .density import Density
from .held_out import evenly
from .outside import first_outside, inside

AUC_POINTS = 64  # places with which the density at a point is compared, evenly spread and shifted for each
AT_ONCE = 65_536  # rows of f̂ in a block: what is held of them stays in the cache
GRIDS = (13, 25, 49)  # contexts along each axis at which integrals are computed, where two columns decide
FEW = 5  # levels of a grouping column below which it may be a condition
CHECKED, KNOWN = 24, 0.003  # contexts at which the interpolation is checked, and its largest error of log Z

GAIN, OVER_BASELINE, BASELINE = "information gain over uniform", "information gain over centre bias", "centre bias"


@final
@dataclass(frozen=True, eq=False)
class PredictionScores:
    """Scores of a fit at new observations; `print(scores)` gives the table.

    `table` has one row for each score: mean, se, lower, upper, n. `each` has the scores of every observation.

    Example:
        >>> import numpy as np, unnorm as un
        >>> rng = np.random.default_rng(1)
        >>> table = {"i": np.arange(200), "x": rng.random(200), "y": rng.random(200)}
        >>> obs = un.transitions(table, y=("x", "y"), order="i")
        >>> fit = un.fit(un.Additive("step", un.Box((0, 1), (0, 1))), obs, un.Logistic(per_point=5), rng=2)
        >>> sorted(fit.scores(obs).each)[:2]
        ['AUC', 'NSS']
    """

    table: Any  #: score, mean, se, lower, upper, n, in the kind of table that the data came in
    each: Mapping[str, np.ndarray] = field(repr=False)  #: score → (n,)
    clusters: Mapping[str, int] = field(default_factory=dict)  #: grouping column → how many
    baseline: CentreBias | None = None  #: the centre bias that the gain is over
    _rows: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __getitem__(self, score: str) -> tuple[float, float]:
        """Mean and standard error of one score."""
        names = self._rows["score"].tolist()
        if score not in names:
            raise InputError(f"There is no score {score!r}; there are {listing(names)}.")
        i = names.index(score)
        return float(self._rows["mean"][i]), float(self._rows["se"][i])

    @property
    def lower(self) -> np.ndarray:
        """Lower ends of the intervals, in the order of `each`."""
        return self._rows["lower"]

    @property
    def upper(self) -> np.ndarray:
        """Upper ends of the intervals, in the order of `each`."""
        return self._rows["upper"]

    def __str__(self) -> str:
        rows = self._rows
        wide = max(map(len, rows["score"].tolist()))
        lines = [f"{'':<{wide}}  {'mean':>8}  {'se':>7}   95 % interval" if self._rows["level"][0] == 0.95 else ""]
        for i, name in enumerate(rows["score"].tolist()):
            ends = f"{rows['lower'][i]:.3f} to {rows['upper'][i]:.3f}"
            lines.append(f"{name:<{wide}}  {rows['mean'][i]:>8.3f}  {rows['se'][i]:>7.3f}   {ends}")
        many = " and ".join(f"{name}: {count:,}" for name, count in self.clusters.items())
        let = f"errors let points of one group depend on each other ({many})" if many else "errors of separate points"
        lines.append(f"{int(rows['n'][0]):,} points; {let}")
        if self.baseline is not None:
            lines.append(f"baseline: {self.baseline}")
        return "\n".join(line for line in lines if line)

    def __repr__(self) -> str:
        mean, se = self[GAIN]
        return f"PredictionScores({mean:.3f} ± {se:.3f} bits over uniform, {int(self._rows['n'][0]):,} points)"


def prediction_scores(
    density: Density,
    obs: Observations,
    training: Observations | None,
    by: Sequence[str] | None,
    level: float,
    order: int | None,
    columns: Sequence[str] | None,
    bias: CentreBias | None = None,
) -> PredictionScores:
    """Scores at all observations; the baseline is `bias`, or fitted to `training`."""
    domain = density.domain
    obs = placed(domain, obs)
    if domain.finite or domain.dim != 2 or domain.enclosing_box is None:
        raise InputError(f"NSS and AUC are of places in the plane; for outcomes in {domain!r} use fit.held_out(obs).")
    within = inside(domain, obs, earlier=False)
    if not within.all():
        raise OutsideError(
            f"{int((~within).sum()):,} of {obs.n:,} observations lie outside {domain!r}; "
            f"{first_outside(domain, obs)[0]}. Leave them out."
        )
    names = clusterings(obs.group) if by is None else tuple(by)
    if unknown := [name for name in names if name not in obs.columns]:
        raise InputError(f"by names {listing(unknown)}; the observations have {listing(obs.columns)}.")
    with hush():  # Ω reaches beyond the fitted rows, and f̂ is extrapolated there anyway
        each = _scores(density, obs, order, columns)
    if bias is None and training is not None:
        bias = baseline_of(domain, training, names)
    if bias is not None:
        base = bias.relative(domain, obs)
        each[OVER_BASELINE] = each[GAIN] - base["bits"]
        each[f"{BASELINE}: information gain over uniform"] = base["bits"]
        each[f"{BASELINE}: NSS"], each[f"{BASELINE}: AUC"] = base["nss"], base["auc"]
    groups = {name: np.unique(obs.columns[name], return_inverse=True)[1] for name in names}
    rows = _means(each, obs.weights, groups, level)
    table = to_native({name: values for name, values in rows.items() if name != "level"}, obs.backend)
    counts = {name: int(code.max()) + 1 for name, code in groups.items()}
    return PredictionScores(table, {name: read_only(v) for name, v in each.items()}, counts, bias, rows)


def baseline_of(domain: Domain, training: Observations, names: Sequence[str]) -> CentreBias:
    """The centre bias of these observations; `names`: their grouping columns, the last of which is left out by parts to
    choose its bandwidth, unless each context has a window of its own."""
    own = placed(domain, training)
    return centre_bias(domain, own, own.columns.get(domain.key or (names[-1] if names else "")))


def clusterings(groups: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The grouping columns by which errors are clustered, where the user names none.

    Those with one level say nothing. Those with few are left out where each level of another column has one of them (a
    group of subjects), or where two others have more levels (a task that subjects do on every image).
    """
    code = {name: np.unique(column, return_inverse=True)[1] for name, column in groups.items()}
    count = {name: int(own.max(initial=-1)) + 1 for name, own in code.items()}
    several = [name for name in groups if count[name] > 1]

    def condition(name: str) -> bool:
        more = [other for other in several if count[other] > count[name]]
        within = any(len(np.unique(code[other] * count[name] + code[name])) == count[other] for other in more)
        return count[name] < FEW and (within or len(more) > 1)

    return tuple(name for name in several if not condition(name))


def pooled_scores(parts: Sequence[tuple[Observations, PredictionScores]], level: float) -> PredictionScores:
    """The scores of several fits, each at observations of its own, as those of all points."""
    names = [name for name in parts[0][0].group if all(name in obs.group for obs, _ in parts)]
    each = {score: np.concatenate([own.each[score] for _, own in parts]) for score in parts[0][1].each}
    columns = {name: np.concatenate([obs.group[name] for obs, _ in parts]) for name in names}
    groups = {name: np.unique(columns[name], return_inverse=True)[1] for name in clusterings(columns)}
    rows = _means(each, np.concatenate([obs.weights for obs, _ in parts]), groups, level)
    table = to_native({name: values for name, values in rows.items() if name != "level"}, parts[0][0].backend)
    counts = {name: int(code.max()) + 1 for name, code in groups.items()}
    return PredictionScores(table, each, counts, parts[0][1].baseline, rows)


def _scores(
    density: Density, obs: Observations, order: int | None, columns: Sequence[str] | None
) -> dict[str, np.ndarray]:
    log_v = log_volumes(density.domain, obs)
    log_z, log_square = context_integrals(density, obs, order, columns)
    f = np.concatenate(_blocks(lambda some, _: density.log_f(some, some.outcome, np.arange(some.n)), obs, 1))
    log_p = f - log_z + log_v  # of p V
    variance = np.maximum(np.expm1(log_square - 2.0 * log_z + log_v), 1e-300)  # of p V over the window
    auc = np.concatenate(_blocks(lambda some, begin: _auc(density, some, begin), obs, AUC_POINTS + 1))
    return {GAIN: log_p / np.log(2.0), "NSS": np.expm1(log_p) / np.sqrt(variance), "AUC": auc}


def _auc(density: Density, obs: Observations, begin: int) -> np.ndarray:
    """The share of the window where the density is lower, by places that are spread evenly over it."""
    n = obs.n
    at = np.repeat(np.arange(n), AUC_POINTS)
    u = (np.arange(begin * AUC_POINTS, (begin + n) * AUC_POINTS)[:, None] * kronecker(2)) % 1.0
    there = density.log_f(obs, from_unit(density.domain, obs.take(at), u), at).reshape(n, -1)
    here = density.log_f(obs, obs.outcome, np.arange(n))[:, None]
    return np.mean((there < here) + 0.5 * (there == here), axis=1)


def _blocks(work: Any, obs: Observations, each: int) -> list[Any]:
    """`work` on the observations, a block at a time."""
    length = max(1, AT_ONCE // each)

    def task(begin: int) -> Any:
        return work(obs.take(np.arange(begin, min(begin + length, obs.n))), begin)

    return run_tasks(task, [(begin,) for begin in range(0, obs.n, length)], cores())


def context_integrals(
    density: Density, obs: Observations, order: int | None, columns: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) log ∫ exp f and log ∫ exp 2f at each context.

    Where f reads one or two numbers of the context (`columns` are its covariates), they are interpolated between the
    contexts of a grid, which is made finer until log Z is known; else they are computed at each.
    """
    fitted = density.additive()
    if fitted is None or columns is None:
        return _integrals(density, obs, order)
    model = fitted[0]
    names = model.covariates(obs).reads(columns)
    numbers = all(name in obs.context and obs.context[name].dtype.kind == "f" for name in names)
    if not numbers or not 1 <= len(names) <= 2:
        return _integrals(density, obs, order)
    some = evenly(obs.n, CHECKED)
    exact = _integrals(density, obs.take(some), order)[0]
    for grid in GRIDS:
        if len(density.domain.windows) * grid ** len(names) >= obs.n:
            break
        places, weights = representatives(model, obs, tuple(columns), grid)
        log_z, square = _integrals(density, places, order)
        if np.max(np.abs((weights @ log_z)[some] - exact)) <= KNOWN:
            return weights @ log_z, weights @ square
    return _integrals(density, obs, order)


def _integrals(density: Density, obs: Observations, order: int | None) -> tuple[np.ndarray, np.ndarray]:
    each = len(context_rules(density.domain, obs.take(np.arange(1)), order)[0])

    def work(some: Observations, begin: int) -> tuple[np.ndarray, np.ndarray]:
        y, w, of = context_rules(density.domain, some, order)
        f = density.log_f(some, y, of)
        starts = np.searchsorted(of, np.arange(some.n))
        top = np.maximum.reduceat(f, starts)
        e = np.exp(f - top[of])
        return top + np.log(np.add.reduceat(w * e, starts)), 2 * top + np.log(np.add.reduceat(w * e * e, starts))

    log_z, square = zip(*_blocks(work, obs, each))
    return np.concatenate(log_z), np.concatenate(square)


def _means(
    each: Mapping[str, np.ndarray], w: np.ndarray, groups: Mapping[str, np.ndarray], level: float
) -> dict[str, np.ndarray]:
    """Weighted means with two-way (or more) clustered errors."""
    least = min((int(code.max()) + 1 for code in groups.values()), default=int(np.sum(w > 0)))
    q = quantile(level, max(least - 1, 1))
    names = list(each)
    mean = np.array([np.average(each[name], weights=w) for name in names])
    se = np.array([clustered_error(each[name], w, list(groups.values())) for name in names])
    count = np.full(len(names), len(w))
    ends = {"lower": mean - q * se, "upper": mean + q * se}
    return {
        "score": np.array(names, dtype=object),
        "mean": mean,
        "se": se,
        **ends,
        "n": count,
        "level": np.full(len(names), level),
    }


def clustered_error(values: np.ndarray, w: np.ndarray, groups: Sequence[np.ndarray]) -> float:
    """The standard error of a weighted mean whose terms may depend on each other within each group.

    V = Σ over subsets of the groupings, with sign (−1)^(size + 1), of the variance by their intersection; each with
    C/(C − 1). Where the sum is not positive, the largest variance of one grouping.
    """
    r = w * (values - np.average(values, weights=w)) / w.sum()
    if not groups:
        n = int(np.sum(w > 0))
        return float(np.sqrt(n / max(n - 1, 1) * np.sum(r**2)))
    total, single = 0.0, 0.0
    for size in range(1, len(groups) + 1):
        for some in combinations(groups, size):
            code = some[0]
            for other in some[1:]:
                code = np.unique(code * (int(other.max()) + 1) + other, return_inverse=True)[1]
            sums = np.bincount(code, r)
            c = int(code.max()) + 1
            v = c / max(c - 1, 1) * float(sums @ sums)
            total += (-1) ** (size + 1) * v
            single = max(single, v) if size == 1 else single
    return float(np.sqrt(total if total > 0 else single))
