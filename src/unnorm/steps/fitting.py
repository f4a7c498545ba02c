"""`fit_steps`: step selection as the field writes it, p(y|x) ∝ k(y|x) exp f(y|x) with k a kernel of steps and turns.

Habitat selection (Fortin et al. 2005) has terms of habitat alone; integrated step selection (Avgar et al. 2016) has the
kernel's own statistics as well, step and log(step) of a gamma law and cos(turn), and so estimates both at once: the
kernel that was fitted to the observed steps, which habitat has shaped, is updated by their coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._base.numerics import Rng
from ..data.covariates import Covariate
from ..domains.base import Domain
from ..errors import InputError, unknown
from ..models.additive import Additive
from ..models.tilt import Tilt
from ..objectives.base import Objective
from ..objectives.contrastive import Logistic
from ..objectives.ranking import Ranking
from ..references.step_kernel import StepKernel
from ..results.fitting import fit
from ..terms import Terms, parse
from .landscape import check_maps, landscape, step_covariates, written
from .random_steps import steps_of
from .result import StepFit

OBJECTIVES = {"ranking": Ranking, "logistic": Logistic}


# long: a public entry point
def fit_steps(
    track: Any,
    terms: Any,
    *,
    maps: Any = (),
    covariates: Sequence[Covariate] = (),
    kernel: StepKernel | None = None,
    integrated: bool = False,
    domain: Domain | None = None,
    objective: str | Objective = "ranking",
    per_point: int = 20,
    cluster: Any = None,
    rng: Rng = None,
    **options: Any,
) -> StepFit:
    """Fit a step selection model, p(y|x) ∝ k(y|x) exp f(y|x).

    Args:
        track: from `un.track`, or transitions with lags=2.
        terms: of f: "forest", "forest + forest:night", "s(elevation)", "forest + log(step) + cos(turn)"; maps are known
            by their name at the end of the step and with `_start` at its start.
        maps: `un.Map` objects.
        covariates: other covariates that terms may name.
        kernel: k, its open parameters fitted to the observed steps; default gamma lengths and von Mises turns.
        integrated: whether the kernel's own statistics join the terms, so that `movement()` gives the updated kernel.
        domain: Ω, which no step leaves; default the extent of the maps, or the track with room around it.
        objective: "ranking" (conditional logistic regression), "logistic" (with constants that follow f, which takes
            evenly spread points and needs fewer), or an objective of your own.
        per_point: available steps for each observed one.
        cluster: a group column whose levels are independent, as "animal", for robust errors.
        rng: seed or generator.
        options: for `un.fit`.

    Example:
        >>> import numpy as np
        >>> import unnorm as un
        >>> walk = np.cumsum(np.random.default_rng(1).normal(0, 80, (400, 2)), axis=0)
        >>> fixes = {"t": np.arange(400) * 60, "x": walk[:, 0], "y": walk[:, 1]}
        >>> fixes = un.track(fixes, time="t", x="x", y="y", unit="metres")
        >>> found = un.fit_steps(fixes, "x", integrated=True, rng=1)
        >>> sorted(found.fit.names)
        ['cos_turn', 'log_step', 'step', 'x']
    """
    obs = steps_of(track)
    grids = check_maps(maps)
    ground = landscape(obs, grids, domain)
    bound = (StepKernel("gamma", "vonmises") if kernel is None else kernel).bind(ground, obs)
    law: Any = bound.reference
    formula = _formula(terms, law, integrated)
    known = step_covariates(formula.columns, grids, covariates, law, (*obs.context, *obs.group))
    model = Additive(formula, ground, covariates=known, base=Tilt(law, bound))
    found = fit(model, obs, _objective(objective, law, per_point, cluster), rng=rng, **options)
    return StepFit(found, grids)


def _formula(terms: Any, kernel: StepKernel, integrated: bool) -> Terms:
    parsed = parse(written(terms))
    if not integrated:
        return parsed
    own = [name for name in (*kernel.step.moved_by, *kernel.turn.moved_by) if name not in parsed.columns]
    return parsed + parse(" + ".join(own)) if own else parsed


def _objective(objective: str | Objective, kernel: StepKernel, per_point: int, cluster: Any) -> Objective:
    if isinstance(objective, Objective):
        return objective
    if objective not in OBJECTIVES:
        raise InputError(unknown("objective", objective, OBJECTIVES))
    return OBJECTIVES[objective](kernel, per_point=per_point, cluster=cluster)
